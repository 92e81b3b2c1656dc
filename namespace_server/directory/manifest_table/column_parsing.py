"""Parse version rows by the hundred thousand: from the text of `__manifest` to typed columns, vectorised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import add
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from numpy.typing import NDArray

from namespace_server.directory.model.entries import HASH_DIGITS, digest_path
from namespace_server.directory.model.object_ids import DELIMITER, ObjectId, parse_id
from namespace_server.directory.model.persistent.version_columns import (
    HAS_E_TAG,
    HAS_HASH,
    HAS_TRANSACTION,
    NAMED_V1,
    STAGED_BESIDE,
    STAGED_ELSEWHERE,
    VersionColumns,
)

_FIELDS: Final = pa.schema(
    [
        pa.field("manifest_path", pa.string()),
        pa.field("manifest_size", pa.int64()),
        pa.field("e_tag", pa.string()),
        pa.field("staged_suffix", pa.string()),
        pa.field("staged_path", pa.string()),
        pa.field("transaction_id", pa.string()),
        pa.field("timestamp_millis", pa.int64()),
        pa.field("sha256", pa.string()),
    ]
)
_PARSE: Final = pj.ParseOptions(explicit_schema=_FIELDS, unexpected_field_behavior="ignore")
_CLIENT_METADATA: Final = b'"metadata":'
_BLOCK: Final = 16 << 20
_DIGITS: Final = np.full(256, 255, np.uint8)
_DIGITS[[ord(digit) for digit in "0123456789abcdef"]] = np.arange(16, dtype=np.uint8)
_HYPHENS: Final = (8, 13, 18, 23)
_UUID_DIGITS: Final = np.array([at for at in range(36) if at not in _HYPHENS])
_MAX_VERSION_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class ParsedVersions:
    """Version rows in columns.

    `chains` are the object ids without the number, `bases` the directories above `_versions/`. `irregular` are the
    positions, among the rows that were given, of those that columns cannot hold; `kept` those of the others, in the
    order of all else.
    """

    columns: VersionColumns
    chains: pa.StringArray
    bases: pa.StringArray
    kept: NDArray[np.int64]
    irregular: NDArray[np.int64]


def parse_versions(object_ids: pa.StringArray, metadata: pa.StringArray, serials: NDArray[np.int64]) -> ParsedVersions:
    """Parse version rows. Rows whose metadata is unusual, of another writer or broken come back as irregular."""
    count = len(object_ids)
    text = _join_lines(metadata)
    values = _parse_json(text, count)
    if values is None:
        empty = np.zeros(0, np.int64)
        nothing = pa.array([], pa.string())
        return ParsedVersions(_no_columns(), nothing, nothing, empty, np.arange(count))
    parts = pc.split_pattern(object_ids, DELIMITER, max_splits=1, reverse=True)
    good = _numpy(pc.equal(pc.list_value_length(parts), 2))
    if _CLIENT_METADATA in text.to_pybytes():  # one pass over all bytes, which nearly always finds none
        good &= ~_numpy(pc.match_substring(metadata, _CLIENT_METADATA.decode()))
    good &= _numpy(pc.match_substring(values["manifest_path"], "/_versions/"))
    # Each step looks only at rows that passed the steps before, so it can parse all that it gets.
    kept = np.flatnonzero(good)
    if len(kept) < count:
        parts = parts.take(kept)
        values = {name: column.take(kept) for name, column in values.items()}
    chains, digits = pc.list_element(parts, 0), pc.list_element(parts, 1)
    lengths = _lengths(digits)
    good = _numpy(pc.string_is_ascii(digits)) & _numpy(pc.ascii_is_decimal(digits)) & (lengths <= _MAX_VERSION_DIGITS)
    places = pc.split_pattern(values["manifest_path"], "/_versions/", max_splits=1, reverse=True)
    bases, names = pc.list_element(places, 0), pc.list_element(places, 1)
    numbers = pc.cast(pc.if_else(pa.array(good), digits, "0"), pa.int64())
    versions = numbers.to_numpy(zero_copy_only=False)
    v2 = pc.binary_join_element_wise(pc.cast(pa.array(~versions.astype(np.uint64)), pa.string()), ".manifest", "")
    v1 = pc.binary_join_element_wise(pc.cast(numbers, pa.string()), ".manifest", "")
    named_v2, named_v1 = _numpy(pc.equal(names, v2)), _numpy(pc.equal(names, v1))
    good &= (named_v2 | named_v1) & (versions > 0)
    sizes = values["manifest_size"].fill_null(0).to_numpy(zero_copy_only=False)
    good &= (sizes >= 0) & (sizes < 1 << 32)
    transactions, has_transaction, well = _uuids(values["transaction_id"])
    good &= well
    hashes, has_hash, well = _digests(values["sha256"])
    good &= well
    staged, flags, well = _staged(values["staged_suffix"], values["staged_path"])
    good &= well
    flags |= np.where(has_transaction, HAS_TRANSACTION, 0).astype(np.uint8)
    flags |= np.where(has_hash, HAS_HASH, 0).astype(np.uint8)
    flags |= np.where(named_v1, NAMED_V1, 0).astype(np.uint8)
    e_tags = values["e_tag"]
    flags |= np.where(_numpy(e_tags.is_valid()), HAS_E_TAG, 0).astype(np.uint8)
    ends, text = _text(e_tags.fill_null(""))
    columns = VersionColumns(
        versions.astype(np.int64),
        serials[kept],
        sizes.astype(np.uint32),
        values["timestamp_millis"].fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64),
        transactions,
        hashes,
        staged,
        flags,
        ends,
        text,
    )
    if not good.all():
        rows = np.flatnonzero(good)
        columns, kept = columns.select(rows), kept[rows]
        chains, bases = chains.take(rows), bases.take(rows)
    return ParsedVersions(columns, chains, bases, kept, np.setdiff1d(np.arange(count), kept, assume_unique=True))


class SplitIds(NamedTuple):
    """Object ids as parents and names: the parent of row i is `parents[codes[i]]`."""

    parents: list[ObjectId]
    codes: NDArray[np.integer]
    names: list[str]

    def paths(self) -> list[ObjectId]:
        """The ids as tuples. Those with one parent share its components."""
        return list(map(add, map(self.parents.__getitem__, self.codes.tolist()), zip(self.names, strict=True)))

    def runs(self) -> Iterator[tuple[ObjectId, list[str]]]:
        """Each parent with the names of consecutive rows that have it."""
        starts = np.flatnonzero(np.diff(self.codes, prepend=-1)).tolist()
        for start, stop in pairwise([*starts, len(self.names)]):
            yield self.parents[self.codes[start]], self.names[start:stop]


def split_ids(object_ids: pa.StringArray) -> SplitIds:
    """The parent and the name of each object id."""
    rooted = pc.binary_join_element_wise("", object_ids, DELIMITER)  # so that every id has a delimiter
    parts = pc.split_pattern(rooted, DELIMITER, max_splits=1, reverse=True)
    heads = pc.list_element(parts, 0).dictionary_encode()
    parents = [parse_id(head[1:]) if head else () for head in heads.dictionary.to_pylist()]
    return SplitIds(parents, heads.indices.to_numpy(), pc.list_element(parts, 1).to_pylist())


def unusual_locations(object_ids: pa.StringArray, locations: pa.StringArray) -> list[int]:
    """The positions of the locations that do not name their table as `names_its_table` has it."""
    expected = pc.binary_join_element_wise("", object_ids, "_")
    unusual = pc.not_equal(pc.utf8_slice_codeunits(locations, HASH_DIGITS), expected)
    found: list[int] = np.flatnonzero(_numpy(unusual)).tolist()
    return found


def _join_lines(metadata: pa.StringArray) -> pa.Buffer:
    """One line per row."""
    if not len(metadata):
        return pa.py_buffer(b"")
    offsets = pa.array([0, len(metadata)], pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, metadata.fill_null("{}")), "\n")
    return joined[0].as_buffer()


def _parse_json(text: pa.Buffer, count: int) -> dict[str, Any] | None:
    """The known values of each row's JSON object; None when the text is not `count` lines of one object each."""
    if not count:
        return None
    try:
        table = pj.read_json(pa.BufferReader(text), pj.ReadOptions(block_size=_BLOCK), _PARSE)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if table.num_rows != count:
        return None
    return {name: table[name].combine_chunks() for name in _FIELDS.names}


def _no_columns() -> VersionColumns:
    none = np.zeros(0, np.int64)
    octets = np.zeros(0, np.uint8)
    return VersionColumns(
        none,
        none,
        none.astype(np.uint32),
        none,
        octets.reshape(0, 16),
        octets.reshape(0, 32),
        octets.reshape(0, 16),
        octets,
        none,
        b"",
    )


def _numpy(mask: Any) -> NDArray[np.bool_]:
    """A mask in which null is false."""
    found: NDArray[np.bool_] = mask.fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _text(column: pa.StringArray) -> tuple[NDArray[np.int64], bytes]:
    """Where each text ends, and all texts joined. The column has no nulls."""
    _, offset_buffer, data = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    if data is None or not len(column):
        return np.zeros(len(column), np.int64), b""
    begin = int(offsets[0])
    return offsets[1:] - begin, data[begin : int(offsets[-1])].to_pybytes()


def _lengths(column: pa.StringArray) -> NDArray[np.int64]:
    found: NDArray[np.int64] = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _tails(column: pa.StringArray, width: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The last `width` bytes of each text, and whether it has so many; zeros where it has not."""
    ends, data = _text(column)
    lengths = np.diff(ends, prepend=0)
    enough = lengths >= width
    found = np.zeros((len(column), width), np.uint8)
    if enough.any():
        windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), width)
        found[enough] = windows[ends[enough] - width]
    return found, enough


def _decode_hex(digits: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Bytes from pairs of digits along the last axis, and whether all of a row's digits are some."""
    values = _DIGITS[digits]
    octets = np.bitwise_or(np.left_shift(values[:, 0::2], 4), np.bitwise_and(values[:, 1::2], 15))
    return octets.astype(np.uint8, copy=False), np.all(values != 255, axis=1)


def _uuids(column: pa.StringArray) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.bool_]]:
    """Bytes of canonical uuids, which rows have one, and which rows are well: have one, or nothing."""
    column = column.fill_null("")
    lengths = _lengths(column)
    text, _ = _tails(column, 36)
    octets, is_hex = _decode_hex(text[:, _UUID_DIGITS])
    present = (lengths == 36) & is_hex & (text[:, _HYPHENS] == ord("-")).all(axis=1)
    octets[~present] = 0
    return octets, present, present | (lengths == 0)


def _digests(column: pa.StringArray) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.bool_]]:
    """Bytes of hexadecimal SHA-256 digests, which rows have one, and which rows are well."""
    column = column.fill_null("")
    lengths = _lengths(column)
    text, _ = _tails(column, 64)
    octets, is_hex = _decode_hex(text)
    present = (lengths == 64) & is_hex
    octets[~present] = 0
    return octets, present, present | (lengths == 0)


def _staged(
    suffixes: pa.StringArray, paths: pa.StringArray
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.bool_]]:
    """Digests or uuids of staged paths, the flag that distinguishes them, and a mask of well-formed rows."""
    octets, beside, well = _uuids(suffixes)
    elsewhere = np.flatnonzero(_numpy(paths.is_valid()) & ~beside)
    if len(elsewhere):
        digests = b"".join([digest_path(path) for path in paths.take(elsewhere).to_pylist()])
        octets[elsewhere] = np.frombuffer(digests, np.uint8).reshape(-1, 16)
    flags = np.where(beside, STAGED_BESIDE, 0).astype(np.uint8)
    flags[elsewhere] = STAGED_ELSEWHERE
    return octets, flags, well

"""Compares files with what a transaction says of them, before a manifest refers to them (S1: readable after it)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from lance_core.errors import CorruptFile, InvalidTransaction, UnsupportedFeature
from lance_core.format.deletion import decode_deletion_file, largest_deletion_file
from lance_core.format.footer import TAIL, FileSummary, read_summary
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore, size_and_date
from lance_core.transaction.fields import TOMBSTONE
from lance_core.transaction.reachable import StatedFile

_NO_COLUMN: Final = -1
_FIRST_MAJOR: Final = 2
"""Older files, which stock clients may still write, have another end."""
_KINDS: Final = {
    **dict.fromkeys(("string", "large_string"), "text"),
    **dict.fromkeys(("binary", "large_binary"), "bytes"),
    **{name: name for name in ("bool", "float", "double", "halffloat")},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Types that a column of a file and the field of the table must share, by what readers take for the same."""
_TIMES: Final = re.compile(
    r"(date|time)(32|64):\w+|(timestamp|duration):\w+|decimal:\d+:\d+:-?\d+|fixed_size_binary:\d+"
)


def check_stated_files(
    store: ObjectStore, files: Mapping[str, StatedFile], *, contents: bool, schema: Iterable[pb.Field] = ()
) -> dict[str, int]:
    """Compare files with statements about them: sizes, and the rows of deletion files; one parallel step.

    Returns when each file was written, by key, in whole seconds since the epoch by the store's clock.

    With `contents` the ends of data files are read too: rows, columns and format version, and types where `schema` (the
    fields of the table) has them. That is one call each in a local store, else two requests in sequence.

    Raises:
        NotFound: A file does not exist.
        InvalidTransaction: A file differs from its statement.
        StorageError: The store cannot be read.
    """
    types = {field.id: field for field in schema}
    sized = [key for key, stated in files.items() if not _is_read(stated, contents)]
    read = [(key, stated) for key, stated in files.items() if _is_read(stated, contents)]
    looks = [partial(_check_sizes, store, sized, files)] if sized else []
    dates = store.gather([*looks, *(partial(_check_content, store, key, stated, types) for key, stated in read)])
    return {key: written for part in dates for key, written in part}


def _is_read(stated: StatedFile, contents: bool) -> bool:
    if stated.deletion is not None:
        return True
    return contents and stated.data is not None and stated.data.file_major_version >= _FIRST_MAJOR


def _check_sizes(store: ObjectStore, keys: list[str], files: Mapping[str, StatedFile]) -> list[tuple[str, int]]:
    found = store.require(keys)
    for key, (size, _) in zip(keys, found, strict=True):
        _check_size(key, files[key], size)
    return [(key, written) for key, (_, written) in zip(keys, found, strict=True)]


def _check_size(key: str, stated: StatedFile, size: int) -> None:
    if stated.size not in {0, size}:
        raise InvalidTransaction(f"the file {key} has {size} bytes, expected {stated.size}")


def _check_content(
    store: ObjectStore, key: str, stated: StatedFile, types: Mapping[int, pb.Field]
) -> list[tuple[str, int]]:
    try:
        if stated.deletion is not None:
            data, meta = store.get_with_meta(key, at_most=largest_deletion_file(stated.rows))
            decode_deletion_file(stated.deletion, data, physical_rows=stated.rows)
            return [(key, size_and_date(meta).written)]
        tail, found = store.tail(key, TAIL)
        _check_size(key, stated, found.size)
        summary = read_summary(tail, found.size, partial(store.get_range, key))
    except (CorruptFile, UnsupportedFeature) as error:
        reason = error.reason if isinstance(error, CorruptFile) else error
        raise InvalidTransaction(f"the file {key} cannot be read: {reason}") from error
    assert stated.data is not None
    problem = _contradiction(stated, stated.data, summary, types)
    if problem is not None:
        raise InvalidTransaction(f"the file {key} {problem}")
    return [(key, found.written)]


def _contradiction(
    stated: StatedFile, data: pb.DataFile, summary: FileSummary, types: Mapping[int, pb.Field]
) -> str | None:
    """How a data file differs from its entry; None if it does not."""
    version = (data.file_major_version, data.file_minor_version)
    if summary.version != version:
        return f"has format {summary.version[0]}.{summary.version[1]}, expected {version[0]}.{version[1]}"
    if stated.rows and summary.rows != stated.rows:
        return f"has {summary.rows} rows, expected {stated.rows}"
    # With nested fields there is no simple rule which field of the file a column belongs to.
    flat = len(summary.fields) == summary.columns and all(field.parent_id == -1 for field in summary.fields)
    for number, column in zip(data.fields, data.column_indices, strict=False):
        if column == _NO_COLUMN or number == TOMBSTONE:
            continue
        if not 0 <= column < summary.columns:
            return f"has {summary.columns} columns, expected a column {column}"
        if flat and number in types:
            found, wanted = summary.fields[column].logical_type, types[number].logical_type
            kinds = set() if found == wanted else {_kind(found), _kind(wanted)}
            if len(kinds) > 1 and None not in kinds:
                return f"has {found} in column {column}, expected {wanted} ({types[number].name})"
    return None


def _kind(logical_type: str) -> str | None:
    """The kind of values that readers decode a column as; None where the type alone does not decide it."""
    times = _TIMES.match(logical_type)
    return _KINDS.get(logical_type) if times is None else times[0]

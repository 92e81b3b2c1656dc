"""Encodes and decodes the stable row ids and row versions of a fragment.

A fragment of a table with stable row ids carries three sequences, one entry per physical row in order: the row's id,
the version that created it and the version that last changed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFile, InvalidTransaction, UnsupportedFeature
from lance_core.format.decoding import decode_message
from lance_core.proto import lance_table_pb2 as pb

Numbers = npt.NDArray[np.uint64]

MAX_ROWS = 1 << 26
"""Largest number of rows of one fragment that are expanded: a range takes a few bytes encoded, but eight bytes for each
row expanded. Writers begin a new file after a million rows."""

_FREE_MESSAGES = 1 << 20
"""Messages of the row ids or versions of a fragment. Such a message may have five bytes."""

UNKNOWN_CREATION = 1
"""The version that readers report for a row whose creation was not recorded."""


def row_ids(fragment: pb.DataFragment) -> Numbers:
    """The row ids that the fragment carries: of all its rows, of the first ones, or none.

    Raises `UnsupportedFeature` if they are in an external file or more than `MAX_ROWS`, `CorruptFile` if they cannot
    be decoded.
    """
    return _concatenate(_expand(segment) for segment in _inline_segments(fragment))


def other_row_ids(ids: Numbers, fragment: pb.DataFragment) -> Numbers:
    """Those of `ids` that the fragment does not carry. Ranges are not expanded. Raises as `row_ids`."""
    for segment in _inline_segments(fragment):
        if segment.WhichOneof("segment") == "range":
            carried = (ids >= np.uint64(segment.range.start)) & (ids < np.uint64(segment.range.end))
        else:
            carried = np.isin(ids, _expand(segment))
        ids = ids[~carried]
    return ids


def row_id_bounds(fragment: pb.DataFragment) -> tuple[int, int]:
    """Smallest and largest row id that the fragment may carry, without expanding ranges. (1, 0) when it has none."""
    low, high = [], []
    for segment in _segments(fragment):
        kind = segment.WhichOneof("segment")
        if kind in {"range", "range_with_holes", "range_with_bitmap"}:
            span = getattr(segment, kind)
            if span.end > span.start:
                low.append(span.start)
                high.append(span.end - 1)
        else:
            values = _expand(segment)
            if len(values):
                low.append(int(values.min()))
                high.append(int(values.max()))
    return (min(low), max(high)) if low else (1, 0)


def creation_versions(fragment: pb.DataFragment) -> Numbers:
    """The version that created each physical row; `UNKNOWN_CREATION` where nothing is recorded. Raises as `row_ids`."""
    return _versions(fragment, fragment.inline_created_at_versions)


def update_versions(fragment: pb.DataFragment) -> Numbers:
    """The version that last changed each physical row; `UNKNOWN_CREATION` where nothing is recorded.

    Raises as `row_ids`.
    """
    return _versions(fragment, fragment.inline_last_updated_at_versions)


def check_versions(fragment: pb.DataFragment) -> None:
    """Raise `InvalidTransaction` unless recorded row versions are one for each row. Runs are not expanded."""
    for name in ("inline_created_at_versions", "inline_last_updated_at_versions"):
        encoded = getattr(fragment, name)
        if not encoded:
            continue
        try:
            runs = decode_message(pb.RowDatasetVersionSequence, encoded, _FREE_MESSAGES).runs
        except DecodeError as error:
            raise InvalidTransaction(f"fragment {fragment.id}: {name} are not a sequence: {error}") from error
        rows = sum(_length(run.span) for run in runs)
        if rows != fragment.physical_rows:
            raise InvalidTransaction(
                f"fragment {fragment.id}: {name} are of {rows} rows, expected {fragment.physical_rows}"
            )


def encode_row_id_range(start: int, end: int) -> bytes:
    """The ids from `start` up to `end`, exclusive."""
    return pb.RowIdSequence(segments=[_range(start, end)]).SerializeToString()


def encode_row_ids(ids: Numbers) -> bytes:
    """Encode any ids, keeping their order, in the smallest of the usual forms."""
    if len(ids) == 0:
        return b""
    segment = _ascending_segment(ids) if bool(np.all(ids[1:] > ids[:-1])) else pb.U64Segment(array=_encode_array(ids))
    return pb.RowIdSequence(segments=[segment]).SerializeToString()


def encode_versions(versions: Numbers) -> bytes:
    """One version per row, as runs over row offsets."""
    sequence = pb.RowDatasetVersionSequence()
    changes = np.flatnonzero(versions[1:] != versions[:-1]) + 1
    bounds = [0, *changes.tolist(), len(versions)] if len(versions) else []
    for start, end in pairwise(bounds):
        sequence.runs.add(span=_range(start, end), version=int(versions[start]))
    return sequence.SerializeToString()


def encode_uniform_versions(rows: int, version: int) -> bytes:
    """The same version for every row."""
    runs = [pb.RowDatasetVersionRun(span=_range(0, rows), version=version)]
    return pb.RowDatasetVersionSequence(runs=runs).SerializeToString()


def _inline_segments(fragment: pb.DataFragment) -> Sequence[pb.U64Segment]:
    if fragment.HasField("external_row_ids"):
        raise UnsupportedFeature(f"fragment {fragment.id}: its row ids are in another file")
    return _segments(fragment)


def _segments(fragment: pb.DataFragment) -> Sequence[pb.U64Segment]:
    try:
        return decode_message(pb.RowIdSequence, fragment.inline_row_ids, _FREE_MESSAGES).segments
    except DecodeError as error:
        raise CorruptFile(f"fragment {fragment.id}: its row ids are not a sequence: {error}") from error


def _check_count(rows: int) -> None:
    if rows > MAX_ROWS:
        raise UnsupportedFeature(f"a fragment has {rows} rows to be expanded one by one: expected at most {MAX_ROWS}")


def _versions(fragment: pb.DataFragment, encoded: bytes) -> Numbers:
    _check_count(fragment.physical_rows)
    try:
        runs = decode_message(pb.RowDatasetVersionSequence, encoded, _FREE_MESSAGES).runs
    except DecodeError as error:
        raise CorruptFile(f"fragment {fragment.id}: its row versions are not a sequence: {error}") from error
    versions = np.full(fragment.physical_rows, UNKNOWN_CREATION, np.uint64)
    begin = 0
    for run in runs:
        if begin >= fragment.physical_rows:
            break
        end = begin + len(_expand(run.span))
        versions[begin:end] = run.version
        begin = end
    return versions


def _range(start: int, end: int) -> pb.U64Segment:
    return pb.U64Segment(range=pb.U64Segment.Range(start=start, end=end))


def _ascending_segment(ids: Numbers) -> pb.U64Segment:
    """The form that takes the fewest bytes: about 4 per hole, a bit per slot, or 2 per id."""
    start, end = int(ids[0]), int(ids[-1]) + 1
    holes, slots = end - start - len(ids), -(-(end - start) // 8)
    if holes == 0:
        return _range(start, end)
    smallest = min(4 * holes, slots, 2 * len(ids))
    if smallest == 4 * holes:
        missing = np.setdiff1d(np.arange(start, end, dtype=np.uint64), ids, assume_unique=True)
        holed = pb.U64Segment.RangeWithHoles(start=start, end=end, holes=_encode_array(missing))
        return pb.U64Segment(range_with_holes=holed)
    if smallest == slots:
        bits = np.zeros(end - start, np.uint8)
        bits[ids - np.uint64(start)] = 1
        bitmap = np.packbits(bits, bitorder="little").tobytes()
        return pb.U64Segment(range_with_bitmap=pb.U64Segment.RangeWithBitmap(start=start, end=end, bitmap=bitmap))
    return pb.U64Segment(sorted_array=_encode_array(ids))


def _length(segment: pb.U64Segment) -> int:
    if segment.WhichOneof("segment") == "range":
        return max(segment.range.end - segment.range.start, 0)
    return len(_expand(segment))


def _expand(segment: pb.U64Segment) -> Numbers:
    for extent in (segment.range, segment.range_with_holes, segment.range_with_bitmap):
        _check_count(extent.end - extent.start)
    match segment.WhichOneof("segment"):
        case "range":
            return np.arange(segment.range.start, segment.range.end, dtype=np.uint64)
        case "range_with_holes":
            holed = segment.range_with_holes
            span = np.arange(holed.start, holed.end, dtype=np.uint64)
            return span[~np.isin(span, _decode_array(holed.holes))]
        case "range_with_bitmap":
            masked = segment.range_with_bitmap
            span = np.arange(masked.start, masked.end, dtype=np.uint64)
            # Least significant bit first, as all writers do, although the specification's comment says otherwise.
            bits = np.unpackbits(np.frombuffer(masked.bitmap, np.uint8), bitorder="little")
            if len(bits) < len(span):
                raise CorruptFile(f"row id bitmap has {len(bits)} bits, expected {len(span)}")
            kept: Numbers = span[bits[: len(span)].astype(bool)]
            return kept
        case "sorted_array":
            return _decode_array(segment.sorted_array)
        case "array":
            return _decode_array(segment.array)
    raise CorruptFile("row id segment is of an unknown kind")


def _decode_array(array: pb.EncodedU64Array) -> Numbers:
    match array.WhichOneof("array"):
        case "u16_array":
            return _unsigned(array.u16_array.offsets, "<u2") + np.uint64(array.u16_array.base)
        case "u32_array":
            return _unsigned(array.u32_array.offsets, "<u4") + np.uint64(array.u32_array.base)
        case "u64_array":
            return _unsigned(array.u64_array.values, "<u8")
    return np.empty(0, np.uint64)


def _unsigned(data: bytes, form: str) -> Numbers:
    if len(data) % np.dtype(form).itemsize:
        raise CorruptFile(f"row id segment has {len(data)} bytes of numbers that take {np.dtype(form).itemsize} each")
    numbers: Numbers = np.frombuffer(data, form).astype(np.uint64)
    return numbers


def _encode_array(values: Numbers) -> pb.EncodedU64Array:
    base = int(values.min())
    offsets = values - np.uint64(base)
    span = int(offsets.max())
    if span <= np.iinfo(np.uint16).max:
        u16 = pb.EncodedU64Array.U16Array(base=base, offsets=offsets.astype("<u2").tobytes())
        return pb.EncodedU64Array(u16_array=u16)
    if span <= np.iinfo(np.uint32).max:
        u32 = pb.EncodedU64Array.U32Array(base=base, offsets=offsets.astype("<u4").tobytes())
        return pb.EncodedU64Array(u32_array=u32)
    return pb.EncodedU64Array(u64_array=pb.EncodedU64Array.U64Array(values=values.astype("<u8").tobytes()))


def _concatenate(parts: Iterable[Numbers]) -> Numbers:
    collected: list[Numbers] = []
    count = 0
    for part in parts:
        collected.append(part)
        count += len(part)  # a running count, because there can be a segment for every row
        _check_count(count)
    return np.concatenate(collected) if collected else np.empty(0, np.uint64)

"""Row id sequences: every form is decoded, encoding is lossless, and pylance writes the same bytes."""

import itertools
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import CorruptFile, UnsupportedFeature
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.row_ids import (
    creation_versions,
    encode_row_id_range,
    encode_row_ids,
    encode_uniform_versions,
    encode_versions,
    other_row_ids,
    row_id_bounds,
    row_ids,
    update_versions,
)
from tests.transaction.tables import make_table

IDS = st.lists(st.integers(0, 2**64 - 2), max_size=40, unique=True)
DENSE = st.lists(st.integers(1000, 1100), min_size=1, max_size=90, unique=True)


def carrying(sequence: bytes, count: int = 0) -> pb.DataFragment:
    return pb.DataFragment(inline_row_ids=sequence, physical_rows=count)


@given(IDS | DENSE | DENSE.map(sorted))
def test_row_ids_keep_their_order(ids: list[int]) -> None:
    fragment = carrying(encode_row_ids(np.array(ids, np.uint64)))
    assert row_ids(fragment).tolist() == ids
    low, high = row_id_bounds(fragment)
    assert (low, high) == (min(ids), max(ids)) if ids else low > high


@given(IDS | DENSE | DENSE.map(sorted), IDS | DENSE)
def test_other_row_ids_are_those_that_a_fragment_does_not_carry(carried: list[int], ids: list[int]) -> None:
    fragment = carrying(encode_row_ids(np.array(carried, np.uint64)))
    found = other_row_ids(np.array(ids, np.uint64), fragment)
    assert found.tolist() == [number for number in ids if number not in carried]


def test_a_range_is_not_expanded_to_find_other_row_ids() -> None:
    fragment = carrying(encode_row_id_range(5, 2**60))
    assert other_row_ids(np.array([2**61, 4, 5, 2**60 - 1, 2**60], np.uint64), fragment).tolist() == [2**61, 4, 2**60]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=50))
def test_row_versions_are_decoded_by_row(versions: list[int]) -> None:
    encoded = encode_versions(np.array(versions, np.uint64))
    fragment = pb.DataFragment(
        physical_rows=len(versions), inline_created_at_versions=encoded, inline_last_updated_at_versions=encoded
    )
    assert creation_versions(fragment).tolist() == versions
    assert update_versions(fragment).tolist() == versions
    runs = pb.RowDatasetVersionSequence.FromString(encoded).runs
    assert len(runs) == 1 + sum(a != b for a, b in itertools.pairwise(versions))


def test_one_version_for_all_rows_is_one_run() -> None:
    assert encode_uniform_versions(7, 3) == encode_versions(np.full(7, 3, np.uint64))


def test_unrecorded_rows_are_of_version_one() -> None:
    assert creation_versions(pb.DataFragment(physical_rows=3)).tolist() == [1, 1, 1]


def test_the_bitmap_is_least_significant_bit_first() -> None:
    masked = pb.U64Segment.RangeWithBitmap(start=10, end=13, bitmap=b"\x05")
    sequence = pb.RowIdSequence(segments=[pb.U64Segment(range_with_bitmap=masked)])
    assert row_ids(carrying(sequence.SerializeToString())).tolist() == [10, 12]


def test_segments_are_concatenated() -> None:
    sequence = pb.RowIdSequence.FromString(encode_row_id_range(5, 7))
    sequence.segments.extend(pb.RowIdSequence.FromString(encode_row_ids(np.array([9, 3], np.uint64))).segments)
    assert row_ids(carrying(sequence.SerializeToString())).tolist() == [5, 6, 9, 3]


@pytest.mark.slow
def test_a_segment_for_every_row_takes_no_longer_than_its_rows() -> None:
    """What a merge leaves behind when it moved rows from here and there."""

    def seconds(rows: int) -> float:
        sequence = pb.RowIdSequence(
            segments=[pb.U64Segment(range=pb.U64Segment.Range(start=2 * n, end=2 * n + 1)) for n in range(rows)]
        )
        fragment = pb.DataFragment(physical_rows=rows, inline_row_ids=sequence.SerializeToString())
        started = time.process_time()
        assert len(row_ids(fragment)) == rows
        return time.process_time() - started

    few = min(seconds(4_000) for _ in range(3))
    many = min(seconds(32_000) for _ in range(3))
    assert many < 24 * few


def test_a_short_bitmap_is_corrupt() -> None:
    masked = pb.U64Segment.RangeWithBitmap(start=0, end=9, bitmap=b"\xff")
    sequence = pb.RowIdSequence(segments=[pb.U64Segment(range_with_bitmap=masked)])
    with pytest.raises(CorruptFile, match="8 bits, expected 9"):
        row_ids(carrying(sequence.SerializeToString()))


def test_row_ids_in_an_external_file_are_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="another file"):
        row_ids(pb.DataFragment(external_row_ids=pb.ExternalFile(path="x")))


@pytest.mark.parametrize("where", ["id % 2 = 0", "id % 7 = 0", "id < 3 or id > 90", "id % 10 < 9"])
def test_rows_that_moved_are_written_as_pylance_does(tmp_path: Path, where: str) -> None:
    table = make_table(tmp_path, (0, 100), stable_row_ids=True)
    table.open().update({"x": "0"}, where=where)
    written = table.head().manifest.fragments[-1]
    assert encode_row_ids(row_ids(written)) == written.inline_row_ids

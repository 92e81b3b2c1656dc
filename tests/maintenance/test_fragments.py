"""Which fragments are worth rewriting."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyroaring import BitMap

from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.maintenance.fragments import FragmentPlan, plan_fragments
from namespace_server.directory.maintenance.policy import Policy

POLICY = Policy(target_rows=100, min_fragments=3)


def fragment(number: int, rows: int, deleted: int = 0, size: int = 0) -> pb.DataFragment:
    message = pb.DataFragment(id=number, physical_rows=rows, files=[pb.DataFile(file_size_bytes=size)])
    if deleted:
        message.deletion_file.num_deleted_rows = deleted
    return message


def version(fragments: Sequence[pb.DataFragment], *covered: Sequence[int], name: str = "i") -> ManifestFile:
    """A version with an index segment over each of these lists of fragments."""
    segments = [pb.IndexMetadata(name=name, fragment_bitmap=BitMap(ids).serialize()) for ids in covered]
    indices = pb.IndexSection(indices=segments) if segments else None
    return ManifestFile(b"", pb.Manifest(fragments=fragments), None, indices)


def plan(*rows: int, policy: Policy = POLICY) -> tuple[int, int] | None:
    """The numbers of small fragments and of those with deleted rows."""
    found = plan_fragments(version([fragment(number, count) for number, count in enumerate(rows)]), policy)
    return None if found is None else (found.small, found.deleted)


def test_small_neighbours_are_joined() -> None:
    assert plan(10, 10, 10) == (3, 0)
    assert plan(100, 10, 10, 10, 100) == (3, 0)


def test_few_are_left_alone() -> None:
    assert plan() is None
    assert plan(10, 10) is None
    assert plan(10, 10, 100) is None
    assert plan(10, 100, 10, 100, 10) is None, "no two are neighbours"
    assert plan(100, 100, 100, 100) is None


def test_each_run_of_neighbours_counts() -> None:
    assert plan(10, 10, 100, 10, 10, 100, 10) == (4, 0)


def test_a_table_that_is_not_to_be_compacted() -> None:
    assert plan(10, 10, 10, policy=Policy(compact=False)) is None


def test_one_fragment_with_many_deleted_rows() -> None:
    file = version([fragment(0, 100, deleted=11, size=7), fragment(1, 100, deleted=10)])
    assert plan_fragments(file, POLICY) == FragmentPlan(0, 1, 7, 100, 0)
    assert plan_fragments(file, Policy(target_rows=100, deleted_share=0.2)) is None


def test_a_fragment_that_does_not_tell_its_rows_is_left() -> None:
    assert plan(0, 0, 0, 0) is None


@pytest.mark.parametrize("covered", [[[0, 1], [2, 3]], [[1, 3]]])
def test_what_other_index_segments_cover_is_not_joined(covered: list[list[int]]) -> None:
    found = plan_fragments(version([fragment(n, 10) for n in range(4)], *covered), POLICY)
    assert (None if found is None else found.small) == (4 if len(covered) == 2 else None)


def test_ids_are_reserved_for_all_new_fragments_of_a_rewrite_of_indexed_ones() -> None:
    small = [fragment(number, 10) for number in range(6)]
    indexed = plan_fragments(version(small, [0, 1, 2]), POLICY)
    assert indexed is not None
    assert (indexed.small, indexed.reserved) == (6, 6)
    later = plan_fragments(version(small, [9]), POLICY)
    assert later is not None
    assert later.reserved == 0
    system = plan_fragments(version(small, [0, 1, 2], name="__lance_mem_wal"), POLICY)
    assert system is not None
    assert system.reserved == 0


def test_a_share_of_deleted_rows_is_compared_as_lance_does() -> None:
    """In numbers of 64 bits, 3 are not more than a share of 0.3 of 10 rows."""
    file = version([fragment(0, 10, deleted=3)])
    assert plan_fragments(file, Policy(target_rows=100, deleted_share=0.3)) is None
    assert plan_fragments(file, Policy(target_rows=100, deleted_share=0.29)) is not None


def test_indices_from_before_a_compaction_keep_a_version_as_it_is() -> None:
    small = [fragment(number, 10) for number in range(6)]
    assert plan_fragments(version(small, [0, 1], name="__lance_frag_reuse"), POLICY) is None


def test_a_large_fragment_may_become_several() -> None:
    found = plan_fragments(version([fragment(0, 1000, deleted=900)], [0]), POLICY)
    assert found is not None
    assert found.reserved == 11


def test_wide_rows_make_fragments_of_fewer_rows() -> None:
    policy = Policy(target_rows=1000, target_bytes=1000, min_fragments=3)
    wide = plan_fragments(version([fragment(number, 3, size=90) for number in range(3)]), policy)
    assert wide is not None
    assert wide.target_rows == 32, "33 would fit: a power of two does not move with each row"
    assert plan_fragments(version([fragment(number, 32, size=960) for number in range(3)]), policy) is None
    narrow = plan_fragments(version([fragment(number, 3, size=3) for number in range(3)]), policy)
    assert narrow is not None
    assert narrow.target_rows == 1000


def test_rows_that_are_wider_than_a_file_may_be_are_a_fragment_each() -> None:
    policy = Policy(target_rows=1000, target_bytes=1000, min_fragments=3)
    assert plan_fragments(version([fragment(number, 3, size=9_000) for number in range(3)]), policy) is None

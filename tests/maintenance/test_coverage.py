"""Which indices are worth work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from pyroaring import BitMap

from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.indices import FRAGMENT_REUSE, MEM_WAL
from namespace_server.directory.maintenance.coverage import IndexPlan, plan_indices
from namespace_server.directory.maintenance.policy import Policy

POLICY = Policy(unindexed_rows=20, unindexed_share=0.5, max_segments=2)


def version(rows: Sequence[int], indices: Mapping[str, Sequence[Sequence[int]]], deleted: int = 0) -> ManifestFile:
    """A version with a fragment for each of these numbers, and for each name index segments over such fragments."""
    fragments = [pb.DataFragment(id=number, physical_rows=count) for number, count in enumerate(rows)]
    if deleted:
        fragments[-1].deletion_file.num_deleted_rows = deleted
    segments = [
        pb.IndexMetadata(name=name, fragment_bitmap=BitMap(ids).serialize())
        for name, covered in indices.items()
        for ids in covered
    ]
    return ManifestFile(b"", pb.Manifest(fragments=fragments), None, pb.IndexSection(indices=segments))


def test_rows_that_an_index_does_not_cover() -> None:
    assert plan_indices(version([20, 20], {"i": [[0]]}), POLICY) == IndexPlan(("i",), 20)
    assert plan_indices(version([20, 19], {"i": [[0]]}), POLICY) is None
    assert plan_indices(version([20, 20], {"i": [[0], [1]]}), POLICY) is None
    assert plan_indices(version([20, 20], {"i": [[0], [7]]}), POLICY) == IndexPlan(("i",), 20)


def test_their_share_of_the_table() -> None:
    assert plan_indices(version([30, 30], {"i": [[0]]}), POLICY) == IndexPlan(("i",), 30)
    assert plan_indices(version([31, 30], {"i": [[0]]}), POLICY) is None


def test_deleted_rows_do_not_count() -> None:
    assert plan_indices(version([20, 21], {"i": [[0]]}, deleted=1), POLICY) == IndexPlan(("i",), 20)
    assert plan_indices(version([20, 20], {"i": [[0]]}, deleted=1), POLICY) is None


def test_each_index_by_itself() -> None:
    indices = {"j": [[0]], "none": [[]], "i": [[1]], "whole": [[0, 1]]}
    assert plan_indices(version([20, 20], indices), POLICY) == IndexPlan(("i", "j", "none"), 80)


def test_many_segments() -> None:
    assert plan_indices(version([1, 1, 1], {"i": [[0], [1], [2]]}), POLICY) == IndexPlan(("i",), 0)
    assert plan_indices(version([1, 1], {"i": [[0], [1]]}), POLICY) is None


def test_what_is_left_alone() -> None:
    assert plan_indices(version([20, 20], {"i": [[0]]}), replace(POLICY, optimize_indices=False)) is None
    assert plan_indices(version([20, 20], {MEM_WAL: [[0]]}), POLICY) is None
    assert plan_indices(version([20, 20], {MEM_WAL: [[0]], "i": [[0]]}), POLICY) == IndexPlan(("i",), 20)
    assert plan_indices(version([20, 20], {"i": [[0]], FRAGMENT_REUSE: [[0]]}), POLICY) is None
    assert plan_indices(ManifestFile(b"", pb.Manifest(), None, None), POLICY) is None


@pytest.mark.parametrize("name", ["i", "j"])
def test_a_segment_that_does_not_say_what_it_covers(name: str) -> None:
    file = version([20, 20], {"i": [[0]]})
    assert file.indices is not None
    file.indices.indices.add(name=name)
    assert plan_indices(file, POLICY) == (None if name == "i" else IndexPlan(("i",), 20))

"""Compactions planned by pylance and committed by this engine: stock pylance reads them and commits on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import pytest
from pyroaring import BitMap

from lance_core.errors import InvalidTransaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.operations import Append, CreateIndex, ReserveFragments, Rewrite
from tests.commit.flavours import FLAVOURS, IDS, Flavour, commit, make
from tests.commit.outcomes import PYLANCE, outcome_of
from tests.transaction.tables import Table, borrow, make_table, rows


def compaction(table: Table) -> Rewrite:
    operation = borrow(table, lambda dataset: dataset.optimize.compact_files())
    assert isinstance(operation, Rewrite)
    return operation


@pytest.fixture(params=["plain", "stable row ids", "v1 names", "branch", "indexed", "indexed, stable"])
def flavour(request: pytest.FixtureRequest) -> Flavour:
    return FLAVOURS[request.param]


@pytest.fixture
def table(tmp_path: Path, flavour: Flavour) -> Table:
    return make(tmp_path, flavour)


def test_commits_of_pylance_and_this_engine_alternate(table: Table, flavour: Flavour) -> None:
    columns = ["id", "_row_created_at_version"] if flavour.stable_row_ids else ["id"]
    values = table.open().to_table(columns=columns).to_pylist()
    operation = compaction(table)
    stale = table.open()
    reserved = commit(table, ReserveFragments(1), flavour)
    before = table.head()
    committed = commit(table, operation, flavour, read_version=stale.version)

    assert (committed.version, committed.rebased) == (reserved.version + 1, True)
    dataset = table.open()
    dataset.validate()
    assert [fragment.fragment_id for fragment in dataset.get_fragments()] == [2]
    assert dataset.to_table(columns=columns).to_pylist() == values
    if not flavour.indexed:  # pylance cannot show a rewritten index, its own neither
        assert type(dataset.read_transaction(committed.version).operation).__name__ == "Rewrite"
    assert lineage_break(before, table.head()) is None
    assert dataset.to_table(filter="id in (3, 17)", columns=["id"])["id"].to_pylist() == [3, 17]
    if flavour.indexed:
        assert "ScalarIndexQuery" in dataset.scanner(filter="id = 7").explain_plan()
    if flavour.stable_row_ids:
        assert dataset._take_rows([3, 17], columns=["id"])["id"].to_pylist() == [3, 17]  # type: ignore[attr-defined]

    lance.write_dataset(rows(100, 103), stale, mode="append").validate()
    commit(table, Append(table.stage(rows(200, 201))), flavour)
    table.open().delete("id = 3")
    table.open().validate()
    assert table.ids() == sorted([i for i in IDS if i != 3] + [100, 101, 102, 200])


def test_unreserved_fragment_ids_are_assigned_by_the_commit(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    operation = compaction(table)
    group = pb.Transaction.Rewrite.RewriteGroup.FromString(operation.groups[0].SerializeToString())
    group.new_fragments[0].id = 0
    commit(table, replace(operation, groups=(group,)), Flavour())
    table.open().validate()
    assert table.ids() == list(range(20))
    assert table.head().manifest.fragments[0].id == table.head().manifest.max_fragment_id == 2


def test_an_index_without_a_rewritten_segment_does_not_cover_new_fragments(tmp_path: Path) -> None:
    """A rewrite may leave indices behind: what they cover is gone, and rows are found without them."""
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().create_scalar_index("id", "BTREE")
    operation = replace(compaction(table), rewritten_indices=())
    commit(table, operation, Flavour())
    table.open().validate()
    assert table.open().to_table(filter="id in (3, 17)", columns=["id"])["id"].to_pylist() == [3, 17]
    table.open().optimize.optimize_indices()
    assert table.open().to_table(filter="id in (3, 17)", columns=["id"])["id"].to_pylist() == [3, 17]


@pytest.mark.parametrize("stable_row_ids", [False, True])
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "NGRAM", "INVERTED"])
@pytest.mark.parametrize("remapped", [False, True])
def test_rows_are_found_through_every_kind_of_index(
    tmp_path: Path, kind: str, stable_row_ids: bool, remapped: bool
) -> None:
    """Some segments speak of places in fragments even where row ids are stable: those must not follow the rows."""
    table = make_table(tmp_path, (0, 10), (10, 20), stable_row_ids=stable_row_ids)
    table.open().delete("id = 5")
    column, predicate = ("id", "id in (3, 17)") if kind not in {"NGRAM", "INVERTED"} else ("s", "contains(s, '17')")
    table.open().create_scalar_index(column, kind)
    expected = table.open().to_table(filter=predicate, columns=["id"])["id"].to_pylist()
    operation = compaction(table)
    commit(table, operation if remapped else replace(operation, rewritten_indices=()), Flavour())
    assert table.open().to_table(filter=predicate, columns=["id"])["id"].to_pylist() == expected != []
    if kind == "INVERTED":
        assert table.open().to_table(full_text_query="17")["id"].to_pylist() == [17]


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_a_branch_with_an_index_of_its_parent_is_compacted(tmp_path: Path, stable_row_ids: bool) -> None:
    """Stock pylance looks for the rewritten segment below the parent, and can no longer search the branch."""
    table = make_table(tmp_path, (0, 10), (10, 20), stable_row_ids=stable_row_ids)
    table.open().create_scalar_index("id", "BTREE")
    table.open().create_branch("dev")
    branch = table.branch("dev")
    commit(branch, compaction(branch), Flavour(branch="dev"))
    found = branch.open().scanner(filter="id in (3, 17)", columns=["id"])
    assert "ScalarIndexQuery" in found.explain_plan()
    assert found.to_table()["id"].to_pylist() == [3, 17]
    branch.open().validate()


def edit(operation: Rewrite, change: Callable[[pb.Transaction.Rewrite.RewriteGroup], object]) -> Rewrite:
    group = pb.Transaction.Rewrite.RewriteGroup.FromString(operation.groups[0].SerializeToString())
    change(group)
    return replace(operation, groups=(group,))


INVALID: dict[str, tuple[Callable[[pb.Transaction.Rewrite.RewriteGroup], object], str]] = {
    "unknown fragment": (lambda g: setattr(g.old_fragments[0], "id", 9), "fragment 9 is not in the table"),
    "other files": (lambda g: setattr(g.old_fragments[0].files[0], "path", "x"), r"fragment 0 .* as it was compacted"),
    "other deletions": (
        lambda g: setattr(g.old_fragments[0].deletion_file, "id", 5),
        r"fragment 0 .* as it was compacted",
    ),
    "lost rows": (lambda g: setattr(g.new_fragments[0], "physical_rows", 19), "has 19 rows, expected 20"),
    "an id in use": (lambda g: setattr(g.new_fragments[0], "id", 2), "fragment 2 has an id that is in use"),
}


@pytest.mark.parametrize("name", INVALID)
def test_a_rewrite_that_contradicts_the_table_is_refused(tmp_path: Path, name: str) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    change, expected = INVALID[name]
    operation = edit(compaction(table), change)
    lance.write_dataset(rows(20, 30), table.uri, mode="append")
    with pytest.raises(InvalidTransaction, match=expected):
        commit(table, operation, Flavour())


def test_an_index_must_cover_a_group_completely_or_not_at_all(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    operation = compaction(table)
    created = borrow(table, lambda d: d.create_scalar_index("id", "BTREE"))
    assert isinstance(created, CreateIndex)
    index = pb.IndexMetadata.FromString(created.new[0].SerializeToString())
    index.fragment_bitmap = BitMap([0]).serialize()
    commit(table, CreateIndex((index,)), Flavour())
    moved = pb.Transaction.Rewrite.RewrittenIndex(old_id=index.uuid, new_id=pb.UUID(uuid=b"u" * 16))
    with pytest.raises(InvalidTransaction, match="index 'id_idx' covers fragment 0 and not 1"):
        commit(table, replace(operation, rewritten_indices=(moved,)), Flavour())
    with pytest.raises(InvalidTransaction, match="an index segment is rewritten twice"):
        commit(table, replace(operation, rewritten_indices=(moved, moved)), Flavour())


OK, R, I = "committed", "retryable", "incompatible"  # noqa: E741

EXPECTED: dict[str, str] = {
    "append": OK,
    "delete, same row": R,
    "delete of the fragment": R,
    "update, same row": R,
    "columns": R,
    "overwrite": I,
    "create_index": R,
    "rewrite": R,
    "merge": R,
    "project": OK,
    "restore": I,
    "config, same key": OK,
    "schema metadata": OK,
    "data_replacement": R,
    "update_bases": OK,
}


@pytest.mark.parametrize("theirs", EXPECTED)
def test_verdict_on_a_stale_compaction(tmp_path: Path, theirs: str) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().create_scalar_index("id", "BTREE")
    commit(table, ReserveFragments(1), Flavour())
    read_version = table.open().version
    operation = edit(compaction(table), lambda group: setattr(group.new_fragments[0], "id", 2))
    PYLANCE[theirs](table.open())
    before = table.ids()
    assert outcome_of(table, operation, read_version) == EXPECTED[theirs]
    table.open().validate()
    assert table.ids() == before


def test_pylance_judges_a_compaction_by_the_same_rules(tmp_path: Path) -> None:
    """The other direction: ours is committed, a stale pylance comes after."""
    table = make_table(tmp_path, (0, 10), (10, 20))
    stale = [table.open() for _ in range(2)]
    commit(table, compaction(table), Flavour())
    with pytest.raises(OSError, match="Too many concurrent writers"):
        stale[0].update({"x": "1"}, where="id = 3", conflict_retries=0)
    with pytest.raises(OSError, match="preempted by concurrent transaction Rewrite"):
        stale[1].create_scalar_index("x", "BTREE")
    assert table.ids() == list(range(20))

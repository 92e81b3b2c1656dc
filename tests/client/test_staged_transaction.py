"""Transactions over files that were written by other means, as Spark tasks do."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

from collections.abc import Callable

import lance
import pytest
from lance.fragment import FragmentMetadata, write_fragments

from namespace_client import InvalidCall, RetryableConflict, StagedTransaction, TableState
from table_data.batch_operations import TableDeclaration, VersionAssertion
from table_data.descriptions import append_operation, delete_operation, overwrite_operation
from tests.client.scene import SCHEMA, Scene, rows, seen


def begin(scene: Scene, **options: str) -> StagedTransaction:
    return StagedTransaction(scene.catalog.access, namespace=[scene.namespace], **options)


def known(tx: StagedTransaction, name: str = "t") -> TableState:
    state = tx.describe(name)
    assert state is not None
    return state


def written(state: TableState, *ids: int) -> list[FragmentMetadata]:
    """Fragments with these rows, written by pylance at the location of the table."""
    return write_fragments(rows(*ids), state.uri, schema=SCHEMA, mode="create" if state.version is None else "append")


def test_a_new_table_is_created_at_the_location_where_its_files_are(scene: Scene) -> None:
    with begin(scene, message="load") as tx:
        assert tx.describe("t") is None
        state = tx.declare("t", properties={"owner": "tests"})
        assert tx.describe("t") == state
        tx.stage("t", overwrite_operation(SCHEMA, written(state, 1, 2)), call="overwrite")
        tx.stage("t", append_operation(written(state, 3)), call="append")
        assert scene.catalog.access.table((scene.namespace, "t")) is None

    assert scene.ids() == [1, 2, 3]
    assert (scene.uri(), scene.version()) == (state.uri, 1)
    assert scene.committed().transaction_properties["__lance_commit_message"] == "load"
    [table] = tx.result.tables
    assert (table.calls, table.version, table.new) == (("overwrite", "append"), 1, True)
    stored = scene.catalog.access.table((scene.namespace, "t"))
    assert stored is not None
    assert stored.properties == {"owner": "tests"}


def test_staged_files_of_many_tables_are_committed_in_one_version(scene: Scene) -> None:
    scene.make("a", 1)
    scene.make("b", *range(20))
    before = scene.catalog_version()
    with begin(scene) as tx:
        tx.stage("a", append_operation(written(known(tx, "a"), 2)), call="append")
        state = known(tx, "b")
        stored = lance.dataset(state.uri, version=state.version)
        part = stored.get_fragment(1).delete("id = 15")
        tx.stage("b", delete_operation([part], [0], "id < 10 or id = 15"), call="delete")

    assert tx.result.catalog_version == before + 1
    assert scene.ids("a") == [1, 2]
    assert scene.ids("b") == [*range(10, 15), *range(16, 20)]
    assert {table.id[-1]: table.calls for table in tx.result.tables} == {"a": ("append",), "b": ("delete",)}


def test_staged_files_are_rebased_over_other_commits(scene: Scene) -> None:
    scene.make("t", 1)
    with begin(scene) as tx:
        tx.stage("t", append_operation(written(known(tx), 2)), call="append")
        with scene.catalog.begin() as other:
            other.append("t", rows(3))

    assert scene.ids() == [1, 2, 3]
    assert tx.result.tables[0].rebased


def test_a_conflict_names_the_staged_call(scene: Scene) -> None:
    scene.make("t", 1, 2)
    with pytest.raises(RetryableConflict) as caught, begin(scene) as tx:
        state = known(tx)
        part = lance.dataset(state.uri, version=state.version).get_fragment(0).delete("id = 1")
        tx.stage("t", delete_operation([part], [], "id = 1"), call="delete where id = 1")
        with scene.catalog.begin() as other:
            other.update("t", {"v": "0"}, where="id = 1")

    assert caught.value.conflicts[0].redo == ("delete where id = 1",)


def test_staged_files_and_calls_of_a_transaction_go_together(scene: Scene) -> None:
    scene.make("t", *range(5))
    with scene.catalog.begin() as tx:
        tx.stage("t", append_operation(written(known(tx), 9)), call="append")
        assert seen(tx) == [*range(5), 9]
        tx.delete("t", "id = 0")

    assert scene.ids() == [1, 2, 3, 4, 9]
    assert scene.version() == 2


def test_a_declared_table_without_changes_is_not_created(scene: Scene) -> None:
    scene.make("a", 1)
    with begin(scene) as tx:
        tx.declare("t")
        tx.stage("a", append_operation(written(known(tx, "a"), 2)), call="append")

    assert not any(isinstance(operation, TableDeclaration) for operation in tx._operations)
    assert scene.catalog.access.table((scene.namespace, "t")) is None


def test_an_exception_in_the_block_commits_nothing(scene: Scene) -> None:
    scene.make("t", 1)
    with pytest.raises(KeyError), begin(scene) as tx:
        tx.stage("t", append_operation(written(known(tx), 2)), call="append")
        raise KeyError("stop")
    with pytest.raises(InvalidCall, match="is over"):
        tx.commit()

    assert scene.version() == 1


def test_commit_ends_the_block(scene: Scene) -> None:
    scene.make("t", 1)
    with begin(scene) as tx:
        tx.stage("t", append_operation(written(known(tx), 2)), call="append")
        result = tx.commit()
        assert scene.ids() == [1, 2]
        with pytest.raises(InvalidCall, match="is over"):
            tx.commit()

    assert tx.result is result
    assert scene.version() == 2
    with pytest.raises(InvalidCall, match="has not begun"):
        begin(scene).commit()


REFUSED: dict[str, tuple[Callable[[StagedTransaction], object], str]] = {
    "declare what exists": (lambda tx: tx.declare("t"), "exists: expected a new table"),
    "declare twice": (lambda tx: (tx.declare("u"), tx.declare("u")), "exists: expected a new table"),
    "stage for no table": (lambda tx: tx.stage("u", append_operation([]), call="append"), "no such table"),
    "append without a version": (
        lambda tx: tx.stage("u", append_operation(written(tx.declare("u"), 1)), call="append"),
        "append",
    ),
    "read no table": (lambda tx: tx.mark_read("u"), "no such table"),
    "describe no branch": (lambda tx: tx.describe("t", branch="nosuch"), "nosuch"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_does_not_fit_is_refused_and_the_block_goes_on(scene: Scene, name: str) -> None:
    call, message = REFUSED[name]
    scene.make("t", 1)
    with begin(scene) as tx:
        with pytest.raises(InvalidCall, match=message):
            call(tx)
        tx.stage("t", append_operation(written(known(tx), 2)), call="append")

    assert scene.ids() == [1, 2]
    assert [table.id[-1] for table in tx.result.tables] == ["t"]


@pytest.mark.parametrize(("isolation", "asserted"), [("serializable", ["read", "t"]), ("snapshot", [])])
def test_serializable_asserts_tables_that_were_marked_as_read(
    scene: Scene, isolation: str, asserted: list[str]
) -> None:
    scene.make("t", 1)
    scene.make("read", 1)
    scene.make("neither", 1)
    with begin(scene, isolation=isolation) as tx:
        known(tx, "neither")
        tx.stage("t", append_operation(written(known(tx), 2)), call="append")
        tx.mark_read("read")

    found = [operation.id[-1] for operation in tx._operations if isinstance(operation, VersionAssertion)]
    assert sorted(found) == asserted


def test_an_overwrite_after_a_marked_read_asserts_the_version(scene: Scene) -> None:
    scene.make("t", 1)
    with pytest.raises(RetryableConflict, match="expected version 1"), begin(scene) as tx:
        state = known(tx)
        tx.mark_read("t")
        tx.stage("t", overwrite_operation(SCHEMA, written(state, 5)), call="overwrite")
        with scene.catalog.begin() as other:
            other.append("t", rows(2))

    assert scene.ids() == [1, 2]

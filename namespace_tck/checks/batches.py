"""BatchCommitTables: many operations, all or none."""

from __future__ import annotations

from functools import partial
from typing import Any

from namespace_tck.checks.version_commits import entry
from namespace_tck.exchanges import ServerAnswer
from namespace_tck.registry import CheckList, Promise
from namespace_tck.trial import Trial

checks = CheckList()


def _commit(t: Trial, *operations: dict[str, Any]) -> ServerAnswer:
    return t.call("batch_commit_tables", None, {"operations": list(operations)})


def _declare(table: list[str], **request: object) -> dict[str, Any]:
    return {"declare_table": {"id": table, **request}}


def _deregister(table: list[str]) -> dict[str, Any]:
    return {"deregister_table": {"id": table}}


def _delete(table: list[str], start: int, end: int) -> dict[str, Any]:
    return {"delete_table_versions": {"id": table, "ranges": [{"start_version": start, "end_version": end}]}}


def _tables(t: Trial) -> list[str]:
    return t.names("list_tables", t.space, "tables")


@checks("batch_commit_tables", Promise.ATOMICITY, "CommitTableOperation.declare_table")
def declares_several_tables(t: Trial) -> None:
    """Several tables are declared together."""
    _commit(t, *(_declare(t.id(name)) for name in ("a", "b", "c"))).ok()
    t.equal(_tables(t), ["a", "b", "c"], "tables")


@checks("batch_commit_tables", Promise.OBJECTS, "BatchCommitTablesResponse.results")
def answers_results_in_order(t: Trial) -> None:
    """The results come in the order of the operations, and each has the field of its operation."""
    old = t.declared("old")
    found = _commit(t, _declare(t.id("a")), _deregister(old), _declare(t.id("b"))).ok()["results"]
    kinds = [[key for key, value in result.items() if value is not None] for result in found]
    t.equal(kinds, [["declare_table"], ["deregister_table"], ["declare_table"]], "fields of the results")


@checks("batch_commit_tables", Promise.OBJECTS, "CommitTableResult.declare_table")
def answers_the_locations_of_declared_tables(t: Trial) -> None:
    """The result of a declaration holds the location that describe_table answers."""
    found = _commit(t, _declare(t.id("a"))).ok()["results"][0]["declare_table"]
    t.equal(t.call("describe_table", t.id("a")).ok()["location"], found.get("location"), "location")


@checks("batch_commit_tables", Promise.ATOMICITY, "BatchCommitTables")
def mixes_operations(t: Trial) -> None:
    """One batch declares, deregisters and deletes versions."""
    old, made = t.declared("old"), t.table(versions=3)
    _commit(t, _declare(t.id("new")), _deregister(old), _delete(made, 1, 2)).ok()
    t.equal(_tables(t), ["new", "t"], "tables")
    t.equal(t.versions(made), [2, 3], "versions")


@checks("batch_commit_tables", Promise.ATOMICITY, "BatchCommitTablesRequest")
def a_refused_last_operation_undoes_all(t: Trial) -> None:
    """A batch whose last operation is refused changes nothing."""
    taken = t.declared("taken")
    _commit(t, _declare(t.id("a")), _declare(t.id("b")), _declare(taken)).refused(5, 14)
    t.equal(_tables(t), ["taken"], "tables")
    t.call("describe_table", t.id("a")).refused(4)


@checks("batch_commit_tables", Promise.ATOMICITY, "BatchCommitTablesRequest")
def a_refused_first_operation_prevents_all(t: Trial) -> None:
    """A batch whose first operation is refused changes nothing."""
    taken = t.declared("taken")
    _commit(t, _declare(taken), _declare(t.id("a")), _declare(t.id("b"))).refused(5, 14)
    t.equal(_tables(t), ["taken"], "tables")


@checks("batch_commit_tables", Promise.ATOMICITY, "BatchCommitTablesRequest")
def a_missing_table_undoes_all(t: Trial) -> None:
    """A batch that deregisters a table that does not exist is refused with code 4 and changes nothing."""
    _commit(t, _declare(t.id("a")), _deregister(t.id("missing"))).refused(4)
    t.equal(_tables(t), [], "tables")


@checks("batch_commit_tables", Promise.ATOMICITY, "BatchCommitTablesRequest")
def a_missing_namespace_undoes_all(t: Trial) -> None:
    """A batch that declares a table in a namespace that does not exist is refused with code 1 and changes nothing."""
    _commit(t, _declare(t.id("a")), _declare(t.id("missing", "b"))).refused(1)
    t.equal(_tables(t), [], "tables")


@checks("batch_commit_tables", Promise.ATOMICITY, "BatchCommitTablesRequest")
def a_refused_batch_keeps_deregistered_tables(t: Trial) -> None:
    """A table that a refused batch would have deregistered is still there."""
    old, taken = t.declared("old"), t.declared("taken")
    _commit(t, _deregister(old), _declare(taken)).refused(5, 14)
    t.equal(_tables(t), ["old", "taken"], "tables")
    t.call("describe_table", old).ok()


@checks("batch_commit_tables", Promise.ATOMICITY, "BatchCommitTablesRequest")
def a_refused_batch_keeps_versions(t: Trial) -> None:
    """Versions that a refused batch would have deleted are still there."""
    made, taken = t.table(versions=3), t.declared("taken")
    _commit(t, _delete(made, 1, 2), _declare(taken)).refused(5, 14)
    t.equal(t.versions(made), [1, 2, 3], "versions")


@checks("batch_commit_tables", Promise.STORAGE, "CommitTableOperation.create_table_version")
def commits_staged_versions(t: Trial) -> None:
    """Staged versions of two tables are committed together with a declaration."""
    first, second = t.table("a"), t.table("b")
    operations = [{"create_table_version": entry(t, made)} for made in (first, second)]
    found = _commit(t, *operations, _declare(t.id("c"))).ok()["results"]
    t.equal([result["create_table_version"]["version"]["version"] for result in found[:2]], [2, 2], "versions")
    t.equal((t.ids(first), t.ids(second)), ([1, 2, 3, 50], [1, 2, 3, 50]), "ids")


@checks("batch_commit_tables", Promise.ATOMICITY, "CommitTableOperation.create_table_version")
def a_lost_version_undoes_all(t: Trial) -> None:
    """If one staged version was overtaken, the batch is refused with code 14 and no table changes."""
    first, second = t.table("a"), t.table("b")
    operations = [{"create_table_version": entry(t, made)} for made in (first, second)]
    late = entry(t, second, 60)
    t.call("create_table_version", second, {key: late[key] for key in late if key != "id"}).ok()
    _commit(t, *operations, _declare(t.id("c"))).refused(14)
    t.equal((t.versions(first), t.versions(second)), ([1], [1, 2]), "versions")
    t.equal(_tables(t), ["a", "b"], "tables")


@checks("batch_commit_tables", Promise.CONCURRENCY, "BatchCommitTables")
def concurrent_batches_are_all_or_nothing(t: Trial) -> None:
    """Of eight batches that declare the same three tables one succeeds, and its tables are there."""
    names = ("a", "b", "c")
    space = t.space
    operations = [_declare([*space, name]) for name in names]
    t.one_of(t.together([lambda: _commit(t, *operations)] * 8), 5, 14)
    t.equal(_tables(t), ["a", "b", "c"], "tables")


@checks("batch_commit_tables", Promise.CONCURRENCY, "BatchCommitTables")
def overlapping_batches_leave_no_halves(t: Trial) -> None:
    """Of six batches that each declare a table of their own and a shared one, only the winner's own table is there."""
    space = t.space
    shared = [*space, "shared"]
    jobs = [partial(_commit, t, _declare([*space, f"own{number}"]), _declare(shared)) for number in range(6)]
    answers = t.together(jobs)
    won = t.one_of(answers, 5, 14)
    t.equal(_tables(t), [f"own{answers.index(won)}", "shared"], "tables")


@checks("batch_commit_tables", Promise.CONCURRENCY, "BatchCommitTables")
def disjoint_batches_all_succeed(t: Trial) -> None:
    """Eight batches over different tables all succeed."""
    space = t.space
    jobs = [partial(_commit, t, *(_declare([*space, f"{name}{number}"]) for name in "ab")) for number in range(8)]
    for answer in t.together(jobs):
        answer.ok()
    t.equal(len(_tables(t)), 16, "number of tables")


@checks("batch_commit_tables", Promise.CONCURRENCY, "BatchCommitTables")
def readers_see_whole_batches(t: Trial) -> None:
    """A reader that lists tables beside batches of two never sees one of a pair alone."""
    space = t.space

    def write() -> list[list[str]]:
        for number in range(8):
            _commit(t, *(_declare([*space, f"{name}{number}"]) for name in "ab")).ok()
        return []

    def look() -> list[list[str]]:
        return [t.names("list_tables", space, "tables") for _ in range(20)]

    for listed in t.together([write, look, look]):
        for found in listed:
            firsts = {name[1:] for name in found if name[0] == "a"}
            seconds = {name[1:] for name in found if name[0] == "b"}
            t.equal(firsts, seconds, "pairs of tables")


@checks("batch_commit_tables", Promise.ERRORS, "CommitTableOperation")
def refuses_an_operation_without_a_field(t: Trial) -> None:
    """An operation without any field is refused with 400 and code 13, and nothing changes."""
    _commit(t, _declare(t.id("a")), {}).refused(13)
    t.equal(_tables(t), [], "tables")


@checks("batch_commit_tables", Promise.ERRORS, "CommitTableOperation")
def refuses_an_operation_with_two_fields(t: Trial) -> None:
    """An operation with two fields is refused with 400 and code 13, and nothing changes."""
    _commit(t, {**_declare(t.id("a")), **_deregister(t.declared("old"))}).refused(13)
    t.equal(_tables(t), ["old"], "tables")


@checks("batch_commit_tables", Promise.ERRORS, "CommitTableOperation")
def refuses_an_unknown_operation(t: Trial) -> None:
    """An operation of an unknown kind is refused with 400 and code 13, and nothing changes."""
    _commit(t, _declare(t.id("a")), {"drop_everything": {"id": t.space}}).refused(13)
    t.equal(_tables(t), [], "tables")


@checks("batch_commit_tables", Promise.ERRORS, "BatchCommitTablesRequest.operations")
def refuses_a_batch_without_operations(t: Trial) -> None:
    """A request without the field operations is refused with 400 and code 13."""
    t.call("batch_commit_tables", None, {}).refused(13)


@checks("batch_commit_tables", Promise.ERRORS, "BatchCommitTablesRequest.operations")
def refuses_a_table_that_is_declared_twice(t: Trial) -> None:
    """A batch that declares the same table twice is refused, and nothing is declared."""
    _commit(t, _declare(t.id("a")), _declare(t.id("a"))).refused(5, 13, 14)
    t.equal(_tables(t), [], "tables")


@checks("batch_commit_tables", Promise.ERRORS, "DeclareTableRequest.id")
def refuses_an_operation_without_an_id(t: Trial) -> None:
    """An operation without an id is refused with 400 and code 13, and nothing changes."""
    _commit(t, _declare(t.id("a")), {"declare_table": {}}).refused(13)
    t.equal(_tables(t), [], "tables")


@checks("batch_commit_tables", Promise.PROPERTIES, "CommitTableOperation.declare_table")
def declares_with_properties(t: Trial) -> None:
    """The properties of a declaration in a batch are described."""
    t.need_table_properties()
    _commit(t, _declare(t.id("a"), properties={"owner": "tck"})).ok()
    t.holds(t.call("describe_table", t.id("a")).ok().get("properties"), {"owner": "tck"}, "properties")


@checks("batch_commit_tables", Promise.ATOMICITY, "BatchCommitTables")
def commits_a_large_batch(t: Trial) -> None:
    """A batch of two hundred declarations is committed as a whole."""
    names = [f"t{number:03}" for number in range(200)]
    _commit(t, *(_declare(t.id(name)) for name in names)).ok()
    listed = t.listed("list_tables", t.space, "tables")
    t.equal(sorted(listed), names, "tables")

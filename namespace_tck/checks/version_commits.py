"""CreateTableVersion and BatchCreateTableVersions, with manifests that a stock client has staged."""

from __future__ import annotations

from functools import partial
from typing import Any

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()


def staged(t: Trial, table: list[str], number: int = 50) -> dict[str, Any]:
    """An append of the row `number` that is staged and not committed: the request that commits it."""
    t.need("create_table_version" not in t.session.absent, "create_table_version is not served")
    request = t.stock.stage(table, rows([number]))
    return {name: value for name, value in request.items() if name != "id"}


def entry(t: Trial, table: list[str], number: int = 50) -> dict[str, Any]:
    """The same as an entry of a batch."""
    return {"id": table, **staged(t, table, number)}


@checks("create_table_version", Promise.STORAGE, "CreateTableVersion")
def commits_a_staged_version(t: Trial) -> None:
    """A staged manifest becomes the next version, and its rows are in the table."""
    made = t.table()
    found = t.call("create_table_version", made, staged(t, made)).ok()
    t.equal((found.get("version") or {}).get("version"), 2, "version")
    t.equal(t.versions(made), [1, 2], "versions")
    t.equal(t.ids(made), [1, 2, 3, 50], "ids")


@checks("create_table_version", Promise.STORAGE, "CreateTableVersion")
def what_is_staged_is_not_visible(t: Trial) -> None:
    """Before the commit neither the version nor its rows are visible."""
    made = t.table()
    staged(t, made)
    t.equal(t.versions(made), [1], "versions")
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("create_table_version", Promise.STORAGE, "CreateTableVersion")
def describes_what_was_committed(t: Trial) -> None:
    """A version that was created can be described at once."""
    made = t.table()
    t.call("create_table_version", made, staged(t, made)).ok()
    t.call("describe_table_version", made, {"version": 2}).ok()


@checks("create_table_version", Promise.ERRORS, "CreateTableVersionRequest.version")
def refuses_a_version_that_exists(t: Trial) -> None:
    """A version that exists with another content is refused with 409 and code 14, and stays as it was."""
    made = t.table()
    first, second = staged(t, made, 50), staged(t, made, 60)
    t.call("create_table_version", made, first).ok()
    t.call("create_table_version", made, second).refused(14)
    t.equal(t.ids(made), [1, 2, 3, 50], "ids")


@checks("create_table_version", Promise.ERRORS, "CreateTableVersionRequest.manifest_path")
def refuses_a_manifest_that_does_not_exist(t: Trial) -> None:
    """A manifest that does not exist is refused, and no version is created."""
    made = t.table()
    request = staged(t, made)
    path, _, name = request["manifest_path"].rpartition("/")
    t.call("create_table_version", made, {**request, "manifest_path": f"{path}/x{name}"}).refused(13, 14)
    t.equal(t.versions(made), [1], "versions")


@checks("create_table_version", Promise.ERRORS, "CreateTableVersionRequest.manifest_path")
def refuses_a_version_without_a_manifest(t: Trial) -> None:
    """A request without manifest_path is refused with 400 and code 13."""
    t.call("create_table_version", t.declared(), {"version": 1}).refused(13)


@checks("create_table_version", Promise.ERRORS, "CreateTableVersionRequest.version")
def refuses_a_version_without_a_number(t: Trial) -> None:
    """A request without a version is refused with 400 and code 13."""
    t.call("create_table_version", t.declared(), {"manifest_path": "x"}).refused(13)


@checks("create_table_version", Promise.HOSTILE, "CreateTableVersionRequest.manifest_path")
def refuses_a_manifest_of_another_table(t: Trial) -> None:
    """A manifest that lies in another table is refused, and stays with its own table."""
    made, other = t.table(), t.table("other")
    foreign = staged(t, other)
    t.call("create_table_version", made, foreign).refused(13, 14, 15, 19)
    t.equal(t.versions(made), [1], "versions")
    t.call("create_table_version", other, foreign).ok()
    t.equal(t.ids(other), [1, 2, 3, 50], "ids of the other table")


@checks("create_table_version", Promise.RETRIES, "CreateTableVersion")
def a_repeated_commit_is_done_once(t: Trial) -> None:
    """The same request sent twice creates one version; the second is a success or code 14."""
    made = t.table()
    request = staged(t, made)
    t.call("create_table_version", made, request).ok()
    again = t.call("create_table_version", made, request)
    if not again.is_success:
        again.refused(14)
    t.equal(t.versions(made), [1, 2], "versions")
    t.equal(t.ids(made), [1, 2, 3, 50], "ids")


@checks("create_table_version", Promise.CONCURRENCY, "CreateTableVersion")
def one_of_many_commits_wins(t: Trial) -> None:
    """Of five staged manifests of the same version one is committed, the others get code 14."""
    made = t.table()
    requests = [staged(t, made, 50 + number) for number in range(5)]
    jobs = [partial(t.call, "create_table_version", made, request) for request in requests]
    answers = t.together(jobs)
    won = t.one_of(answers, 14)
    t.equal(t.ids(made), [1, 2, 3, 50 + answers.index(won)], "ids")
    t.equal(t.versions(made), [1, 2], "versions")


@checks("batch_create_table_versions", Promise.ATOMICITY, "BatchCreateTableVersions")
def commits_versions_of_several_tables(t: Trial) -> None:
    """Staged manifests of several tables become versions together, answered in order."""
    tables = [t.table(name) for name in ("a", "b", "c")]
    found = t.call("batch_create_table_versions", None, {"entries": [entry(t, made) for made in tables]}).ok()
    t.equal([version["version"] for version in found["versions"]], [2, 2, 2], "versions")
    for made in tables:
        t.equal(t.ids(made), [1, 2, 3, 50], "ids")


@checks("batch_create_table_versions", Promise.ATOMICITY, "BatchCreateTableVersionsRequest")
def commits_no_version_if_one_is_taken(t: Trial) -> None:
    """If the version of one entry exists, the request gets 409 and code 14, and no table has a new version."""
    tables = [t.table(name) for name in ("a", "b", "c")]
    entries = [entry(t, made) for made in tables]
    t.call("create_table_version", tables[2], staged(t, tables[2], 60)).ok()
    t.call("batch_create_table_versions", None, {"entries": entries}).refused(14)
    t.equal([t.versions(made) for made in tables], [[1], [1], [1, 2]], "versions")


@checks("batch_create_table_versions", Promise.ATOMICITY, "BatchCreateTableVersionsRequest")
def commits_no_version_if_one_table_is_missing(t: Trial) -> None:
    """If one table does not exist, the request gets 404 and code 4, and no table has a new version."""
    made = t.table()
    request = entry(t, made)
    missing = {**request, "id": t.id("missing")}
    t.call("batch_create_table_versions", None, {"entries": [request, missing]}).refused(4)
    t.equal(t.versions(made), [1], "versions")


@checks("batch_create_table_versions", Promise.CONCURRENCY, "BatchCreateTableVersions")
def concurrent_batches_are_all_or_nothing(t: Trial) -> None:
    """Of four batches over the same three tables one wins all tables, the others win none."""
    tables = [t.table(name) for name in ("a", "b", "c")]
    batches = [{"entries": [entry(t, made, 50 + number) for made in tables]} for number in range(4)]
    jobs = [partial(t.call, "batch_create_table_versions", None, batch) for batch in batches]
    answers = t.together(jobs)
    won = t.one_of(answers, 14)
    for made in tables:
        t.equal(t.ids(made), [1, 2, 3, 50 + answers.index(won)], "ids")


@checks("batch_create_table_versions", Promise.ERRORS, "CreateTableVersionEntry.manifest_path")
def refuses_an_entry_without_a_manifest(t: Trial) -> None:
    """An entry without manifest_path is refused with 400 and code 13."""
    request = {"entries": [{"id": t.declared(), "version": 1}]}
    t.call("batch_create_table_versions", None, request).refused(13)


@checks("batch_create_table_versions", Promise.ERRORS, "BatchCreateTableVersionsRequest.entries")
def refuses_a_request_without_entries(t: Trial) -> None:
    """A request without entries is refused with 400 and code 13."""
    t.call("batch_create_table_versions", None, {}).refused(13)

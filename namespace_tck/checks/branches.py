"""Branches of a table, and operations on them."""

from __future__ import annotations

import time
from typing import Any

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()


def _branched(t: Trial, *names: str, versions: int = 1) -> list[str]:
    made = t.table(versions=versions)
    for name in names:
        t.call("create_table_branch", made, {"name": name}).ok()
    return made


def _branches(t: Trial, table: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = t.call("list_table_branches", table).ok()["branches"]
    return found


@checks("create_table_branch", Promise.BRANCHES, "CreateTableBranch")
def a_branch_begins_with_the_rows_of_main(t: Trial) -> None:
    """A branch begins with the rows of the newest version of the main branch."""
    made = _branched(t, "side", versions=2)
    t.equal(t.ids(made, branch="side"), [1, 2, 3, 101], "ids of the branch")


@checks("create_table_branch", Promise.BRANCHES, "CreateTableBranch")
def writes_on_a_branch_stay_there(t: Trial) -> None:
    """Rows that are inserted on a branch are not on the main branch."""
    made = _branched(t, "side")
    t.call("insert_into_table", made, rows([50]), branch="side").ok()
    t.equal(t.ids(made, branch="side"), [1, 2, 3, 50], "ids of the branch")
    t.equal(t.ids(made), [1, 2, 3], "ids of main")


@checks("create_table_branch", Promise.BRANCHES, "CreateTableBranch")
def writes_on_main_do_not_reach_a_branch(t: Trial) -> None:
    """Rows that are inserted on the main branch are not on a branch."""
    made = _branched(t, "side")
    t.call("insert_into_table", made, rows([60])).ok()
    t.equal(t.ids(made, branch="side"), [1, 2, 3], "ids of the branch")


@checks("create_table_branch", Promise.BRANCHES, "CreateTableBranchRequest.from_version")
def branches_from_an_older_version(t: Trial) -> None:
    """With from_version the branch begins with the rows of that version."""
    made = t.table(versions=3)
    t.call("create_table_branch", made, {"name": "side", "from_version": 1}).ok()
    t.equal(t.ids(made, branch="side"), [1, 2, 3], "ids of the branch")


@checks("create_table_branch", Promise.BRANCHES, "CreateTableBranchRequest.from_branch")
def branches_from_a_branch(t: Trial) -> None:
    """With from_branch the branch begins with the rows of that branch."""
    made = _branched(t, "side")
    t.call("insert_into_table", made, rows([50]), branch="side").ok()
    t.call("create_table_branch", made, {"name": "twig", "from_branch": "side"}).ok()
    t.equal(t.ids(made, branch="twig"), [1, 2, 3, 50], "ids of the branch of a branch")


@checks("create_table_branch", Promise.ERRORS, "CreateTableBranch")
def refuses_a_branch_that_exists(t: Trial) -> None:
    """A branch that exists is refused with 409 and code 23 (TableBranchAlreadyExists)."""
    t.call("create_table_branch", _branched(t, "side"), {"name": "side"}).refused(23)


@checks("create_table_branch", Promise.ERRORS, "CreateTableBranchRequest.from_branch")
def refuses_a_missing_source_branch(t: Trial) -> None:
    """A source branch that does not exist is refused with 404 and code 22 (TableBranchNotFound)."""
    t.call("create_table_branch", t.table(), {"name": "side", "from_branch": "missing"}).refused(22)


@checks("create_table_branch", Promise.ERRORS, "CreateTableBranchRequest.from_version")
def refuses_a_missing_source_version(t: Trial) -> None:
    """A source version that does not exist is refused with 404 and code 11, and no branch is made."""
    made = t.table()
    t.call("create_table_branch", made, {"name": "side", "from_version": 99}).refused(11)
    t.equal(_branches(t, made), {}, "branches")


@checks("create_table_branch", Promise.ERRORS, "CreateTableBranchRequest.name")
def refuses_a_branch_without_a_name(t: Trial) -> None:
    """A request without a name, or with an empty one, is refused with 400 and code 13."""
    made = t.table()
    t.call("create_table_branch", made, {}).refused(13)
    t.call("create_table_branch", made, {"name": ""}).refused(13)


@checks("create_table_branch", Promise.HOSTILE, "CreateTableBranchRequest.name")
def refuses_a_branch_that_is_a_path(t: Trial) -> None:
    """A branch whose name climbs out of the table is refused with 400 and code 13."""
    made = t.table()
    t.call("create_table_branch", made, {"name": "../../escape"}).refused(13)
    t.call("create_table_branch", made, {"name": "a/../b"}).refused(13)


@checks("create_table_branch", Promise.CONCURRENCY, "CreateTableBranch")
def one_of_many_branchers_wins(t: Trial) -> None:
    """Of five clients that create the same branch one succeeds, the others get code 23 or 14."""
    made = t.table()
    t.one_of(t.together([lambda: t.call("create_table_branch", made, {"name": "side"})] * 5), 23, 14)
    t.equal(sorted(_branches(t, made)), ["side"], "branches")


@checks("list_table_branches", Promise.BRANCHES, "ListTableBranchesResponse.branches")
def lists_all_branches(t: Trial) -> None:
    """All branches are listed, without the main branch."""
    t.equal(sorted(_branches(t, _branched(t, "a", "b"))), ["a", "b"], "branches")


@checks("list_table_branches", Promise.BRANCHES, "BranchContents.parentVersion")
def lists_where_a_branch_began(t: Trial) -> None:
    """A branch of main is listed with the version that it began at, and without a parent branch."""
    found = _branches(t, _branched(t, "side", versions=2))["side"]
    t.equal((found["parentVersion"], found.get("parentBranch")), (2, None), "parent version and branch")


@checks("list_table_branches", Promise.BRANCHES, "BranchContents.parentBranch")
def lists_the_parent_of_a_branch(t: Trial) -> None:
    """A branch of a branch is listed with the name of that branch."""
    made = _branched(t, "side")
    t.call("create_table_branch", made, {"name": "twig", "from_branch": "side"}).ok()
    t.equal(_branches(t, made)["twig"].get("parentBranch"), "side", "parent branch")


@checks("list_table_branches", Promise.BRANCHES, "BranchContents.createAt")
def lists_when_a_branch_was_created(t: Trial) -> None:
    """The time of creation is in seconds since 1970, and near the present."""
    created = _branches(t, _branched(t, "side"))["side"]["createAt"]
    t.expect(abs(created - time.time()) < 3 * 86_400, f"expected seconds near the present, found {created}")


def _every_branch_once(size: int, t: Trial) -> None:
    made = _branched(t, "a", "b", "c", "d")
    pages = t.pages("list_table_branches", made, "branches", limit=size)
    t.expect(all(len(page) <= size for page in pages), f"a page holds more than {size} branches")
    t.equal(sorted(name for page in pages for name in page), ["a", "b", "c", "d"], "the branches of all pages")


_EVERY = "Pages of {} among four branches hold at most so many, and every branch once."
checks.define_pages("list_table_branches", "branch", (1, 2, 4), _EVERY, _every_branch_once)


@checks("delete_table_branch", Promise.BRANCHES, "DeleteTableBranch")
def deletes_a_branch(t: Trial) -> None:
    """A deleted branch is neither listed nor read, and the main branch stays."""
    made = _branched(t, "side")
    t.call("delete_table_branch", made, {"name": "side"}).ok()
    t.equal(_branches(t, made), {}, "branches")
    t.call("count_table_rows", made, {"branch": "side"}).refused(22)
    t.equal(t.ids(made), [1, 2, 3], "ids of main")


@checks("delete_table_branch", Promise.ERRORS, "DeleteTableBranch")
def refuses_to_delete_a_missing_branch(t: Trial) -> None:
    """A branch that does not exist is refused with 404 and code 22 (TableBranchNotFound)."""
    t.call("delete_table_branch", t.table(), {"name": "missing"}).refused(22)


@checks("delete_table_branch", Promise.BRANCHES, "DeleteTableBranch")
def a_deleted_branch_name_begins_anew(t: Trial) -> None:
    """A branch under a deleted name has none of the rows of the old one."""
    made = _branched(t, "side")
    t.call("insert_into_table", made, rows([50]), branch="side").ok()
    t.call("delete_table_branch", made, {"name": "side"}).ok()
    t.call("create_table_branch", made, {"name": "side"}).ok()
    t.equal(t.ids(made, branch="side"), [1, 2, 3], "ids of the branch")


@checks("update_table", Promise.BRANCHES, "UpdateTableRequest.branch")
def updates_a_branch(t: Trial) -> None:
    """With a branch the rows of the branch are updated, and no others."""
    made = _branched(t, "side")
    t.call("update_table", made, {"branch": "side", "updates": [["name", "'new'"]]}).ok()
    t.equal(set(t.read(made, branch="side")["name"].to_pylist()), {"new"}, "names of the branch")
    t.equal(sorted(t.read(made)["name"].to_pylist()), ["row 1", "row 2", "row 3"], "names of main")


@checks("delete_from_table", Promise.BRANCHES, "DeleteFromTableRequest.branch")
def deletes_from_a_branch(t: Trial) -> None:
    """With a branch rows of the branch are deleted, and no others."""
    made = _branched(t, "side")
    t.call("delete_from_table", made, {"branch": "side", "predicate": "id = 1"}).ok()
    t.equal((t.ids(made, branch="side"), t.ids(made)), ([2, 3], [1, 2, 3]), "ids of the branch and of main")


@checks("merge_insert_into_table", Promise.BRANCHES, "MergeInsertIntoTableRequest.branch")
def merges_into_a_branch(t: Trial) -> None:
    """With a branch rows are merged into the branch, and into no other."""
    made = _branched(t, "side")
    t.call("merge_insert_into_table", made, rows([4]), branch="side").ok()
    t.equal((t.ids(made, branch="side"), t.ids(made)), ([1, 2, 3, 4], [1, 2, 3]), "ids of the branch and of main")


@checks("count_table_rows", Promise.BRANCHES, "CountTableRowsRequest.branch")
def counts_rows_of_a_branch(t: Trial) -> None:
    """With a branch the rows of the branch are counted."""
    made = _branched(t, "side")
    t.call("insert_into_table", made, rows([50]), branch="side").ok()
    t.equal(t.call("count_table_rows", made, {"branch": "side"}).ok(), 4, "rows of the branch")


@checks("alter_table_add_columns", Promise.BRANCHES, "AlterTableAddColumnsRequest.branch")
def adds_columns_to_a_branch(t: Trial) -> None:
    """With a branch the column is added to the branch, and to no other."""
    made = _branched(t, "side")
    request = {"branch": "side", "new_columns": [{"name": "double", "expression": "id * 2"}]}
    t.call("alter_table_add_columns", made, request).ok()
    t.expect("double" in t.read(made, branch="side").column_names, "the branch lacks the column")
    t.expect("double" not in t.read(made).column_names, "main has the column")


@checks("list_table_versions", Promise.BRANCHES, "ListTableVersionsRequest.branch")
def lists_versions_of_a_branch(t: Trial) -> None:
    """With a branch the versions of the branch are listed."""
    made = _branched(t, "side")
    before = t.head(made, branch="side")
    t.call("insert_into_table", made, rows([50]), branch="side").ok()
    t.equal(t.head(made, branch="side"), before + 1, "newest version of the branch")
    t.equal(t.versions(made), [1], "versions of main")


@checks("describe_table_version", Promise.BRANCHES, "DescribeTableVersionRequest.branch")
def describes_a_version_of_a_branch(t: Trial) -> None:
    """With a branch a version of the branch is described, with a manifest of its own."""
    made = _branched(t, "side")
    t.call("insert_into_table", made, rows([50]), branch="side").ok()
    t.call("insert_into_table", made, rows([60])).ok()
    there = t.call("describe_table_version", made, {"version": 2, "branch": "side"}).ok()["version"]
    here = t.call("describe_table_version", made, {"version": 2}).ok()["version"]
    t.expect(there["manifest_path"] != here["manifest_path"], "both branches have the same manifest")


@checks("restore_table", Promise.BRANCHES, "RestoreTableRequest.branch")
def restores_a_branch(t: Trial) -> None:
    """With a branch a version of the branch is restored there, and the main branch stays."""
    made = _branched(t, "side")
    begun = t.head(made, branch="side")
    t.call("insert_into_table", made, rows([50]), branch="side").ok()
    t.call("restore_table", made, {"branch": "side", "version": begun}).ok()
    t.equal(t.ids(made, branch="side"), [1, 2, 3], "ids of the branch")
    t.equal(t.versions(made), [1], "versions of main")

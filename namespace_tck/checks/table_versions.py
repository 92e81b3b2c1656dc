"""Table versions: list, describe, delete."""

from __future__ import annotations

from functools import partial
from typing import Any

from namespace_tck.registry import CheckList, Promise
from namespace_tck.trial import Trial

checks = CheckList()

_COUNT = 5


def _numbers(t: Trial, table: list[str], **query: object) -> list[int]:
    return [version["version"] for version in t.call("list_table_versions", table, **query).ok()["versions"]]


def _delete(t: Trial, table: list[str], *ranges: tuple[int, int]) -> Any:
    listed = [{"start_version": start, "end_version": end} for start, end in ranges]
    return t.call("batch_delete_table_versions", table, {"ranges": listed})


@checks("list_table_versions", Promise.VERSIONS, "ListTableVersionsResponse.versions")
def lists_every_version(t: Trial) -> None:
    """Each commit is a version, numbered from 1 without gaps."""
    t.equal(t.versions(t.table(versions=_COUNT)), [1, 2, 3, 4, 5], "versions")


@checks("list_table_versions", Promise.VERSIONS, "ListTableVersions")
def lists_the_newest_first_on_request(t: Trial) -> None:
    """With descending true the newest version comes first."""
    t.equal(_numbers(t, t.table(versions=_COUNT), descending=True), [5, 4, 3, 2, 1], "versions")


@checks("list_table_versions", Promise.PAGING, "ListTableVersionsRequest.limit")
def limit_one_descending_is_the_newest(t: Trial) -> None:
    """With descending true and a limit of 1 the newest version alone is answered."""
    t.equal(_numbers(t, t.table(versions=_COUNT), descending=True, limit=1), [5], "versions")


@checks("list_table_versions", Promise.VERSIONS, "TableVersion.manifest_path")
def every_version_has_a_manifest_of_its_own(t: Trial) -> None:
    """Each version has the path of a manifest, and no two have the same."""
    listed = t.call("list_table_versions", t.table(versions=_COUNT)).ok()["versions"]
    t.equal(len({version["manifest_path"] for version in listed}), _COUNT, "different manifests")


@checks("list_table_versions", Promise.VERSIONS, "ListTableVersions")
def a_declared_table_has_no_versions(t: Trial) -> None:
    """A table that is only declared has no versions."""
    t.equal(_numbers(t, t.declared()), [], "versions")


@checks("list_table_versions", Promise.PAGING, "ListTableVersionsRequest.limit")
def limit_bounds_a_page_of_versions(t: Trial) -> None:
    """A page holds at most as many versions as its limit, and a token if there are more."""
    page = t.call("list_table_versions", t.table(versions=_COUNT), limit=2).ok()
    t.equal(len(page["versions"]), 2, "number of versions")
    t.expect(bool(page.get("page_token")), "expected a page token")


def _every_version_once(size: int, descending: bool, t: Trial) -> None:
    made = t.table(versions=_COUNT)
    pages = t.pages("list_table_versions", made, "versions", limit=size, descending=descending or None)
    found = [version["version"] for page in pages for version in page]
    expected = [5, 4, 3, 2, 1] if descending else [1, 2, 3, 4, 5]
    t.equal(found if descending else sorted(found), expected, f"the versions of all pages of {size}")


for _size in (1, 2, 5):
    for _descending in (False, True):
        checks.define(
            "list_table_versions",
            f"pages_of_{_size}_hold_every_version_once" + ("_descending" if _descending else ""),
            Promise.PAGING,
            "ListTableVersionsRequest.page_token",
            f"Pages of {_size} among {_COUNT} versions hold every version once"
            + (", the newest first." if _descending else "."),
            partial(_every_version_once, _size, _descending),
        )


@checks("list_table_versions", Promise.PAGING, "ListTableVersionsRequest.limit")
def refuses_a_version_limit_that_is_no_number(t: Trial) -> None:
    """A limit that is not a number is refused with 400 and code 13."""
    t.call("list_table_versions", t.declared(), limit="many").refused(13)


@checks("list_table_versions", Promise.ERRORS, "ListTableVersionsRequest.branch")
def a_missing_branch_has_no_versions(t: Trial) -> None:
    """For a branch that does not exist the list is refused with 404 and code 22, or 4."""
    t.call("list_table_versions", t.table(), branch="missing").refused(22, 4)


@checks("list_table_versions", Promise.OBJECTS, "ListTableVersions")
def needs_no_body(t: Trial) -> None:
    """The list needs no body, and takes an empty object or null for none."""
    made = t.table()
    bodies: tuple[Any, ...] = (None, {}, b"null")
    for body in bodies:
        t.equal([v["version"] for v in t.call("list_table_versions", made, body).ok()["versions"]], [1], "versions")


@checks("describe_table_version", Promise.VERSIONS, "DescribeTableVersionRequest.version")
def describes_each_version(t: Trial) -> None:
    """Each listed version can be described, with the same manifest."""
    made = t.table(versions=3)
    for version in t.call("list_table_versions", made).ok()["versions"]:
        found = t.call("describe_table_version", made, {"version": version["version"]}).ok()["version"]
        t.equal(
            (found["version"], found["manifest_path"]),
            (version["version"], version["manifest_path"]),
            "version and manifest",
        )


@checks("describe_table_version", Promise.VERSIONS, "DescribeTableVersionRequest.version")
def describes_the_newest_version_by_default(t: Trial) -> None:
    """Without a version the newest one is described."""
    t.equal(t.call("describe_table_version", t.table(versions=3), {}).ok()["version"]["version"], 3, "version")


@checks("describe_table_version", Promise.ERRORS, "DescribeTableVersionRequest.version")
def refuses_to_describe_a_missing_version(t: Trial) -> None:
    """A version that does not exist is refused with 404 and code 11 (TableVersionNotFound)."""
    t.call("describe_table_version", t.table(), {"version": 99}).refused(11)


@checks("describe_table_version", Promise.ERRORS, "DescribeTableVersionRequest.version")
def refuses_a_version_number_that_is_no_integer(t: Trial) -> None:
    """A version that is not an integer is refused with 400 and code 13."""
    t.call("describe_table_version", t.table(), {"version": "one"}).refused(13)


@checks("describe_table_version", Promise.VERSIONS, "TableVersion.timestamp_millis")
def times_of_versions_do_not_go_back(t: Trial) -> None:
    """Where versions have timestamps, a newer version is not older than the one before."""
    listed = t.call("list_table_versions", t.table(versions=3)).ok()["versions"]
    ordered = sorted(listed, key=lambda version: version["version"])
    times = [version.get("timestamp_millis") for version in ordered]
    t.need(None not in times, "versions have no timestamps here")
    t.equal(times, sorted(times), "timestamps")


@checks("batch_delete_table_versions", Promise.VERSIONS, "VersionRange.end_version")
def deletes_a_half_open_range(t: Trial) -> None:
    """A range includes its start and excludes its end."""
    made = t.table(versions=_COUNT)
    _delete(t, made, (1, 3)).ok()
    t.equal(t.versions(made), [3, 4, 5], "versions")


@checks("batch_delete_table_versions", Promise.VERSIONS, "BatchDeleteTableVersionsResponse.deleted_count")
def counts_deleted_versions(t: Trial) -> None:
    """Where the number of deleted versions is answered, it is that of the versions that were there."""
    found = _delete(t, t.table(versions=_COUNT), (1, 3)).ok()
    t.need(found.get("deleted_count") is not None, "the server answers no number of deleted versions")
    t.equal(found["deleted_count"], 2, "deleted_count")


@checks("batch_delete_table_versions", Promise.VERSIONS, "BatchDeleteTableVersionsRequest.ranges")
def deletes_several_ranges(t: Trial) -> None:
    """Several ranges are deleted by one request."""
    made = t.table(versions=_COUNT)
    _delete(t, made, (1, 2), (3, 5)).ok()
    t.equal(t.versions(made), [2, 5], "versions")


@checks("batch_delete_table_versions", Promise.VERSIONS, "BatchDeleteTableVersionsRequest.ranges")
def a_deleted_version_cannot_be_described(t: Trial) -> None:
    """A version that was deleted is refused with 404 and code 11."""
    made = t.table(versions=3)
    _delete(t, made, (1, 2)).ok()
    t.call("describe_table_version", made, {"version": 1}).refused(11)


@checks("batch_delete_table_versions", Promise.VERSIONS, "BatchDeleteTableVersions")
def a_deletion_of_old_versions_keeps_the_rows(t: Trial) -> None:
    """After the deletion of older versions the newest one has all its rows."""
    made = t.table(versions=3)
    _delete(t, made, (1, 3)).ok()
    t.equal(t.ids(made), [1, 2, 3, 101, 102], "ids")


@checks("batch_delete_table_versions", Promise.VERSIONS, "VersionRange")
def deletes_all_versions(t: Trial) -> None:
    """A range from 0 to -1 deletes all versions, the latest included."""
    made = t.table(versions=4)
    found = _delete(t, made, (0, -1)).ok()
    t.equal(t.versions(made), [], "versions")
    if found.get("deleted_count") is not None:
        t.equal(found["deleted_count"], 4, "deleted_count")


@checks("batch_delete_table_versions", Promise.RETRIES, "BatchDeleteTableVersions")
def a_repeated_deletion_succeeds(t: Trial) -> None:
    """A range whose versions were deleted before is deleted again without an error."""
    made = t.table(versions=3)
    for _ in range(2):
        _delete(t, made, (1, 2)).ok()
    t.equal(t.versions(made), [2, 3], "versions")


@checks("batch_delete_table_versions", Promise.ERRORS, "BatchDeleteTableVersionsRequest.ranges")
def refuses_a_deletion_without_ranges(t: Trial) -> None:
    """A request without ranges is refused with 400 and code 13, and nothing is deleted."""
    made = t.table()
    t.call("batch_delete_table_versions", made, {}).refused(13)
    t.equal(t.versions(made), [1], "versions")


@checks("batch_delete_table_versions", Promise.ERRORS, "VersionRange.start_version")
def refuses_a_range_that_is_no_pair_of_integers(t: Trial) -> None:
    """A range without an end is refused with 400 and code 13, and nothing is deleted."""
    made = t.table()
    t.call("batch_delete_table_versions", made, {"ranges": [{"start_version": 1}]}).refused(13)
    t.equal(t.versions(made), [1], "versions")

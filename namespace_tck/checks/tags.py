"""Tags of a table."""

from __future__ import annotations

from functools import partial
from typing import Any

from namespace_tck.registry import CheckList, Promise
from namespace_tck.trial import Trial

checks = CheckList()


def _tagged(t: Trial, *names: str, versions: int = 2) -> list[str]:
    made = t.table(versions=versions)
    for name in names:
        t.call("create_table_tag", made, {"tag": name, "version": 1}).ok()
    return made


def _tags(t: Trial, table: list[str]) -> dict[str, int]:
    found: dict[str, Any] = t.call("list_table_tags", table).ok()["tags"]
    return {name: content["version"] for name, content in sorted(found.items())}


@checks("create_table_tag", Promise.TAGS, "CreateTableTag")
def creates_a_tag(t: Trial) -> None:
    """A tag points to the version that it was created for."""
    made = _tagged(t, "first")
    t.equal(t.call("get_table_tag_version", made, {"tag": "first"}).ok()["version"], 1, "version")


@checks("create_table_tag", Promise.ERRORS, "CreateTableTag")
def refuses_a_tag_that_exists(t: Trial) -> None:
    """A tag that exists is refused with 409 and code 9 (TableTagAlreadyExists), and stays as it was."""
    made = _tagged(t, "first")
    t.call("create_table_tag", made, {"tag": "first", "version": 2}).refused(9)
    t.equal(_tags(t, made), {"first": 1}, "tags")


@checks("create_table_tag", Promise.ERRORS, "CreateTableTagRequest.version")
def refuses_a_tag_of_a_missing_version(t: Trial) -> None:
    """A version that does not exist is refused with 404 and code 11 (TableVersionNotFound)."""
    made = t.table()
    t.call("create_table_tag", made, {"tag": "first", "version": 99}).refused(11)
    t.equal(_tags(t, made), {}, "tags")


@checks("create_table_tag", Promise.ERRORS, "CreateTableTagRequest.tag")
def refuses_a_tag_without_a_name(t: Trial) -> None:
    """A request without a tag, or with an empty one, is refused with 400 and code 13."""
    made = t.table()
    t.call("create_table_tag", made, {"version": 1}).refused(13)
    t.call("create_table_tag", made, {"tag": "", "version": 1}).refused(13)


@checks("create_table_tag", Promise.HOSTILE, "CreateTableTagRequest.tag")
def refuses_a_tag_that_is_a_path(t: Trial) -> None:
    """A tag whose name climbs out of the directory of tags is refused with 400 and code 13."""
    t.call("create_table_tag", t.table(), {"tag": "../../escape", "version": 1}).refused(13)


@checks("create_table_tag", Promise.CONCURRENCY, "CreateTableTag")
def one_of_many_taggers_wins(t: Trial) -> None:
    """Of six clients that create the same tag one succeeds, the others get code 9 or 14."""
    made = t.table(versions=2)
    jobs = [partial(t.call, "create_table_tag", made, {"tag": "x", "version": 1 + number % 2}) for number in range(6)]
    answers = t.together(jobs)
    won = t.one_of(answers, 9, 14)
    t.equal(_tags(t, made), {"x": 1 + answers.index(won) % 2}, "tags")


@checks("create_table_tag", Promise.VERSIONS, "CreateTableTag")
def a_tag_is_no_version(t: Trial) -> None:
    """A tag does not make a version of the table."""
    t.equal(t.versions(_tagged(t, "first")), [1, 2], "versions")


@checks("create_table_tag", Promise.TAGS, "CreateTableTagRequest.branch")
def tags_a_version_of_a_branch(t: Trial) -> None:
    """A tag can point to a version of a branch, and says so."""
    made = t.table()
    t.call("create_table_branch", made, {"name": "side"}).ok()
    t.call("create_table_tag", made, {"tag": "there", "version": t.head(made, branch="side"), "branch": "side"}).ok()
    t.equal(t.call("get_table_tag_version", made, {"tag": "there"}).ok().get("branch"), "side", "branch")


@checks("get_table_tag_version", Promise.ERRORS, "GetTableTagVersion")
def refuses_a_missing_tag(t: Trial) -> None:
    """A tag that does not exist is refused with 404 and code 8 (TableTagNotFound)."""
    t.call("get_table_tag_version", t.table(), {"tag": "missing"}).refused(8)


@checks("get_table_tag_version", Promise.TAGS, "GetTableTagVersionResponse.branch")
def a_tag_of_main_has_no_branch(t: Trial) -> None:
    """The answer holds no branch for a tag of the main branch."""
    found = t.call("get_table_tag_version", _tagged(t, "first"), {"tag": "first"}).ok()
    t.equal(found.get("branch"), None, "branch")


@checks("update_table_tag", Promise.TAGS, "UpdateTableTagRequest.version")
def moves_a_tag(t: Trial) -> None:
    """An updated tag points to its new version."""
    made = _tagged(t, "first")
    t.call("update_table_tag", made, {"tag": "first", "version": 2}).ok()
    t.equal(_tags(t, made), {"first": 2}, "tags")


@checks("update_table_tag", Promise.ERRORS, "UpdateTableTag")
def refuses_to_move_a_missing_tag(t: Trial) -> None:
    """A tag that does not exist is refused with 404 and code 8, and is not created."""
    made = t.table()
    t.call("update_table_tag", made, {"tag": "missing", "version": 1}).refused(8)
    t.equal(_tags(t, made), {}, "tags")


@checks("update_table_tag", Promise.ERRORS, "UpdateTableTagRequest.version")
def refuses_to_move_a_tag_to_a_missing_version(t: Trial) -> None:
    """A version that does not exist is refused with 404 and code 11, and the tag stays."""
    made = _tagged(t, "first")
    t.call("update_table_tag", made, {"tag": "first", "version": 99}).refused(11)
    t.equal(_tags(t, made), {"first": 1}, "tags")


@checks("delete_table_tag", Promise.TAGS, "DeleteTableTag")
def deletes_a_tag(t: Trial) -> None:
    """A deleted tag is neither listed nor resolved; the version that it named stays."""
    made = _tagged(t, "first", "second")
    t.call("delete_table_tag", made, {"tag": "first"}).ok()
    t.equal(_tags(t, made), {"second": 1}, "tags")
    t.call("get_table_tag_version", made, {"tag": "first"}).refused(8)
    t.equal(t.versions(made), [1, 2], "versions")


@checks("delete_table_tag", Promise.ERRORS, "DeleteTableTag")
def refuses_to_delete_a_missing_tag(t: Trial) -> None:
    """A tag that does not exist is refused with 404 and code 8 (TableTagNotFound)."""
    t.call("delete_table_tag", t.table(), {"tag": "missing"}).refused(8)


@checks("list_table_tags", Promise.TAGS, "ListTableTagsResponse.tags")
def lists_all_tags(t: Trial) -> None:
    """All tags are listed with their versions and the size of the manifest."""
    made = _tagged(t, "a", "b")
    found = t.call("list_table_tags", made).ok()["tags"]
    t.equal(sorted(found), ["a", "b"], "tags")
    t.expect(all(content["manifestSize"] > 0 for content in found.values()), "expected sizes of manifests")


@checks("list_table_tags", Promise.TAGS, "ListTableTagsResponse.tags")
def lists_no_tags_of_a_fresh_table(t: Trial) -> None:
    """A table without tags has an empty map."""
    t.equal(_tags(t, t.table()), {}, "tags")


def _every_tag_once(size: int, t: Trial) -> None:
    made = _tagged(t, "a", "b", "c", "d", "e")
    pages = t.pages("list_table_tags", made, "tags", limit=size)
    t.expect(all(len(page) <= size for page in pages), f"a page holds more than {size} tags")
    t.equal(sorted(name for page in pages for name in page), ["a", "b", "c", "d", "e"], "the tags of all pages")


_EVERY = "Pages of {} among five tags hold at most so many, and every tag once."
checks.define_pages("list_table_tags", "tag", (1, 2, 5), _EVERY, _every_tag_once)


@checks("list_table_tags", Promise.PAGING, "ListTableTagsRequest.page_token")
def a_token_outlives_the_removal_of_a_tag(t: Trial) -> None:
    """When the tags of the first page are deleted before the second is read, no other is missed."""
    made = _tagged(t, "a", "b", "c", "d", "e")
    first = t.call("list_table_tags", made, limit=2).ok()
    for name in first["tags"]:
        t.call("delete_table_tag", made, {"tag": name}).ok()
    rest = t.listed("list_table_tags", made, "tags", after=first, limit=2)
    t.equal(sorted([*first["tags"], *rest]), ["a", "b", "c", "d", "e"], "the tags of all pages")

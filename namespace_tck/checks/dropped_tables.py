"""Tables that come back after a drop, and catalog versions that are pinned.

Checked only where the server answers `GET /v1/catalog`, as what it adds to the specification.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from namespace_tck.exchanges import RecordedExchange
from namespace_tck.registry import CheckList, Promise
from namespace_tck.trial import Trial

checks = CheckList()

_HEADER = "x-lance-catalog-version"
_SOON = 120
"""Seconds after which a pin ends that a check could not remove."""


def _send(t: Trial, method: str, path: str, body: object = None) -> RecordedExchange:
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    content = b"" if body is None else json.dumps(body).encode()
    return t.client.raw(method, f"/v1/{path}?delimiter=%24", content)


def _ok(t: Trial, found: RecordedExchange) -> Any:
    t.expect(found.status == 200, f"expected status 200, found {found.status}: {found.received[:300]!r}")
    return json.loads(found.received)


def _refused(t: Trial, found: RecordedExchange, status: int, code: int) -> None:
    t.expect(found.status == status, f"expected status {status}, found {found.status}: {found.received[:300]!r}")
    t.equal(json.loads(found.received).get("code"), code, "code")


def _undrop(t: Trial, kind: str, of: list[str], **request: object) -> RecordedExchange:
    return _send(t, "POST", f"{kind}/{quote('$'.join(of), safe='')}/undrop", request)


def _pin(t: Trial, **request: object) -> RecordedExchange:
    return _send(t, "POST", "catalog/pins", {"name": _name(t), "seconds": _SOON, **request})


def _name(t: Trial) -> str:
    return f"{t.space[0]}-{t.space[1]}"


def _catalog_version(t: Trial) -> int:
    found: dict[str, int] = _ok(t, _send(t, "GET", "catalog"))
    return found["version"] if "version" in found else found["catalog_version"]


@checks("catalog", Promise.EXTENSIONS, "DropTable")
def a_dropped_table_comes_back(t: Trial) -> None:
    """A table that was dropped and brought back has its versions, its rows and its tags."""
    made = t.table(versions=3)
    before = t.ids(made)
    t.call("create_table_tag", made, {"tag": "kept", "version": 2}).ok()
    t.call("drop_table", made).ok()
    t.call("describe_table", made).refused(4)
    _ok(t, _undrop(t, "table", made))
    t.equal((t.versions(made), t.ids(made)), ([1, 2, 3], before), "versions and ids")
    t.equal(t.call("get_table_tag_version", made, {"tag": "kept"}).ok()["version"], 2, "version of the tag")


@checks("catalog", Promise.EXTENSIONS, "DropTable")
def a_table_comes_back_under_another_name(t: Trial) -> None:
    """If the name was taken again, undrop is refused with 409/5, and brings the table back under `new_id`."""
    made = t.table()
    t.call("drop_table", made).ok()
    t.declared()
    _refused(t, _undrop(t, "table", made), 409, 5)
    _ok(t, _undrop(t, "table", made, new_id=t.id("back")))
    t.equal(t.ids(t.id("back")), [1, 2, 3], "ids")
    t.equal(t.names("list_tables", t.space, "tables"), ["back", "t"], "tables")


@checks("catalog", Promise.EXTENSIONS, "DropTable")
def what_was_not_dropped_does_not_come_back(t: Trial) -> None:
    """Undrop of a table that was never there, or was not dropped, is refused with 404/4."""
    _refused(t, _undrop(t, "table", t.id("never")), 404, 4)
    made = t.table()
    _refused(t, _undrop(t, "table", made), 404, 4)


@checks("catalog", Promise.EXTENSIONS, "DropTable")
def a_table_comes_back_once(t: Trial) -> None:
    """Of six concurrent undrops of one table exactly one succeeds."""
    made = t.table()
    t.call("drop_table", made).ok()
    answers = t.together([lambda: _undrop(t, "table", made)] * 6)
    t.equal(sorted(answer.status for answer in answers)[:2], [200, 404], "the two lowest statuses")
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("catalog", Promise.EXTENSIONS, "DropTable")
def dropped_tables_are_listed(t: Trial) -> None:
    """The list of dropped tables has a table after its drop, and no longer when it is back."""

    def listed() -> bool:
        return any(each["id"] == made for each in _ok(t, _send(t, "GET", "catalog/dropped"))["tables"])

    made = t.table()
    t.call("drop_table", made).ok()
    t.equal(listed(), True, "listed after the drop")
    _ok(t, _undrop(t, "table", made))
    t.equal(listed(), False, "listed when it is back")


@checks("catalog", Promise.EXTENSIONS, "DropNamespace")
def a_dropped_namespace_comes_back(t: Trial) -> None:
    """A namespace that was dropped with its tables comes back with all of them, in one catalog version."""
    space = t.namespace()
    operations = [{"declare_table": {"id": [*space, name]}} for name in ("a", "b")]
    t.call("batch_commit_tables", None, {"operations": operations}).ok()
    t.call("drop_namespace", space, {"behavior": "Cascade"}).ok()
    before = _catalog_version(t)
    _ok(t, _undrop(t, "namespace", space))
    t.equal(_catalog_version(t), before + 1, "catalog version")
    t.equal(t.names("list_tables", space, "tables"), ["a", "b"], "tables")


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def a_batch_brings_back_a_table(t: Trial) -> None:
    """A batch brings back a table and declares another, or does neither."""
    made, taken = t.table(), t.declared("taken")
    t.call("drop_table", made).ok()
    back = {"undrop_table": {"id": made}}
    _refused(t, _batch(t, back, {"declare_table": {"id": taken}}), 409, 5)
    t.call("describe_table", made).refused(4)
    _ok(t, _batch(t, back, {"declare_table": {"id": t.id("new")}}))
    t.equal(t.names("list_tables", t.space, "tables"), ["new", "t", "taken"], "tables")


def _batch(t: Trial, *operations: dict[str, Any]) -> RecordedExchange:
    return _send(t, "POST", "table/batch-commit", {"operations": list(operations)})


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def a_pin_names_the_version_that_sets_it(t: Trial) -> None:
    """A pin without a version is of the catalog version that it makes, which is read by the header, and is listed."""
    t.declared("a")
    pinned = _ok(t, _pin(t))["pin"]["version"]
    t.equal(_catalog_version(t), pinned, "catalog version")
    t.declared("b")
    then = t.call("list_tables", t.space, headers={_HEADER: str(pinned)}).ok()["tables"]
    t.equal(then, ["a"], "tables then")
    listed = {each["name"]: each["version"] for each in _ok(t, _send(t, "GET", "catalog/pins"))["pins"]}
    t.equal(listed.get(_name(t)), pinned, "version of the pin in the list")
    _ok(t, _send(t, "POST", "catalog/pins/delete", {"name": _name(t)}))
    listed_after = [each["name"] for each in _ok(t, _send(t, "GET", "catalog/pins"))["pins"]]
    t.equal(_name(t) in listed_after, False, "listed after it was removed")


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def a_pin_of_no_version_is_refused(t: Trial) -> None:
    """A pin of a catalog version that does not exist is refused with 404/11."""
    t.declared("a")
    _refused(t, _pin(t, version=_catalog_version(t) + 1_000_000), 404, 11)

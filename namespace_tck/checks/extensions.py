"""What servers with a catalog of their own add: catalog versions, rebased transactions, idempotency keys.

Checked only where the server answers `GET /v1/catalog`.
"""

from __future__ import annotations

import json
from typing import Any

from namespace_tck.exchanges import RecordedExchange
from namespace_tck.registry import CheckList, Promise
from namespace_tck.trial import Trial

checks = CheckList()

_HEADER = "x-lance-catalog-version"


def _get(t: Trial, path: str, **headers: str) -> Any:
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    found: RecordedExchange = t.client.raw("GET", path, headers=headers)
    t.expect(found.status == 200, f"expected status 200, found {found.status}")
    return json.loads(found.received)


def _version(t: Trial) -> int:
    found = _get(t, "/v1/catalog")
    version: int = found["version"] if "version" in found else found["catalog_version"]
    return version


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def a_change_is_one_catalog_version(t: Trial) -> None:
    """A batch of three operations makes the catalog one version newer."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    space = t.space
    before = _version(t)
    operations = [{"declare_table": {"id": [*space, name]}} for name in "abc"]
    t.call("batch_commit_tables", None, {"operations": operations}).ok()
    t.equal(_version(t), before + 1, "catalog version")


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def a_refused_batch_is_no_catalog_version(t: Trial) -> None:
    """A batch that is refused leaves the catalog at its version."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    taken = t.declared("taken")
    before = _version(t)
    operations = [{"declare_table": {"id": table}} for table in (t.id("a"), taken)]
    t.call("batch_commit_tables", None, {"operations": operations}).refused(5, 14)
    t.equal(_version(t), before, "catalog version")


@checks("catalog", Promise.EXTENSIONS, "ListTables")
def reads_as_of_a_catalog_version(t: Trial) -> None:
    """With the header of a catalog version a list is answered as of that version."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    t.declared("a")
    before = _version(t)
    t.declared("b")
    pinned = t.call("list_tables", t.space, headers={_HEADER: str(before)}).ok()["tables"]
    t.equal((pinned, t.names("list_tables", t.space, "tables")), (["a"], ["a", "b"]), "tables then and now")


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def lists_the_history(t: Trial) -> None:
    """The versions of the catalog are listed, the newest first."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    t.declared("a")
    newest = _version(t)
    found = _get(t, "/v1/catalog/versions?limit=2")
    listed = next(value for value in found.values() if isinstance(value, list))
    t.equal([entry["version"] for entry in listed], [newest, newest - 1], "catalog versions")


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def an_idempotency_key_applies_once(t: Trial) -> None:
    """The same batch under the same key is applied once and answered again."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    body = {"operations": [{"declare_table": {"id": t.id("a")}}]}
    key = {"Idempotency-Key": f"{t.space[0]}-{t.space[1]}"}
    first = t.call("batch_commit_tables", None, body, headers=key).ok()
    t.equal(t.call("batch_commit_tables", None, body, headers=key).ok(), first, "the second answer")


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def an_idempotency_key_is_for_one_request(t: Trial) -> None:
    """Another batch under a key that was used is refused with code 13, and changes nothing."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    key = {"Idempotency-Key": f"{t.space[0]}-{t.space[1]}"}
    first = {"operations": [{"declare_table": {"id": t.id("a")}}]}
    other = {"operations": [{"declare_table": {"id": t.id("b")}}]}
    t.call("batch_commit_tables", None, first, headers=key).ok()
    t.call("batch_commit_tables", None, other, headers=key).refused(13)
    t.equal(t.names("list_tables", t.space, "tables"), ["a"], "tables")


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def concurrent_repeats_under_a_key_apply_once(t: Trial) -> None:
    """Six clients that send the same batch under the same key all get the same answer."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    body = {"operations": [{"declare_table": {"id": t.id("a")}}]}
    key = {"Idempotency-Key": f"{t.space[0]}-{t.space[1]}"}
    answers = t.together([lambda: t.call("batch_commit_tables", None, body, headers=key)] * 6)
    found = {json.dumps(answer.ok(), sort_keys=True) for answer in answers}
    t.equal(len(found), 1, "different answers")


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def an_assertion_that_fails_undoes_all(t: Trial) -> None:
    """A batch whose assert_table_version names another version than the head is refused with 14 and changes nothing."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    made = t.table(versions=2)
    operations = [{"declare_table": {"id": t.id("a")}}, {"assert_table_version": {"id": made, "version": 1}}]
    t.call("batch_commit_tables", None, {"operations": operations}).refused(14)
    t.equal(t.names("list_tables", t.space, "tables"), ["t"], "tables")


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def an_assertion_that_holds_lets_a_batch_pass(t: Trial) -> None:
    """A batch whose assert_table_version names the head is committed."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    made = t.table(versions=2)
    operations = [{"declare_table": {"id": t.id("a")}}, {"assert_table_version": {"id": made, "version": 2}}]
    t.call("batch_commit_tables", None, {"operations": operations}).ok()
    t.equal(t.names("list_tables", t.space, "tables"), ["a", "t"], "tables")


@checks("catalog", Promise.EXTENSIONS, "BatchCommitTables")
def refuses_a_transaction_that_is_none(t: Trial) -> None:
    """A commit_transaction whose bytes are no transaction is refused with code 13 and changes nothing."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    made = t.table()
    operations = [
        {"declare_table": {"id": t.id("a")}},
        {"commit_transaction": {"id": made, "transaction": "bm90IGEgdHJhbnNhY3Rpb24="}},
    ]
    t.call("batch_commit_tables", None, {"operations": operations}).refused(13)
    t.equal(t.names("list_tables", t.space, "tables"), ["t"], "tables")

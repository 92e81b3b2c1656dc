"""DescribeTransaction and AlterTransaction."""

from __future__ import annotations

from typing import Any

from namespace_tck.registry import CheckList, Promise
from namespace_tck.trial import Trial

checks = CheckList()

_STATES = {"queued", "running", "succeeded", "failed", "canceled"}


def _transaction(t: Trial) -> list[str]:
    """The id of the transaction of a finished update of columns or rows, by the id that an answer gave."""
    made = t.table()
    for operation, body in (
        ("restore_table", {"version": 1}),
        ("create_table_scalar_index", {"column": "id", "index_type": "BTREE"}),
    ):
        if operation in t.session.absent:
            continue
        found = t.call(operation, made, body).ok().get("transaction_id")
        if found:
            return [*made, found]
    t.need(False, "no answer of this server holds a transaction id")
    raise AssertionError


def _set(key: str, value: str, mode: str | None = None) -> dict[str, Any]:
    return {"setPropertyAction": {"key": key, "value": value, **({"mode": mode} if mode else {})}}


def _properties(t: Trial, transaction: list[str]) -> dict[str, str]:
    return t.call("describe_transaction", transaction).ok().get("properties") or {}


@checks("describe_transaction", Promise.TRANSACTIONS, "DescribeTransactionResponse.status")
def describes_a_transaction(t: Trial) -> None:
    """A transaction whose id was answered can be described, with one of the published states."""
    found = t.call("describe_transaction", _transaction(t)).ok()["status"]
    t.expect(found.lower() in _STATES, f"expected a published state, found {found!r}")


@checks("describe_transaction", Promise.TRANSACTIONS, "DescribeTransactionResponse.status")
def a_finished_transaction_has_succeeded(t: Trial) -> None:
    """The transaction of a write that was answered has succeeded, or is still running."""
    found = t.call("describe_transaction", _transaction(t)).ok()["status"].lower()
    t.expect(found in ("succeeded", "running", "queued"), f"expected Succeeded, found {found!r}")


@checks("describe_transaction", Promise.ERRORS, "DescribeTransaction")
def refuses_a_missing_transaction(t: Trial) -> None:
    """A transaction that does not exist is refused with 404 and code 10 (TransactionNotFound)."""
    t.call("describe_transaction", [*t.table(), "3d1c1f0e-8a52-4c8e-9a51-0a2b3c4d5e6f"]).refused(10)


@checks("describe_transaction", Promise.ERRORS, "DescribeTransaction")
def refuses_a_transaction_of_a_missing_table(t: Trial) -> None:
    """A transaction of a table that does not exist is refused with 404 and code 10 or 4."""
    t.call("describe_transaction", t.id("missing", "1")).refused(10, 4)


@checks("alter_transaction", Promise.TRANSACTIONS, "AlterTransactionSetProperty")
def sets_a_property(t: Trial) -> None:
    """A property that is set is answered and described."""
    transaction = _transaction(t)
    found = t.call("alter_transaction", transaction, {"actions": [_set("owner", "tck")]}).ok()
    t.holds(found.get("properties"), {"owner": "tck"}, "answered properties")
    t.holds(_properties(t, transaction), {"owner": "tck"}, "described properties")


@checks("alter_transaction", Promise.MODES, "AlterTransactionSetProperty.mode")
def overwrites_a_property_by_default(t: Trial) -> None:
    """Without a mode, and with Overwrite, a property that is there gets the new value."""
    transaction = _transaction(t)
    for value, mode in (("1", None), ("2", None), ("3", "Overwrite")):
        t.call("alter_transaction", transaction, {"actions": [_set("owner", value, mode)]}).ok()
        t.holds(_properties(t, transaction), {"owner": value}, "properties")


@checks("alter_transaction", Promise.MODES, "AlterTransactionSetProperty.mode")
def keeps_a_property_with_skip(t: Trial) -> None:
    """With mode Skip a property that is there keeps its value."""
    transaction = _transaction(t)
    t.call("alter_transaction", transaction, {"actions": [_set("owner", "1")]}).ok()
    t.call("alter_transaction", transaction, {"actions": [_set("owner", "2", "Skip")]}).ok()
    t.holds(_properties(t, transaction), {"owner": "1"}, "properties")


@checks("alter_transaction", Promise.ATOMICITY, "AlterTransactionRequest")
def a_failed_action_undoes_all(t: Trial) -> None:
    """With mode Fail a property that is there fails the request, and no other action is applied."""
    transaction = _transaction(t)
    t.call("alter_transaction", transaction, {"actions": [_set("owner", "1")]}).ok()
    actions = [_set("other", "1"), _set("owner", "2", "Fail")]
    t.call("alter_transaction", transaction, {"actions": actions}).refused(13, 14, 19)
    found = _properties(t, transaction)
    t.holds(found, {"owner": "1"}, "properties")
    t.expect("other" not in found, "the first action of the refused request was applied")


@checks("alter_transaction", Promise.TRANSACTIONS, "AlterTransactionUnsetProperty")
def removes_a_property(t: Trial) -> None:
    """A property that is unset is gone."""
    transaction = _transaction(t)
    t.call("alter_transaction", transaction, {"actions": [_set("owner", "1")]}).ok()
    t.call("alter_transaction", transaction, {"actions": [{"unsetPropertyAction": {"key": "owner"}}]}).ok()
    t.expect("owner" not in _properties(t, transaction), "the property is still there")


@checks("alter_transaction", Promise.MODES, "AlterTransactionUnsetProperty.mode")
def skips_a_missing_property_by_default(t: Trial) -> None:
    """Without a mode, and with Skip, the removal of a property that is not there succeeds; with Fail it fails."""
    transaction = _transaction(t)
    unset: dict[str, Any] = {"key": "missing"}
    t.call("alter_transaction", transaction, {"actions": [{"unsetPropertyAction": unset}]}).ok()
    t.call("alter_transaction", transaction, {"actions": [{"unsetPropertyAction": {**unset, "mode": "Skip"}}]}).ok()
    failing = {"actions": [{"unsetPropertyAction": {**unset, "mode": "Fail"}}]}
    t.call("alter_transaction", transaction, failing).refused(13, 14, 19)


@checks("alter_transaction", Promise.ERRORS, "AlterTransaction")
def refuses_to_alter_a_missing_transaction(t: Trial) -> None:
    """A transaction that does not exist is refused with 404 and code 10 (TransactionNotFound)."""
    missing = [*t.table(), "3d1c1f0e-8a52-4c8e-9a51-0a2b3c4d5e6f"]
    t.call("alter_transaction", missing, {"actions": [_set("a", "b")]}).refused(10)


@checks("alter_transaction", Promise.ERRORS, "AlterTransactionSetStatus.status")
def refuses_an_unknown_status(t: Trial) -> None:
    """A status that is not published is refused with 400 and code 13."""
    request = {"actions": [{"setStatusAction": {"status": "Invented"}}]}
    t.call("alter_transaction", _transaction(t), request).refused(13)


@checks("alter_transaction", Promise.ERRORS, "AlterTransactionAction")
def refuses_an_action_with_two_fields(t: Trial) -> None:
    """An action with two fields is refused with 400 and code 13."""
    action = {**_set("a", "b"), "unsetPropertyAction": {"key": "c"}}
    t.call("alter_transaction", _transaction(t), {"actions": [action]}).refused(13)


@checks("alter_transaction", Promise.ERRORS, "AlterTransactionRequest.actions")
def refuses_a_request_without_actions(t: Trial) -> None:
    """A request without actions is refused with 400 and code 13."""
    t.call("alter_transaction", _transaction(t), {}).refused(13)

"""The kit notices a server that breaks a promise: a proxy falsifies the answers of the real one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson
import pytest

from namespace_tck import ALL, CheckOutcome, Result, Session, run_check
from tests.server.servers import ServerProcess
from tests.tck.falsifying import Exchanged, Falsify, falsifying

CHECKS = {check.id: check for check in ALL}


def _wrong_code(exchanged: Exchanged) -> None:
    if exchanged.operation == "describe" and exchanged.status == 404:
        exchanged.answer(404, {**exchanged.json, "code": 18})


def _wrong_status(exchanged: Exchanged) -> None:
    if exchanged.operation == "create" and exchanged.status == 409:
        exchanged.answer(500, exchanged.json)


def _success_for_a_refusal(exchanged: Exchanged) -> None:
    if exchanged.operation == "create" and exchanged.status == 409:
        exchanged.answer(200, {})


def _created(exchanged: Exchanged) -> None:
    if exchanged.operation == "declare" and exchanged.status == 200:
        exchanged.status = 201


def _no_error_body(exchanged: Exchanged) -> None:
    if exchanged.status == 404:
        exchanged.answer(404, {"message": "not here"})


def _missing_name(exchanged: Exchanged) -> None:
    if exchanged.operation == "list" and exchanged.json.get("namespaces"):
        exchanged.answer(200, {**exchanged.json, "namespaces": exchanged.json["namespaces"][:-1]})


def _no_page_token(exchanged: Exchanged) -> None:
    if exchanged.operation == "table/list" and exchanged.status == 200:
        exchanged.answer(200, {"tables": exchanged.json["tables"]})


def _endless_pages(exchanged: Exchanged) -> None:
    if exchanged.operation == "table/list" and exchanged.status == 200 and exchanged.json["tables"]:
        exchanged.answer(200, {**exchanged.json, "page_token": exchanged.json["tables"][0]})


def _missing_row(exchanged: Exchanged) -> None:
    if exchanged.operation == "count_rows" and exchanged.status == 200:
        exchanged.answer(200, exchanged.json - 1)


def _number_in_an_object(exchanged: Exchanged) -> None:
    if exchanged.operation == "count_rows" and exchanged.status == 200:
        exchanged.answer(200, {"count": exchanged.json})


def _wrong_order(exchanged: Exchanged) -> None:
    if exchanged.operation == "version/list" and exchanged.status == 200:
        exchanged.answer(200, {**exchanged.json, "versions": exchanged.json["versions"][::-1]})


def _no_manifest_path(exchanged: Exchanged) -> None:
    if exchanged.operation == "version/describe" and exchanged.status == 200:
        version = {**exchanged.json["version"]}
        del version["manifest_path"]
        exchanged.answer(200, {"version": version})


def _half_a_batch(exchanged: Exchanged) -> None:
    """What a refused batch would have declared is declared all the same, until the operation that was refused."""
    if exchanged.path.startswith("/v1/table/batch-commit") and exchanged.status == 409:
        for operation in orjson.loads(exchanged.sent)["operations"]:
            table = "%24".join(operation["declare_table"]["id"])
            if exchanged.ask(f"/v1/table/{table}/declare", {}).status_code != 200:
                break


def _no_undrop(exchanged: Exchanged) -> None:
    """The table is back by the answer alone."""
    if exchanged.operation == "undrop" and exchanged.status == 200:
        exchanged.ask(exchanged.path.replace("/undrop", "/drop"), {})


def _earlier_pin(exchanged: Exchanged) -> None:
    if exchanged.path.startswith("/v1/catalog/pins?") and exchanged.method == "POST" and exchanged.status == 200:
        pin = exchanged.json["pin"]
        exchanged.answer(200, {**exchanged.json, "pin": {**pin, "version": pin["version"] - 1}})


def _kept_property(exchanged: Exchanged) -> None:
    if exchanged.operation == "describe" and exchanged.status == 200 and exchanged.path.startswith("/v1/namespace"):
        exchanged.answer(200, {"properties": {"owner": "someone"}})


def _lost_answer(exchanged: Exchanged) -> None:
    exchanged.lost = exchanged.operation == "deregister"


def _ghost_table(exchanged: Exchanged) -> None:
    if exchanged.operation == "describe" and exchanged.status == 404 and exchanged.path.startswith("/v1/table"):
        exchanged.answer(200, {"location": "file:///nowhere"})


def _stack_trace(exchanged: Exchanged) -> None:
    if exchanged.status == 404:
        exchanged.answer(404, {**exchanged.json, "error": "Traceback: in server.py:7"})


def _key_ignored(exchanged: Exchanged) -> None:
    """An update is applied once more, as by a server that does not look at the key."""
    if exchanged.operation == "update" and exchanged.status == 200:
        exchanged.ask(exchanged.path, orjson.loads(exchanged.sent))


def _unknown_outcome(exchanged: Exchanged) -> None:
    if exchanged.status == 404:
        exchanged.answer(404, {**exchanged.json, "outcome": "unknown"})


def _failure_of_another_kind(exchanged: Exchanged) -> None:
    if exchanged.path.startswith("/v1/table/batch-commit") and exchanged.status != 200:
        exchanged.answer(exchanged.status, {**exchanged.json, "failures": [{"kind": "fatal"}]})


FAULTS: list[tuple[Falsify, str, str]] = [
    (_wrong_code, "describe_table.refuses_a_missing_table", "expected code 4, found code 18"),
    (_wrong_code, "describe_namespace.refuses_a_missing_namespace", "expected code 1, found code 18"),
    (_wrong_status, "create_namespace.refuses_a_namespace_that_exists", "expected status 409 for code 2, found 500"),
    (_success_for_a_refusal, "create_namespace.refuses_a_namespace_that_exists", "expected a refusal with code 2"),
    (_success_for_a_refusal, "create_namespace.one_of_many_creators_wins", "expected one success among 8, found 8"),
    (_created, "declare_table.declares_a_table", "expected status 200, found 201"),
    (_no_error_body, "describe_table.refuses_a_missing_table", "expected ErrorResponse, found code"),
    (_missing_name, "list_namespaces.lists_the_children", "namespaces: expected"),
    (_missing_name, "create_namespace.many_creators_of_different_names_all_succeed", "namespaces: expected"),
    (_no_page_token, "list_tables.pages_of_2_hold_every_table_once", "the names of all pages of 2"),
    (_no_page_token, "list_tables.limit_bounds_a_page_of_tables", "expected a page token"),
    (_endless_pages, "list_tables.pages_of_3_hold_every_table_once", ""),
    (_missing_row, "count_table_rows.counts_all_rows", "rows: expected 3, found 2"),
    (_number_in_an_object, "count_table_rows.counts_all_rows", "expected a JSON integer"),
    (_wrong_order, "list_table_versions.lists_the_newest_first_on_request", "versions: expected"),
    (_no_manifest_path, "describe_table_version.describes_each_version", "version.manifest_path"),
    (_half_a_batch, "batch_commit_tables.a_refused_last_operation_undoes_all", "tables: expected ['taken']"),
    (_no_undrop, "catalog.a_dropped_table_comes_back", "expected status 200, found 404"),
    (_earlier_pin, "catalog.a_pin_names_the_version_that_sets_it", "catalog version: expected"),
    (_half_a_batch, "batch_commit_tables.overlapping_batches_leave_no_halves", "tables: expected"),
    (_kept_property, "drop_namespace.a_dropped_name_begins_anew", "still there"),
    (_kept_property, "create_namespace.mode_overwrite_empties", "properties: expected"),
    (_lost_answer, "deregister_table.a_deregistered_name_is_free", "the server did not answer"),
    (_ghost_table, "drop_table.drops_a_declared_table", "expected a refusal with code 4"),
    (_ghost_table, "drop_namespace.no_child_outlives_its_namespace", "the table exists, its namespace does not"),
    (_stack_trace, "server.errors_reveal_no_stack_trace", "Traceback"),
    (_unknown_outcome, "describe_table.refuses_a_missing_table", "expected outcome nothing_done"),
    (_failure_of_another_kind, "batch_commit_tables.a_refused_last_operation_undoes_all", "found 'fatal'"),
    (_key_ignored, "update_table.an_update_under_a_key_is_applied_once", "ids: expected"),
]


@dataclass
class FalsifiedSession:
    """A session with a server behind the proxy, which falsifies during one check alone."""

    session: Session
    active: list[Falsify]

    def run(self, falsify: Falsify, name: str) -> Result:
        self.active.append(falsify)
        try:
            return run_check(self.session, CHECKS[name])
        finally:
            self.active.clear()


@pytest.fixture(scope="module")
def falsified(server: ServerProcess) -> Iterator[FalsifiedSession]:
    active: list[Falsify] = []

    def falsify(exchanged: Exchanged) -> None:
        for change in active:
            change(exchanged)

    with falsifying(server.url, falsify) as url, Session(url) as session:
        yield FalsifiedSession(session, active)


@pytest.mark.parametrize(("falsify", "name", "reason"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_promise_is_noticed(falsified: FalsifiedSession, falsify: Falsify, name: str, reason: str) -> None:
    result = falsified.run(falsify, name)

    assert result.outcome is CheckOutcome.FAILED
    assert reason in result.reason
    assert "http://127.0.0.1" in result.exchange


@pytest.mark.parametrize("name", sorted({name for _, name, _ in FAULTS}))
def test_the_same_promises_are_kept_without_the_fault(falsified: FalsifiedSession, name: str) -> None:
    assert run_check(falsified.session, CHECKS[name]).outcome is CheckOutcome.PASSED


def _unimplemented(exchanged: Exchanged) -> None:
    if exchanged.operation == "rename":
        exchanged.answer(500, {"error": "Not supported: rename_table not implemented", "code": 18})


def _unrouted(exchanged: Exchanged) -> None:
    if exchanged.operation == "rename":
        exchanged.answer(404, None)


def _unsupported(exchanged: Exchanged) -> None:
    if exchanged.operation == "rename":
        exchanged.answer(406, {"error": "Not supported", "code": 0})


@pytest.mark.parametrize(
    ("falsify", "served"),
    [(_unimplemented, CheckOutcome.FAILED), (_unrouted, CheckOutcome.FAILED), (_unsupported, CheckOutcome.PASSED)],
)
def test_an_absent_operation_is_skipped_by_name(server: ServerProcess, falsify: Falsify, served: CheckOutcome) -> None:
    with falsifying(server.url, falsify) as url, Session(url) as session:
        skipped = run_check(session, CHECKS["rename_table.renames_within_the_namespace"])
        available = run_check(session, CHECKS["rename_table.is_served_or_unsupported"])

    assert set(session.absent) >= {"rename_table"}
    assert (skipped.outcome, skipped.reason) == (CheckOutcome.SKIPPED, "rename_table is not served")
    assert available.outcome is served


def _no_properties(exchanged: Exchanged) -> None:
    if exchanged.status == 200 and exchanged.content.startswith(b"{"):
        exchanged.answer(200, {name: value for name, value in exchanged.json.items() if name != "properties"})


def test_an_optional_part_that_is_absent_is_skipped(server: ServerProcess) -> None:
    with falsifying(server.url, _no_properties) as url, Session(url) as session:
        namespaces = run_check(session, CHECKS["describe_namespace.describes_the_properties"])
        tables = run_check(session, CHECKS["declare_table.declares_with_properties"])

    assert (namespaces.outcome, namespaces.reason) == (CheckOutcome.SKIPPED, "namespaces have no properties here")
    assert (tables.outcome, tables.reason) == (CheckOutcome.SKIPPED, "tables have no properties here")


def _elsewhere(exchanged: Exchanged) -> None:
    if exchanged.operation in ("declare", "describe") and exchanged.status == 200 and b"location" in exchanged.content:
        exchanged.answer(200, {**exchanged.json, "location": "file:///nowhere/at/all"})


def test_a_location_that_cannot_be_opened_from_here_is_skipped(server: ServerProcess) -> None:
    with falsifying(server.url, _elsewhere) as url, Session(url) as session:
        result = run_check(session, CHECKS["describe_table.a_stock_client_opens_the_location"])

    assert result.outcome is CheckOutcome.SKIPPED
    assert "cannot be opened from here" in result.reason


def test_what_is_shown_of_an_exchange_is_bounded(falsified: FalsifiedSession) -> None:
    def long_answer(exchanged: Exchanged) -> None:
        if exchanged.operation == "describe" and exchanged.status == 404:
            exchanged.answer(404, {"error": "x" * 100_000, "code": 18})

    result = falsified.run(long_answer, "describe_table.refuses_a_missing_table")

    assert result.outcome is CheckOutcome.FAILED
    assert len(result.exchange) < 5000

"""The kit on a server whose tables lie in a bucket, with and without a way to the bucket from here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from namespace_tck import ALL, Check, CheckOutcome, Session, run_check
from tests.emulators import Emulator
from tests.server.servers import ServerProcess

CHECKS = {check.id: check for check in ALL}
STORAGE = [
    CHECKS["describe_table.a_stock_client_opens_the_location"],
    CHECKS["create_table_version.commits_a_staged_version"],
]
PLAIN = [
    CHECKS["batch_commit_tables.a_refused_last_operation_undoes_all"],
    CHECKS["list_tables.pages_of_2_hold_every_table_once"],
    CHECKS["create_namespace.one_of_many_creators_wins"],
]


@pytest.fixture(scope="module")
def on_a_bucket(moto_server: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    environment = {
        f"LANCE_NAMESPACE_STORAGE__{name.upper()}": value for name, value in moto_server.storage_options.items()
    }
    log: Path = tmp_path_factory.mktemp("bucket") / "log"
    with ServerProcess(moto_server.new_root(), log=log, environment=environment) as running:
        yield running


@pytest.mark.parametrize("check", PLAIN, ids=lambda check: check.id)
def test_checks_need_no_way_to_the_bucket(on_a_bucket: ServerProcess, check: Check) -> None:
    with Session(on_a_bucket.url) as session:
        result = run_check(session, check)

    assert result.outcome is CheckOutcome.PASSED, f"{result.reason}\n{result.exchange}"


@pytest.mark.parametrize("check", STORAGE, ids=lambda check: check.id)
def test_what_needs_the_storage_is_skipped_without_a_way_to_it(
    on_a_bucket: ServerProcess, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    with Session(on_a_bucket.url) as session:
        result = run_check(session, check)

    assert result.outcome is CheckOutcome.SKIPPED
    assert "cannot be opened from here" in result.reason


@pytest.mark.parametrize("check", STORAGE, ids=lambda check: check.id)
def test_what_needs_the_storage_runs_with_a_way_to_it(
    on_a_bucket: ServerProcess, moto_server: Emulator, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in moto_server.storage_options.items():
        monkeypatch.setenv(name.upper(), value)
    with Session(on_a_bucket.url) as session:
        result = run_check(session, check)

    assert result.outcome is CheckOutcome.PASSED, f"{result.reason}\n{result.exchange}"

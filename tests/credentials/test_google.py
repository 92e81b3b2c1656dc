"""Clients without keys on Google Cloud Storage: tokens of the server's account, held to their boundaries by a guard."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

import lance
import lancedb
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    DescribeTableResponse,
)

from namespace_server.credentials.vending import VendingOptions, open_vendor
from tests.clients.databases import rows
from tests.credentials.guarded_google import GuardedGoogle, google
from tests.credentials.ways import LIFETIME, REFRESH, asked
from tests.server.servers import ServerProcess

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def service() -> Iterator[GuardedGoogle]:
    with google() as found:
        yield found


@pytest.fixture
def guard(service: GuardedGoogle, monkeypatch: pytest.MonkeyPatch) -> GuardedGoogle:
    """The services, for clients without keys in their environment."""
    for name in [name for name in os.environ if name.startswith("GOOGLE_")]:
        monkeypatch.delenv(name)
    service.lifetime, service.is_down = None, False
    for seen in (service.used, service.denied):
        seen.clear()
    return service


@pytest.fixture(scope="module")
def server(service: GuardedGoogle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Hands out tokens; with the namespace `w`."""
    given = {f"STORAGE__{name.upper()}": value for name, value in service.emulator.storage_options.items()}
    given |= {f"VENDED_STORAGE__{name.upper()}": value for name, value in (service.public | REFRESH).items()}
    given |= {"VENDED_GOOGLE_TOKEN": "true", "VENDED_STS_ENDPOINT": f"{service.url}/sts", "LOG_LEVEL": "debug"}
    environment = {f"LANCE_NAMESPACE_{name}": value for name, value in given.items()}
    log = tmp_path_factory.mktemp("google") / "log"
    with ServerProcess(service.emulator.new_root(), log=log, environment=environment) as started:
        RestNamespace(uri=started.url).create_namespace(CreateNamespaceRequest(id=["w"]))
        yield started


@pytest.fixture
def client(server: ServerProcess, guard: GuardedGoogle) -> RestNamespace:
    """Of the server; it counts its requests."""
    return RestNamespace(uri=server.url, ops_metrics_enabled="true")


def _new(client: RestNamespace, name: str) -> DescribeTableResponse:
    """A table of three rows, written by the client."""
    lance.write_dataset(rows(0, 3), namespace_client=client, table_id=["w", name], mode="create")
    return client.describe_table(DescribeTableRequest(id=["w", name]))


def _ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


def test_stock_clients_work_with_what_they_are_handed(
    client: RestNamespace, server: ServerProcess, guard: GuardedGoogle
) -> None:
    table = ["w", "written"]
    lance.write_dataset(rows(0, 40), namespace_client=client, table_id=table, mode="create")
    dataset = lance.write_dataset(rows(40, 60), namespace_client=client, table_id=table, mode="append")
    dataset.delete("id < 10")
    dataset.merge_insert("id").when_not_matched_insert_all().execute(rows(55, 70))
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files()
    assert _ids(lance.dataset(namespace_client=client, table_id=table).to_table()) == list(range(10, 70))
    database = lancedb.connect_namespace("rest", {"uri": server.url})
    added = database.create_table("added", rows(), namespace_path=["w"])
    added.add(rows(64, 70))
    assert added.count_rows("id > 60") == 9
    assert guard.denied == []
    assert len(set(guard.used)) == 2  # each table has a token of its own


def test_tokens_are_made_from_one_token_of_the_account(client: RestNamespace, guard: GuardedGoogle) -> None:
    client.declare_table(DeclareTableRequest(id=["w", "first"]))
    grants, issued = guard.grants, len(guard.issued)
    for name in ("second", "third"):
        client.declare_table(DeclareTableRequest(id=["w", name]))
    assert (guard.grants, len(guard.issued)) == (grants, issued + 2)


def test_the_token_of_a_table_opens_nothing_else(
    client: RestNamespace, server: ServerProcess, guard: GuardedGoogle
) -> None:
    mine, other = _new(client, "mine"), _new(client, "other")
    assert lance.dataset(other.location, storage_options=other.storage_options).count_rows() == 3
    assert guard.denied == []
    options = mine.storage_options
    attempts = (
        lambda: lance.dataset(other.location, storage_options=options).to_table(),
        lambda: lance.write_dataset(rows(0, 1), other.location, mode="append", storage_options=options),
        lambda: lance.write_dataset(rows(0, 1), f"{mine.location}-beside", storage_options=options),
        lambda: lance.dataset(f"{server.root}/__manifest", storage_options=options).to_table(),
    )
    with ThreadPoolExecutor(len(attempts)) as threads:  # each is tried again for seconds
        for attempt in [threads.submit(attempt) for attempt in attempts]:
            assert isinstance(attempt.exception(), OSError | ValueError)
    assert len(guard.denied) >= len(attempts)


def test_permission_to_read_is_no_permission_to_write(client: RestNamespace, guard: GuardedGoogle) -> None:
    location = _new(client, "read").location
    options = VendingOptions(static=guard.public, google_token=True, sts_endpoint=f"{guard.url}/sts", permission="read")
    vendor = open_vendor("gs://catalog/root", guard.emulator.storage_options, options)
    dataset = lance.dataset(location, storage_options=vendor.options(unquote(urlsplit(location).path.strip("/"))))
    assert _ids(dataset.to_table()) == [0, 1, 2]
    assert guard.denied == []
    with pytest.raises(OSError, match=r"(?i)permission|forbidden|403"):
        dataset.insert(rows(3, 4))
    assert {permission for permission, _ in guard.denied} <= {"create", "delete"}


@pytest.mark.parametrize("named", ["by an option", "by the environment"])
def test_the_account_may_be_in_a_file(
    named: str, guard: GuardedGoogle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "account.json"
    file.write_text(guard.emulator.storage_options["google_service_account_key"])
    storage = {"google_service_account": str(file)} if named == "by an option" else {}
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere" if storage else str(file))
    options = VendingOptions(google_token=True, sts_endpoint=f"{guard.url}/sts")
    found = open_vendor("gs://catalog/root", storage, options).options("root/t")
    assert found["google_storage_token"] in guard.issued
    assert 3500 < int(found["expires_at_millis"]) / 1000 - time.time() < 3600


def test_tokens_are_renewed_while_a_table_is_read_and_written(client: RestNamespace, guard: GuardedGoogle) -> None:
    guard.lifetime = LIFETIME
    table = ["w", "long"]
    lance.write_dataset(rows(0, 2), namespace_client=client, table_id=table, mode="create")
    dataset = lance.dataset(namespace_client=client, table_id=table)
    assert _ids(dataset.to_table()) == [0, 1]
    declared, described = asked(client)
    time.sleep(LIFETIME)
    assert _ids(dataset.to_table()) == [0, 1]
    assert asked(client) == (declared, described + 1)

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(2, 8):
            time.sleep(LIFETIME / 4)
            yield from rows(number, number + 1).to_batches()

    reader = pa.RecordBatchReader.from_batches(rows().schema, batches())
    lance.write_dataset(reader, namespace_client=client, table_id=table, mode="append", max_rows_per_file=3)
    assert _ids(lance.dataset(namespace_client=client, table_id=table).to_table()) == list(range(8))
    assert guard.denied == []
    assert len(set(guard.used)) >= 3


def test_a_token_service_that_refuses(server: ServerProcess, guard: GuardedGoogle) -> None:
    guard.is_down = True
    assert "storage_options" not in server.ask("declare", "w", "down")
    described = server.call("POST", "/v1/table/w$down/describe", {})
    assert (described.status, described.code) == (503, 17)
    assert described.body["error"] == (
        "credentials of the table: expected an answer of the token service, found OAuthError"
    )
    guard.is_down = False
    assert "google_storage_token" in server.ask("describe", "w", "down")["storage_options"]


def test_nothing_secret_is_logged(client: RestNamespace, server: ServerProcess, guard: GuardedGoogle) -> None:
    found = client.declare_table(DeclareTableRequest(id=["w", "logged"])).storage_options
    assert found is not None
    assert found.keys() == {*guard.public, *REFRESH, "google_storage_token", "expires_at_millis"}
    log = server.log.read_text()
    assert "declare" in log
    for secret in (found["google_storage_token"], "account-1", "PRIVATE KEY"):
        assert secret not in log

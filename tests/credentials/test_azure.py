"""Clients without keys on Azure: signatures for the directory of a table, held to the published rules by a guard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import lance
import lancedb
import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest, CreateTableRequest, DescribeTableRequest

from tests.clients.databases import rows
from tests.credentials.guarded_azure import AzureGuard, guarded
from tests.data.arrow import stream
from tests.emulators import AZURITE_ACCOUNT, AZURITE_KEY, Emulator
from tests.server.servers import ServerProcess

T = ["w", "t"]


@pytest.fixture
def guard(azurite: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureGuard]:
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    with guarded(azurite) as found:
        yield found


def _serve(azurite: Emulator, guard: AzureGuard, log: Path, **settings: str) -> ServerProcess:
    environment = {f"LANCE_NAMESPACE_STORAGE__{name.upper()}": text for name, text in azurite.storage_options.items()}
    environment |= {
        "LANCE_NAMESPACE_VENDED_AZURE_SAS": "true",
        "LANCE_NAMESPACE_VENDED_STORAGE__ALLOW_HTTP": "true",
        "LANCE_NAMESPACE_VENDED_STORAGE__AZURE_ENDPOINT": f"{guard.url}/{AZURITE_ACCOUNT}",
    }
    environment |= {f"LANCE_NAMESPACE_{name}": value for name, value in settings.items()}
    server = ServerProcess(azurite.new_root(), log=log, environment=environment)
    RestNamespace(uri=server.url).create_namespace(CreateNamespaceRequest(id=["w"]))
    return server


def test_clients_write_and_read_one_table(azurite: Emulator, guard: AzureGuard, tmp_path: Path) -> None:
    with _serve(azurite, guard, tmp_path / "log") as server:
        namespace = RestNamespace(uri=server.url)
        lance.write_dataset(rows(0, 40), namespace_client=namespace, table_id=T, mode="create")
        dataset = lance.write_dataset(rows(40, 60), namespace_client=namespace, table_id=T, mode="append")
        dataset.delete("id < 10")
        dataset.create_scalar_index("id", "BTREE")
        table = lancedb.connect_namespace("rest", {"uri": server.url}).open_table("t", namespace_path=["w"])
        table.add(rows(60, 61))
        assert table.count_rows() == 51
        assert guard.denied == []
        assert {method for method, _ in guard.allowed} >= {"GET", "HEAD", "PUT"}

        created = namespace.create_table(CreateTableRequest(id=["w", "t2"]), stream(rows(0, 3)))
        mine = namespace.describe_table(DescribeTableRequest(id=T)).storage_options
        assert mine is not None
        assert AZURITE_KEY not in repr(mine)
        assert int(mine["expires_at_millis"]) > 0
        for attempt in (
            lambda: lance.dataset(created.location, storage_options=mine),
            lambda: lance.write_dataset(rows(0, 1), created.location, mode="append", storage_options=mine),
            lambda: lance.dataset(f"{server.root}/__manifest", storage_options=mine),
        ):
            with pytest.raises((OSError, ValueError)):
                attempt()
        assert guard.denied
        assert lance.dataset(created.location, storage_options=created.storage_options).count_rows() == 3


def test_permission_to_read_is_no_permission_to_write(azurite: Emulator, guard: AzureGuard, tmp_path: Path) -> None:
    with _serve(azurite, guard, tmp_path / "log", VENDED_PERMISSION="read") as server:
        namespace = RestNamespace(uri=server.url)
        namespace.create_table(CreateTableRequest(id=T), stream(rows(0, 3)))
        dataset = lance.dataset(namespace_client=namespace, table_id=T)
        assert dataset.count_rows() == 3
        assert guard.denied == []
        with pytest.raises(OSError, match="403"):
            dataset.insert(rows(3, 4))
        assert {method for method, _ in guard.denied} == {"PUT"}

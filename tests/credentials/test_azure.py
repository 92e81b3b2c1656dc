"""Clients without keys on Azure: signatures for the directory of a table, held to the published rules by a guard."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import lance
import lancedb
import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest, CreateTableRequest, DescribeTableRequest
from lance_namespace.errors import ServiceUnavailableError

from namespace_server.credentials.azure import DirectorySignature
from tests.certificates import Certificates, certificates
from tests.clients.databases import rows
from tests.credentials.guarded_azure import AzureGuard, guarded
from tests.data.arrow import stream
from tests.emulators import AZURITE_ACCOUNT, AZURITE_KEY, Emulator
from tests.listener import listen
from tests.server.servers import ServerProcess

__all__ = ["certificates"]

T = ["w", "t"]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def guard(azurite: Emulator) -> Iterator[AzureGuard]:
    with guarded(azurite) as found:
        yield found


@pytest.fixture
def identity(azurite: Emulator, certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureGuard]:
    """A guard that knows the identity of this process and of those that it starts; there are no keys."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.certificate, certificates.key)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates.authority))
    monkeypatch.setenv("IDENTITY_HEADER", "secret")
    with guarded(azurite, context) as found, listen(found.issue) as endpoint:
        monkeypatch.setenv("IDENTITY_ENDPOINT", endpoint)
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


def test_an_identity_serves_in_place_of_a_key(azurite: Emulator, identity: AzureGuard, tmp_path: Path) -> None:
    """The server, its workers and the signatures for clients, without any key."""
    settings = {
        "STORAGE__AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT,
        "STORAGE__AZURE_ENDPOINT": identity.url,
        "VENDED_AZURE_SAS": "true",
        "VENDED_STORAGE__AZURE_ENDPOINT": identity.url,
    }
    environment = {f"LANCE_NAMESPACE_{name}": value for name, value in settings.items()}
    with ServerProcess(azurite.new_root(), log=tmp_path / "log", environment=environment) as server:
        namespace = RestNamespace(uri=server.url)
        namespace.create_namespace(CreateNamespaceRequest(id=["w"]))
        namespace.create_table(CreateTableRequest(id=T), stream(rows(0, 3)))
        assert identity.tokens
        assert identity.allowed == []
        dataset = lance.dataset(namespace_client=namespace, table_id=T)
        dataset.insert(rows(3, 5))
        assert dataset.count_rows() == 5
        assert identity.denied == []
        assert {method for method, _ in identity.allowed} >= {"GET", "HEAD", "PUT"}
        mine = namespace.describe_table(DescribeTableRequest(id=T)).storage_options
        assert mine is not None
        with pytest.raises((OSError, ValueError)):
            lance.dataset(f"{server.root}/__manifest", storage_options=mine)
        assert identity.denied
        created = namespace.create_table(CreateTableRequest(id=["w", "t2"]), stream(rows(0, 3)))
        assert lance.dataset(created.location, storage_options=created.storage_options).count_rows() == 3
    assert len(identity.keys) == 1  # it serves all tables


def test_a_delegated_key_outlives_its_signatures(identity: AzureGuard, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = {"account_name": AZURITE_ACCOUNT, "azure_endpoint": identity.url}
    signatures = DirectorySignature(identity.container, None, storage, "read", timedelta(hours=1))
    began, now = time.time(), 0.0
    monkeypatch.setattr(time, "time", lambda: began + now)
    for now, keys in ((0.0, 1), (3599.0, 1), (3601.0, 2), (7100.0, 2)):
        issued = signatures.issue("t")
        assert len(identity.keys) == keys
        assert issued.expires_at == pytest.approx(began + now + 3600)
    identity.is_down = True
    now = 7300.0
    with pytest.raises(ServiceUnavailableError, match="expected a delegated key, found HttpResponseError"):
        signatures.issue("t")

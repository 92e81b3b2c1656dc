"""Servers on emulated object stores, whose keys are in their settings or in their environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest

from lance_core.storage.opening import open_store
from tests.emulators import AZURITE_ACCOUNT, AZURITE_KEY, Emulator
from tests.server.servers import ServerProcess


@dataclass(frozen=True)
class OnABucket:
    """A running server whose root is in a bucket, with the namespace `w`."""

    server: ServerProcess
    emulator: Emulator

    def client(self) -> RestNamespace:
        """A stock client. It has no keys, and needs none."""
        return RestNamespace(uri=self.server.url)

    def objects(self, location: str) -> set[str]:
        """The keys of all objects below the location of a table."""
        store = open_store(location, self.emulator.storage_options)
        try:
            return {found.path for found in store.list("")}
        finally:
            store.close()

    def uploads(self) -> list[str]:
        """The keys of uploads in parts that are neither complete nor given up."""
        if self.emulator.scheme != "s3":
            return []  # blocks that are not committed are removed by Azure, after a week
        options = self.emulator.storage_options
        client = boto3.client(
            "s3",
            endpoint_url=options["aws_endpoint"],
            region_name=options["aws_region"],
            aws_access_key_id=options["aws_access_key_id"],
            aws_secret_access_key=options["aws_secret_access_key"],
        )
        listed = client.list_multipart_uploads(Bucket=self.emulator.bucket)
        return [upload["Key"] for upload in listed.get("Uploads", ())]


def settings_of(emulator: Emulator) -> dict[str, str]:
    """All options of the service, as settings of the server."""
    return {f"LANCE_NAMESPACE_STORAGE__{name.upper()}": value for name, value in emulator.storage_options.items()}


def environment_of(emulator: Emulator) -> dict[str, str]:
    """Keys where the libraries look for them; the rest as settings, where they are not secret."""
    if emulator.scheme == "s3":
        secret = ("aws_access_key_id", "aws_secret_access_key")
        settings = {name: value for name, value in settings_of(emulator).items() if not name.lower().endswith(secret)}
        return settings | {name.upper(): emulator.storage_options[name] for name in secret}
    endpoint = emulator.storage_options["azure_endpoint"]
    account = f"AccountName={AZURITE_ACCOUNT};AccountKey={AZURITE_KEY}"
    return {
        "AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;BlobEndpoint={endpoint};{account}",
        "AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY,
        "AZURE_ENDPOINT": endpoint,
        "AZURE_ALLOW_HTTP": "true",
    }


def start(emulator: Emulator, environment: dict[str, str], log: Path) -> OnABucket:
    """A server on an unused root of the bucket."""
    server = ServerProcess(emulator.new_root(), log=log, environment=environment)
    RestNamespace(uri=server.url).create_namespace(CreateNamespaceRequest(id=["w"]))
    return OnABucket(server, emulator)


@pytest.fixture(scope="module", params=["s3", "azure"])
def emulator(request: pytest.FixtureRequest) -> Emulator:
    found: Emulator = request.getfixturevalue({"s3": "moto_server", "azure": "azurite"}[request.param])
    return found


@pytest.fixture(scope="module")
def on_a_bucket(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnABucket]:
    running = start(emulator, settings_of(emulator), tmp_path_factory.mktemp("server") / "log")
    yield running
    running.server.stop()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys in the environment of the clients."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_"))]:
        monkeypatch.delenv(name)

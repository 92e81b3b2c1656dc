"""A bucket without conditional PUT carries a catalog when a database decides."""

from __future__ import annotations

import threading
from contextlib import closing

import lance
import pytest
from lance_namespace import CreateNamespaceRequest

import lance_core
from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.errors import StorageError
from lance_core.storage.opening import open_store
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import MapUpdate, UpdateConfig, encode_transaction
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.store.manifests import open_manifest_store
from tests.emulators import Emulator
from tests.transaction.tables import rows


def test_without_a_database_it_is_refused(unconditional_s3: Emulator) -> None:
    store = open_store(unconditional_s3.new_root(), unconditional_s3.storage_options)
    with pytest.raises(StorageError, match=r"501|Not Implemented") as caught:
        store.put_if_absent("slot", b"x")
    assert type(caught.value) is StorageError
    store.close()


def test_a_catalog(unconditional_s3: Emulator, database: str) -> None:
    root, options = unconditional_s3.new_root(), unconditional_s3.storage_options
    properties = {"root": root, "manifest_store": database, "sweep_interval_seconds": "0"}
    properties |= {f"storage.{name}": value for name, value in options.items()}
    before = len(unconditional_s3.requests)
    with closing(DirectoryNamespace(**properties)) as catalog, closing(DirectoryNamespace(**properties)) as other:
        catalog.create_namespace(CreateNamespaceRequest(id=["g"]))
        for name in ("person", "knows"):
            for mode, data in (("create", rows(0, 3)), ("append", rows(3, 4))):
                lance.write_dataset(
                    data, mode=mode, namespace_client=catalog, table_id=["g", name], storage_options=options
                )
        table = lance.dataset(namespace_client=other, table_id=["g", "person"], storage_options=options)
        assert sorted(table.to_table()["id"].to_pylist()) == [0, 1, 2, 3]
        by_uri = lance.dataset(table.uri, storage_options=options)
        assert by_uri.version == 2
        by_uri.validate()
    assert not [request for request in unconditional_s3.requests[before:] if request[0] == "conditional"]


def test_writers_of_one_table_lose_nothing(unconditional_s3: Emulator, database: str) -> None:
    uri, options = unconditional_s3.new_root(), unconditional_s3.storage_options
    failures: list[BaseException] = []
    with closing(open_manifest_store(database)) as manifests:
        handler = ExternalManifestHandler(manifests)
        first = lance_core.commit_transaction(uri, _creation(), storage_options=options, commit_handler=handler)
        assert first.version == 1

        def write(name: str) -> None:
            try:
                for number in range(3):
                    lance_core.commit_transaction(
                        uri,
                        encode_transaction(UpdateConfig(MapUpdate({f"{name}{number}": "1"})), read_version=1),
                        storage_options=options,
                        commit_handler=handler,
                        max_retries=200,
                    )
            except BaseException as error:  # noqa: BLE001 - reported below, in the thread that can fail the test
                failures.append(error)

        threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        newest = Dataset.open(uri, storage_options=options, commit_handler=handler)
    assert newest.version == 10
    stock = lance.dataset(uri, storage_options=options)
    assert (stock.version, len(stock.config())) == (10, 9)


def _creation() -> bytes:
    from lance_core.data import schema_fields
    from lance_core.proto import lance_table_pb2 as pb

    message = pb.Transaction(uuid="creation")
    message.overwrite.schema.extend(schema_fields(rows(0, 1).schema))
    return message.SerializeToString()

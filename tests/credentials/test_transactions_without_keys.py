"""Transactions over many tables of a bucket, in a client without keys, with what the server hands out."""

from __future__ import annotations

import pickle
import time

import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateTableRequest

from namespace_client import Catalog
from tests.clients.databases import rows
from tests.credentials.conftest import GuardedS3, Serve
from tests.credentials.ways import LIFETIME
from tests.data.arrow import stream


@pytest.fixture
def url(serve: Serve) -> str:
    """A server with two tables."""
    server = serve()
    namespace = RestNamespace(uri=server.url)
    for name in ("a", "b"):
        namespace.create_table(CreateTableRequest(id=["w", name]), stream(rows(0, 10)))
    return server.url


def test_tables_are_written_and_read(url: str, guarded_s3: GuardedS3) -> None:
    guarded_s3.guard.used.clear()
    with Catalog.connect(url, namespace=["w"]) as catalog:
        with catalog.begin() as tx:
            tx.append("a", rows(10, 20))
            tx.update("b", {"x": "x + 1"}, where="id < 5")
            tx.delete("b", "id = 9")
        with catalog.begin() as tx:
            assert tx.table("a").count_rows() == 20
            assert tx.table("b").count_rows() == 9
            [before, after] = (tx.table(name).to_table(filter="id = 3")["x"][0].as_py() for name in ("a", "b"))
            assert after == before + 1
    assert guarded_s3.guard.denied == []
    assert len(set(guarded_s3.guard.used)) == 2  # each table has credentials of its own


def test_options_of_the_caller_are_used_instead(url: str, guarded_s3: GuardedS3) -> None:
    guarded_s3.guard.used.clear()
    with (
        Catalog.connect(url, namespace=["w"], storage_options=guarded_s3.emulator.storage_options) as catalog,
        catalog.begin() as tx,
    ):
        tx.append("a", rows(10, 20))
    assert guarded_s3.guard.used == []


def test_nothing_secret_is_shown(url: str) -> None:
    with Catalog.connect(url, namespace=["w"]) as catalog, catalog.begin() as tx:
        state = tx.describe("a")
        assert state is not None
        secret = state.storage_options["aws_secret_access_key"]
        assert secret not in repr(state)


@pytest.mark.slow
def test_a_pinned_dataset_and_its_pickle_outlive_their_credentials(serve: Serve, guarded_s3: GuardedS3) -> None:
    guarded_s3.guard.lifetime = LIFETIME
    server = serve()
    RestNamespace(uri=server.url).create_table(CreateTableRequest(id=["w", "a"]), stream(rows(0, 10)))
    with Catalog.connect(server.url, namespace="w") as catalog:
        dataset = catalog.dataset("a")
        with catalog.begin() as tx:
            tx.append("a", rows(10, 20))
    pickled = pickle.loads(pickle.dumps(dataset))
    for _ in range(2):
        assert [each.to_table().num_rows for each in (dataset, pickled)] == [10, 10]
        time.sleep(LIFETIME)
    assert pickle.loads(pickle.dumps(pickled)).count_rows() == 10
    assert guarded_s3.guard.denied == []


@pytest.mark.long
def test_what_writes_rows_in_other_processes_outlives_its_credentials(serve: Serve, guarded_s3: GuardedS3) -> None:
    guarded_s3.guard.lifetime = LIFETIME
    server = serve()
    RestNamespace(uri=server.url).create_table(CreateTableRequest(id=["w", "a"]), stream(rows(0, 10)))
    with Catalog.connect(server.url, namespace="w") as catalog, catalog.begin() as tx:
        writer = tx.row_writer("a")
        assert tx.describe("a").storage_options["aws_secret_access_key"] not in repr(writer)
        pickled = pickle.dumps(writer)
        parts = []
        for start in (10, 20):
            parts.append(pickle.loads(pickled).write(rows(start, start + 10)))
            time.sleep(LIFETIME)
        tx.add_written(writer, parts)
    with Catalog.connect(server.url, namespace="w") as catalog:
        assert catalog.read("a").num_rows == 30
    assert guarded_s3.guard.denied == []

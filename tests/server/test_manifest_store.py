"""Two servers on one root, whose commits PostgreSQL decides."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest

from namespace_server.store.schema import migrate
from tests.databases import Cluster
from tests.directory.invariants import check_quiet
from tests.server.servers import ServerProcess
from tests.transaction.tables import rows

TABLES = [["g", f"t{number}"] for number in range(3)]


def test_stock_writers_through_two_servers_lose_nothing(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = cluster.new_database()
    migrate(url)
    monkeypatch.setenv("LANCE_NAMESPACE_MANIFEST_STORE", url)
    root = tmp_path / "root"
    with ServerProcess(root, log=tmp_path / "one") as one, ServerProcess(root, log=tmp_path / "two") as two:
        catalogs = [RestNamespace(uri=server.url) for server in (one, two)]
        catalogs[0].create_namespace(CreateNamespaceRequest(id=["g"]))
        for table in TABLES:
            lance.write_dataset(rows(0, 1), mode="create", namespace_client=catalogs[0], table_id=table)

        def append(writer: int) -> None:
            for number in range(1, 7):
                identifier = writer * 100 + number
                lance.write_dataset(
                    rows(identifier, identifier + 1),
                    mode="append",
                    namespace_client=catalogs[writer % 2],
                    table_id=TABLES[number % 3],
                )

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(append, range(1, 5)))
        cluster.drop_connections()  # as a restart of the database does, under both servers
        lance.write_dataset(rows(999, 1000), mode="append", namespace_client=catalogs[1], table_id=TABLES[0])
        found = [lance.dataset(namespace_client=catalogs[0], table_id=table) for table in TABLES]
        identifiers = sorted(row for dataset in found for row in dataset.to_table()["id"].to_pylist())
        written = [writer * 100 + number for writer in range(1, 5) for number in range(1, 7)]
        assert identifiers == sorted([0, 0, 0, *written, 999])
        two.stop()
        one.stop()
    check_quiet(root, step=5)

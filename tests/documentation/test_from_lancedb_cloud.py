"""The page about LanceDB Cloud runs: another server is the old one, with a database that has what the page copies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import lancedb
import pytest
from lancedb.index import FTS, BTree, IvfPq

from tests.documentation.pages import REPOSITORY, blocks, commands
from tests.server.servers import ServerProcess

PAGE = REPOSITORY / "docs" / "guide" / "from-lancedb-cloud.md"
WRITTEN_URL = "http://127.0.0.1:2333"
ROWS = 250
"""As the page asserts of one of the tables."""


def _rows(count: int) -> list[dict[str, Any]]:
    return [
        {"id": n, "text": f"word{n % 9} and more", "vector": [float(n % 7), 1.0, float(n), 2.0]} for n in range(count)
    ]


@pytest.mark.slow
def test_a_database_is_copied_and_its_programs_are_switched(tmp_path: Path) -> None:
    [serve] = [line for line in commands(PAGE) if line]
    assert serve == "lance-namespace serve --root ./catalog"  # which is what a `ServerProcess` is
    program = "\n".join(blocks(PAGE, "python"))
    assert "PART = 100_000" in program
    with (
        ServerProcess(tmp_path / "old", log=tmp_path / "old.log", keys={"cloud-key": "owner"}) as cloud,
        ServerProcess(tmp_path / "catalog", log=tmp_path / "log") as server,
    ):
        old = lancedb.connect("db://shop", api_key="cloud-key", host_override=cloud.url)
        products = old.create_table("products", _rows(ROWS))
        products.create_index("id", config=BTree())
        products.create_index("text", config=FTS())
        products.create_index("vector", config=IvfPq(distance_type="cosine", num_partitions=1, num_sub_vectors=2))
        products.delete("id = 3")
        products.add(_rows(1))
        old.create_table("orders", [{"id": 1, "at": "2026-01-02"}, {"id": 2, "at": None}])
        written = program.replace(WRITTEN_URL, server.url).replace("PART = 100_000", "PART = 100")
        environment = {"PYTHONPATH": str(REPOSITORY), "LANCEDB_API_KEY": "cloud-key", "LANCEDB_HOST": cloud.url}
        done = subprocess.run(
            [sys.executable, "-c", written],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if not name.startswith("LANCE")} | environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        new = lancedb.connect("db://shop", api_key="any", host_override=server.url)
        copy = lancedb.connect("db://copy", api_key="any", host_override=server.url)
        for database in (new, copy):
            assert database.list_tables().tables == ["orders", "products"]
            found = database.open_table("products").search().limit(1000).to_list()
            assert found == products.search().limit(1000).to_list()
        assert new.open_table("products").index_stats("vector_idx").distance_type == "cosine"
        near = [4.0, 1.0, 18.0, 2.0]
        hit = new.open_table("products").search(near).distance_type("cosine").limit(1).to_list()
        assert hit == products.search(near).distance_type("cosine").limit(1).to_list()

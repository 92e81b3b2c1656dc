"""A table of a managed catalog that is compacted by its path: the catalog adopts the commits."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
from lance_namespace import CreateNamespaceRequest, ListTableVersionsRequest

from namespace_server.directory.namespace import DirectoryNamespace
from tests.compaction.committing import compact


def test_a_managed_catalog_adopts_a_compaction(tmp_path: Path) -> None:
    with closing(DirectoryNamespace(root=str(tmp_path))) as catalog:
        catalog.create_namespace(CreateNamespaceRequest(id=["ws"]))
        where = {"namespace_client": catalog, "table_id": ["ws", "t"]}
        for mode, value in (("create", 1), ("append", 2), ("append", 3)):
            lance.write_dataset(pa.table({"x": [value]}), mode=mode, **where)
        lance.dataset(**where).create_scalar_index("x", "BTREE")
        [location] = tmp_path.glob("*_ws$t")
        done = compact(location)
        assert (done.version, done.rewritten_indices) == (6, 1)
        versions = catalog.list_table_versions(ListTableVersionsRequest(id=["ws", "t"])).versions
        assert max(version.version for version in versions) == 6
        lance.write_dataset(pa.table({"x": [4]}), mode="append", **where)
        dataset = lance.dataset(**where)
        dataset.validate()
        assert dataset.version == 7
        assert dataset.to_table(filter="x >= 2")["x"].to_pylist() == [2, 3, 4]

"""Stock clients of a running server, and what must hold of a table after everything that they do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lance
import lance_namespace as models
import pyarrow as pa
from lance.namespace import RestNamespace

from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import branch_base, parse_manifest_name
from tests.server.servers import path_of, send

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(start: int, stop: int, name: str = "n") -> pa.Table:
    """`id` from `start` up to `stop`; `name` is the id behind a letter."""
    return pa.table({"id": range(start, stop), "name": [f"{name}{i}" for i in range(start, stop)]}, schema=SCHEMA)


class Stock:
    """pylance's REST client of the server at `url`, whose catalog lies in `root`."""

    def __init__(self, url: str, root: Path) -> None:
        self.url = url
        self.root = root
        self.client = RestNamespace(uri=url)

    def lancedb(self) -> Any:
        """A connection of lancedb. Imported here: it takes longer than all else that the writers of a race need."""
        import lancedb

        return lancedb.connect_namespace("rest", {"uri": self.url})

    def make_namespace(self, *path: str) -> list[str]:
        self.client.create_namespace(models.CreateNamespaceRequest(id=list(path)))
        return list(path)

    def write(self, table: list[str], data: pa.Table, mode: str = "append", **options: Any) -> lance.LanceDataset:
        return lance.write_dataset(data, namespace_client=self.client, table_id=table, mode=mode, **options)

    def make(self, *table: str, count: int = 3) -> list[str]:
        """A table with ids 0 up to `count` in version 1."""
        self.write(list(table), rows(0, count), "create")
        return list(table)

    def open(self, table: list[str], version: int | str | None = None, branch: str | None = None) -> lance.LanceDataset:
        dataset = lance.dataset(namespace_client=self.client, table_id=table, version=version)
        return dataset if branch is None else dataset.checkout_version((branch, None))

    def ids(self, table: list[str], version: int | str | None = None) -> list[int]:
        return ids(self.open(table, version))

    def location(self, table: list[str]) -> Path:
        """The table's directory."""
        described = self.client.describe_table(models.DescribeTableRequest(id=table))
        assert described.location is not None
        return Path(described.location.removeprefix("file://"))

    def versions_directory(self, table: list[str], branch: str | None = None) -> Path:
        return Path(branch_base(str(self.location(table)), branch)) / "_versions"

    def stored(self, table: list[str], branch: str | None = None) -> list[int]:
        """Versions that stand on storage under a canonical name, ascending."""
        return sorted(self.manifests(table, branch))

    def manifests(self, table: list[str], branch: str | None = None) -> dict[int, Path]:
        """Canonical manifest files by version."""
        files = self.versions_directory(table, branch).iterdir()
        return {named[0]: path for path in files if (named := parse_manifest_name(path.name)) is not None}

    def listed(self, table: list[str], branch: str | None = None, *, page: int | None = None) -> list[dict[str, Any]]:
        """What the catalog lists, newest first; in pages of `page`."""
        query = "descending=true" + (f"&branch={branch}" if branch else "") + (f"&limit={page}" if page else "")
        versions: list[dict[str, Any]] = []
        token = ""
        while True:
            path = f"/v1/table/{path_of(*table)}/version/list?{query}{token}"
            answer = send(self.url, "POST", path, headers={})
            assert answer.status == 200, answer.body
            versions += answer.body["versions"]
            if "page_token" not in answer.body:
                return versions
            token = f"&page_token={answer.body['page_token']}"

    def check(self, table: list[str], newest: int, branch: str | None = None) -> None:
        """The catalog holds exactly what storage holds, up to version `newest`, and every version is what it says."""
        listed = self.listed(table, branch)
        numbers = [version["version"] for version in listed]
        assert numbers[0] == newest, (numbers, newest)
        assert numbers == list(reversed(self.stored(table, branch)))
        assert numbers == list(range(newest, newest - len(numbers), -1))
        assert [version["version"] for version in self.listed(table, branch, page=2)] == numbers
        for version in listed:
            path = Path("/" + version["manifest_path"])
            assert path == self.manifests(table, branch)[version["version"]]
            file = parse_manifest_file(path.read_bytes(), expected_version=version["version"])
            assert file.identity.size == version["manifest_size"]
        dataset = self.open(table, branch=branch)
        assert dataset.version == newest
        dataset.validate()


def ids(dataset: lance.LanceDataset) -> list[int]:
    """The ids in a dataset, sorted."""
    return sorted(dataset.to_table(columns=["id"])["id"].to_pylist())


def tree(root: Path, *, apart_from: Iterable[str] = ()) -> dict[str, bytes]:
    """Every file below a directory, with its content; some top-level names left out."""
    skipped = set(apart_from)
    return {
        str(name): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and (name := path.relative_to(root)).parts[0] not in skipped
    }

"""A stream of files, and the tables that it is written to."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from spark_catalog import CatalogServer
from spark_catalog.read import tables_in
from spark_catalog.streaming.marks import NAMESPACE


@dataclass
class Stream:
    """A namespace, and a directory whose files are the micro-batches of a query, one each."""

    spark: SparkSession
    catalog: CatalogServer
    namespace: list[str]
    home: Path
    files: int = field(default=0)

    @property
    def checkpoint(self) -> Path:
        return self.home / "checkpoint"

    def register(self, name: str, *versions: list[dict[str, object]]) -> None:
        """Register a table with these versions, at the location of the one that was registered before."""
        table = "$".join((*self.namespace, name))
        httpx.post(f"{self.catalog.url}/v1/table/{table}/deregister", json={})
        place = Path(urlsplit(self.catalog.state().root).path, f"registered-{table}")
        shutil.rmtree(place, ignore_errors=True)
        for rows in versions:
            lance.write_dataset(pa.Table.from_pylist(rows), place, mode="append")
        httpx.post(f"{self.catalog.url}/v1/table/{table}/register", json={"location": place.name}).raise_for_status()

    def feed(self, *batches: list[tuple[int, str]]) -> None:
        """Add one file for each micro-batch."""
        source = self.home / "source"
        source.mkdir(exist_ok=True)
        for batch in batches:
            self.files += 1
            lines = [json.dumps({"id": number, "name": name}) for number, name in batch]
            file = source / f"{self.files:05}.json"
            file.write_text("\n".join(lines))
            os.utime(file, (self.files, self.files))  # Spark reads files in the order of their times

    def rows(self, *rows: tuple[int, str]) -> DataFrame:
        return self.spark.createDataFrame(list(rows), "id long, name string").coalesce(1)

    def source(self) -> DataFrame:
        reader = self.spark.readStream.schema("id long, name string").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.home / "source"))

    def run(self, function: Callable[[DataFrame, int], None]) -> None:
        """Run a query over all files that are there, to its end."""
        self.finish(self.source().writeStream.foreachBatch(function))

    def finish(self, writer: DataStreamWriter, checkpoint: str = "checkpoint") -> None:
        query = writer.option("checkpointLocation", str(self.home / checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()

    def forget(self, epoch: int) -> None:
        """Lose Spark's own record that an epoch has ended, as a driver does that dies before it is written."""
        (self.checkpoint / "commits" / str(epoch)).unlink()
        (self.checkpoint / "commits" / f".{epoch}.crc").unlink(missing_ok=True)

    def open(self, name: str) -> lance.LanceDataset:
        state = self.catalog.pins().tables[(*self.namespace, name)]
        dataset = lance.dataset(state.uri, version=state.version)
        dataset.validate()
        return dataset

    def names(self, table: str = "person") -> list[tuple[int, str]]:
        return sorted((row["id"], row["name"]) for row in self.open(table).to_table().to_pylist())

    def versions(self) -> dict[str, int | None]:
        """The versions of the tables."""
        tables = self.catalog.pins().tables
        return {name: state.version for name, state in tables_in(tables, self.namespace).items()}

    def marks(self) -> dict[str, tuple[int | None, str]]:
        """Version and epoch of the mark of each query."""
        found = tables_in(self.catalog.pins().tables, [*self.namespace, NAMESPACE])
        configs = {name: lance.dataset(state.uri, version=state.version).config() for name, state in found.items()}
        return {name: (state.version, configs[name]["stream.epoch"]) for name, state in found.items()}

    def orphans(self) -> list[Path]:
        """Data and deletion files of the namespace that no version refers to."""
        root = Path(urlsplit(self.catalog.state().root).path)
        found = {
            path for path in root.glob(f"*_{self.namespace[0]}$*/*/*") if path.parent.name in ("data", "_deletions")
        }
        used: set[Path] = set()
        for state in tables_in(self.catalog.pins().tables, self.namespace).values():
            home = Path(urlsplit(state.uri).path)
            for version in lance.dataset(state.uri).versions():
                for fragment in lance.dataset(state.uri, version=version["version"]).get_fragments():
                    used |= {home / "data" / file.path for file in fragment.metadata.files}
                    if fragment.metadata.deletion_file is not None:
                        used.add(home / fragment.metadata.deletion_file.path(fragment.fragment_id))
        return sorted(found - used)


@pytest.fixture
def stream(spark: SparkSession, catalog: CatalogServer, namespace: list[str], tmp_path: Path) -> Stream:
    return Stream(spark, catalog, namespace, tmp_path)

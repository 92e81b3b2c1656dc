"""A small graph for the tests of graph writes."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import lance
from pyspark.sql import DataFrame, SparkSession

from spark_catalog import CatalogServer, Edge, Graph, GraphWrite, Node
from spark_catalog.read import tables_in

GRAPH = Graph(nodes={"person": Node("id")}, edges={"knows": Edge("person", "person", src="a", dst="b")})


class Social:
    """A small graph in a new namespace."""

    def __init__(self, spark: SparkSession, catalog: CatalogServer, namespace: list[str]) -> None:
        self.spark = spark
        self.catalog = catalog
        self.namespace = namespace

    def write(self, server: CatalogServer | str | None = None, **options: object) -> GraphWrite:
        options = {"graph": GRAPH} | options
        return GraphWrite(self.spark, server or self.catalog, namespace=self.namespace, **options)

    def people(self, *ids: int | None, name: str = "p") -> DataFrame:
        return self.spark.createDataFrame([(n, f"{name}{n}") for n in ids], "id long, name string").coalesce(1)

    def pairs(self, *pairs: tuple[int, int]) -> DataFrame:
        return self.spark.createDataFrame(list(pairs), "a long, b long").coalesce(1)

    def load(self) -> int | None:
        """Write three people and two pairs; the catalog version that holds them."""
        with self.write() as tx:
            tx.append("person", self.people(1, 2, 3))
            tx.append("knows", self.pairs((1, 2), (2, 3)))
        return tx.result.catalog_version

    def open(self, name: str, catalog_version: int | None = None) -> lance.LanceDataset:
        state = self.catalog.pins(catalog_version).tables[(*self.namespace, name)]
        dataset = lance.dataset(state.uri, version=state.version)
        dataset.validate()
        return dataset

    def pinned(self, catalog_version: int | None = None) -> dict[str, int | None]:
        """The versions of the tables. Maintenance changes the catalog version, too, so it is not compared."""
        tables = self.catalog.pins(catalog_version).tables
        return {name: state.version for name, state in tables_in(tables, self.namespace).items()}

    def people_now(self) -> dict[int, str]:
        return {row["id"]: row["name"] for row in self.open("person").to_table().to_pylist()}

    def pairs_now(self) -> list[tuple[int, int]]:
        return sorted((row["a"], row["b"]) for row in self.open("knows").to_table().to_pylist())

    def files(self) -> set[Path]:
        """All data and deletion files of the namespace, committed or not."""
        root = Path(urlsplit(self.catalog.state().root).path)
        found = root.glob(f"*_{self.namespace[0]}$*/*/*")
        return {path for path in found if path.parent.name in ("data", "_deletions")}

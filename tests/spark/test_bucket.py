"""Graph writes and reads with all data in a bucket."""

from __future__ import annotations

import lance
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from spark_catalog import CatalogServer, Edge, Graph, GraphWrite, Node, StagingFailed, read_graph

pytestmark = pytest.mark.spark

GRAPH = Graph(nodes={"person": Node("id")}, edges={"knows": Edge("person", "person", src="a", dst="b")})


def data_files(store: ObjectStore) -> set[str]:
    """Those of tables: the server may change its own catalog at any time."""
    paths = (meta.path.split("/") for meta in store.list(""))
    return {"/".join(path) for path in paths if path[0] != "__manifest" and path[-2] in ("data", "_deletions")}


def test_a_graph_is_written_changed_and_discarded_in_a_bucket(
    spark: SparkSession, bucket: tuple[str, dict[str, str]]
) -> None:
    url, options = bucket
    people = spark.range(1, 4).selectExpr("id", "concat('p', id) AS name")
    pairs = spark.createDataFrame([(1, 2), (2, 3)], "a long, b long")
    with CatalogServer(url) as server:
        server.ensure_namespace(["social"])

        def write() -> GraphWrite:
            return GraphWrite(spark, server, namespace=["social"], graph=GRAPH, check="full", storage_options=options)

        with write() as tx:
            tx.append("person", people)
            tx.append("knows", pairs)
        first = tx.result.catalog_version
        with write() as tx:
            tx.upsert("person", people.where("id = 3").union(spark.sql("SELECT 9L, 'new'")), on="id")
            tx.delete("knows", "a = 1")
        store = open_store(server.state().root, options)
        before = data_files(store)
        with pytest.raises(StagingFailed), write() as tx:  # noqa: PT012 - leaving the block is what raises
            tx.append("knows", pairs)
            tx.append("person", people.withColumn("name", F.raise_error(F.lit("bad record"))))
        assert data_files(store) == before
        store.close()

        then = read_graph(spark, server, ["social"], catalog_version=first, storage_options=options)
        now = read_graph(spark, server, ["social"], storage_options=options)
        assert [row.id for row in then.tables["person"].orderBy("id").collect()] == [1, 2, 3]
        assert [row.id for row in now.tables["person"].orderBy("id").collect()] == [1, 2, 3, 9]
        assert [tuple(row) for row in now.tables["knows"].collect()] == [(2, 3)]
        state = server.pins().tables[("social", "person")]
        stock = lance.dataset(state.uri, version=state.version, storage_options=options)
        stock.validate()
        assert stock.count_rows() == 4

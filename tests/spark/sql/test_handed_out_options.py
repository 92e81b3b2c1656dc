"""Sessions without keys on a bucket: driver and tasks use what the server hands out for each table."""

from __future__ import annotations

from lance.namespace import RestNamespace
from lance_namespace import CreateTableRequest

from namespace_client.http import CatalogServer
from spark_catalog import GraphWrite, read_graph, read_table
from spark_catalog.sql.tables import Versions
from table_data.batch_operations import TableState
from tests.clients.databases import rows as some_rows
from tests.credentials.conftest import GuardedS3, Serve, guarded_s3, guarded_service, serve
from tests.data.arrow import stream
from tests.spark.sql.conftest import NewSession

__all__ = ["guarded_s3", "guarded_service", "serve"]


def test_tables_of_a_bucket_are_written_and_read(
    new_session: NewSession,
    serve: Serve,
    guarded_s3: GuardedS3,
) -> None:
    server = serve()
    namespace = RestNamespace(uri=server.url)
    for name in ("a", "b"):
        namespace.create_table(CreateTableRequest(id=["w", name]), stream(some_rows(0, 10).select(["id", "x"])))
    session = new_session(server.url)
    guarded_s3.guard.used.clear()

    session.sql("INSERT INTO lance.w.a SELECT id + 10, x FROM lance.w.b")
    session.sql("UPDATE lance.w.b SET x = -1.0 WHERE id % 2 = 0 AND x IS NOT NULL")
    session.sql("DELETE FROM lance.w.b WHERE id = 9")
    assert session.sql("SELECT count(*), count_if(x = -1) FROM lance.w.b").collect() == [(9, 5)]
    assert session.sql("SELECT count(*) FROM lance.w.b VERSION AS OF 1 WHERE id >= 0").collect() == [(10,)]
    with GraphWrite(session, server.url, namespace=["w"]) as tx:
        tx.append("a", session.sql("SELECT id + 20 AS id, x FROM lance.w.b"))
        tx.delete("b", "id < 2")

    with CatalogServer(server.url) as catalog:
        assert read_table(session, catalog, ["w", "a"], filter="id >= 0").count() == 29
        assert read_graph(session, catalog, ["w"]).tables["b"].where("id >= 0").count() == 7
    source = session.read.format("lance").options(server=server.url, table="w$a").load()
    assert source.where("id >= 20").count() == 9
    assert guarded_s3.guard.denied == []
    assert len(set(guarded_s3.guard.used)) == 2  # each table has credentials of its own


def test_options_that_expire_soon_are_asked_for_again() -> None:
    asked: list[tuple[str, ...]] = []
    soon, later = ({"expires_at_millis": str(millis)} for millis in (1, 1 << 60))

    def describe(table: tuple[str, ...]) -> TableState:
        asked.append(table)
        return TableState(table, "s3://x", 1, storage_options=later)

    versions = Versions(describe, {})
    versions.remember(TableState(("t",), "s3://x", 1, storage_options=soon))
    assert versions.storage_options(("t",), "s3://x") == later
    assert versions.storage_options(("t",), "s3://x") == later
    assert asked == [("t",)]
    assert Versions(describe, {"region": "r"}).storage_options(("t",), "s3://x") == {"region": "r"}
    assert asked == [("t",)]

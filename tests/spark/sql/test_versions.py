"""What differs between the supported versions of pyspark."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx
import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_catalog import CatalogServer
from spark_catalog.requirements import has_transactions, spark_version
from spark_catalog.tables.types import spark_schema
from table_data.arrow.memory import readable_by_lance


def test_java_is_of_the_version_of_python(sql: SparkSession) -> None:
    assert tuple(int(part) for part in sql.version.split(".")[:2]) == spark_version()


def test_the_catalog_has_transactions_where_spark_has_them(sql: SparkSession) -> None:
    catalog = sql.conf.get("spark.sql.catalog.lance").rpartition(".")[2]
    assert catalog == ("LanceTransactionalCatalog" if has_transactions() else "LanceCatalog")
    assert sql.sql("SHOW NAMESPACES IN lance").columns == ["namespace"]


def test_rows_of_a_table_that_took_the_place_of_another(
    sql: SparkSession, ns: str, catalog: CatalogServer, server_url: str
) -> None:
    """Both have the same location and the same number of versions: what is known of the first is not used."""
    name = ns.removeprefix("lance.")
    uri = Path(catalog.state().root.removeprefix("file://"), f"{name}-moved")
    route = f"{server_url}/v1/table/{name}$t"
    for first in (10, 20):
        shutil.rmtree(uri, ignore_errors=True)
        for number in range(first, first + 2):
            lance.write_dataset(pa.table({"a": [number], "b": [0]}), uri, mode="append")
        httpx.post(f"{route}/register", json={"location": uri.name}).raise_for_status()
        assert sorted(sql.table(f"{ns}.t").collect()) == [(first, 0), (first + 1, 0)]
        sql.sql(f"UPDATE {ns}.t SET b = 1 WHERE a = {first + 1}")
        assert sorted(sql.table(f"{ns}.t").collect()) == [(first, 0), (first + 1, 1)]
        httpx.post(f"{route}/deregister", json={}).raise_for_status()


def test_an_earlier_version_is_not_one_that_took_its_place(
    sql: SparkSession, ns: str, catalog: CatalogServer, server_url: str
) -> None:
    """Neither for a statement nor for a DataFrame that was loaded before: its rows are the old ones, if there are any.

    Executors that have the files open can read them still.
    """
    uri = Path(catalog.state().root.removeprefix("file://"), f"{ns.removeprefix('lance.')}-moved")
    route = f"{server_url}/v1/table/{ns.removeprefix('lance.')}$t"

    def register(*values: int) -> None:
        shutil.rmtree(uri, ignore_errors=True)
        for value in values:
            lance.write_dataset(pa.table({"a": [value]}), uri, mode="append")
        httpx.post(f"{route}/register", json={"location": uri.name}).raise_for_status()

    register(1, 2)
    before = catalog.state().version
    at = f"SELECT a FROM {ns}.t VERSION AS OF 'catalog:{before}'"
    loaded = [sql.table(f"{ns}.t"), sql.sql(at), sql.table(f"{ns}.t").where("a > 0")]
    assert sorted(loaded[-1].collect()) == [(1,), (2,)]
    httpx.post(f"{route}/deregister", json={}).raise_for_status()
    register(7, 8)
    for frame in loaded:
        try:
            found: object = sorted(frame.collect())
        except PySparkException as error:
            found = "replaced by another one" in str(error)
        assert found in ([(1,), (2,)], True)
    with pytest.raises(PySparkException, match="cannot be found"):
        sql.sql(at).collect()
    assert sorted(sql.sql(f"SELECT a FROM {ns}.t VERSION AS OF 2").collect()) == [(7,), (8,)]
    with pytest.raises(PySparkException, match="version 3: expected one that its metadata table versions lists"):
        sql.sql(f"SELECT a FROM {ns}.t VERSION AS OF 3").collect()


def _without_offsets() -> pa.Array:
    """A list without elements as Spark 4.1 passes it: the buffer of the inner offsets is empty and lies anywhere."""
    nothing = pa.py_buffer(b"\xff" * 64).slice(8, 0)
    inner = pa.Array.from_buffers(pa.string(), 0, [None, nothing, nothing])
    return pa.ListArray.from_arrays(pa.array([0, 0], pa.int32()), inner)


@pytest.mark.parametrize("nested", [False, True])
def test_lists_without_elements_can_be_written(tmp_path: Path, nested: bool) -> None:
    column = _without_offsets()
    if nested:
        column = pa.StructArray.from_arrays([column], names=["tags"])
    fitted = readable_by_lance(column)
    assert fitted.equals(column)
    batch = pa.record_batch([fitted], names=["x"])
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    [fragment] = write_fragments(reader, tmp_path / "t", mode="create")
    assert fragment.physical_rows == 1


def test_other_columns_are_not_copied() -> None:
    column = pa.array([["a"], []])
    assert readable_by_lance(column) is column


def test_timestamps_without_a_time_zone_stay_so() -> None:
    stored = pa.schema([("x", pa.timestamp("us")), ("y", pa.timestamp("us", "UTC"))])
    assert [item.dataType.simpleString() for item in spark_schema(stored)] == ["timestamp_ntz", "timestamp"]

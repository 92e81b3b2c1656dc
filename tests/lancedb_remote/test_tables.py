"""Tables of lancedb's remote client: lists, creation, description, names, columns."""

from __future__ import annotations

from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.data.arrow import ARROW, stream
from tests.lancedb_remote.remote import ROWS, Shop, connect, listed, new_name, refused, rows
from tests.running import running

EVERY_TYPE = pa.table(
    {
        "bool": pa.array([True]),
        "int8": pa.array([1], pa.int8()),
        "uint64": pa.array([1], pa.uint64()),
        "half": pa.array([1], pa.float16()),
        "float": pa.array([1], pa.float32()),
        "text": pa.array(["a"], pa.large_string()),
        "bytes": pa.array([b"a"]),
        "many_bytes": pa.array([b"a"], pa.large_binary()),
        "two_bytes": pa.array([b"ab"], pa.binary(2)),
        "day": pa.array([1], pa.date32()),
        "day_in_ms": pa.array([0], pa.date64()),
        "second": pa.array([1], pa.timestamp("s")),
        "zoned": pa.array([1], pa.timestamp("ns", "UTC")),
        "time": pa.array([1], pa.time32("s")),
        "fine_time": pa.array([1], pa.time64("ns")),
        "span": pa.array([1], pa.duration("ms")),
        "decimal": pa.array([1], pa.decimal128(10, 2)),
        "struct": pa.array([{"a": 1, "b": "x"}]),
        "list": pa.array([["a"]], pa.large_list(pa.string())),
        "dictionary": pa.array(["a"]).dictionary_encode(),
    }
)


def fields(schema: pa.Schema) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in schema]


def test_names_are_listed_in_pages_by_name(tmp_path: Any) -> None:
    with running(tmp_path / "root") as url:
        db = connect(url)
        for name in ("a", "b", "c", "d"):
            db.create_table(name, rows(1))
        with httpx.Client(base_url=url) as published:
            for odd in ("b%20b", "b%20c", "b%20d"):  # names that the client refuses
                created = published.post(f"/v1/table/shop${odd}/create", content=stream(rows(1)), headers=ARROW)
                assert created.status_code == 200
            assert "b c" in published.get("/v1/namespace/shop/table/list").json()["tables"]
        assert listed(db) == ["a", "b", "c", "d"]
        assert listed(db, limit=2) == ["a", "b"]
        assert listed(db, limit=2, page_token="b") == ["c", "d"]
        assert listed(db, limit=1, page_token="b") == ["c"]
        assert listed(db, page_token="d") == []
        found, token = [], None
        while True:
            page = db.list_tables(limit=2, page_token=token)
            found += page.tables
            token = page.page_token
            if not token:
                break
        assert found == ["a", "b", "c", "d"]


@pytest.mark.parametrize("data", [rows(3), [{"id": 1}, {"id": 2}, {"id": 3}], rows(3).to_pandas()], ids=type)
def test_one_is_created_from_rows(shop: Shop, data: Any) -> None:
    assert shop.table(data).count_rows() == 3


def test_one_is_created_from_a_schema(shop: Shop) -> None:
    name = new_name()
    assert shop.db.create_table(name, schema=rows(1).schema).count_rows() == 0
    assert fields(shop.db.open_table(name).schema) == fields(rows(1).schema)


def test_modes_of_creation(shop: Shop) -> None:
    table = shop.table()
    with pytest.raises(ValueError, match="already exists"):
        shop.db.create_table(table.name, rows(3))
    assert shop.db.create_table(table.name, rows(3), exist_ok=True).count_rows() == ROWS
    shop.db.create_table(table.name, rows(3), mode="overwrite")
    assert table.count_rows() == 3


def test_one_is_opened_by_name(shop: Shop) -> None:
    table = shop.table()
    opened = connect(shop.url).open_table(table.name)
    assert (opened.count_rows(), opened.version, opened.uri) == (ROWS, 1, table.uri)
    with pytest.raises(ValueError, match="was not found"):
        shop.db.open_table("nowhere")


def test_one_is_dropped(shop: Shop) -> None:
    table, other = shop.table(rows(1)), shop.table(rows(1))
    shop.db.drop_table(table.name)
    shop.db.drop_table_async(other.name).wait()
    names = listed(shop.db, limit=1000)
    assert table.name not in names
    assert other.name not in names
    with refused("404", "not found"):
        shop.db.drop_table(table.name)


def test_one_is_renamed_here_and_into_a_namespace(shop: Shop) -> None:
    table, new, namespace = shop.table(), new_name(), new_name()
    shop.db.rename_table(table.name, new)
    assert connect(shop.url).open_table(new).count_rows() == ROWS
    shop.db.create_namespace([namespace])
    shop.db.rename_table(new, "moved", new_namespace_path=[namespace])
    assert listed(shop.db, namespace_path=[namespace]) == ["moved"]
    shop.db.rename_table("moved", "again", cur_namespace_path=[namespace])
    assert listed(shop.db, namespace_path=[namespace]) == ["again"]
    with refused("nowhere"):
        shop.db.rename_table("again", "away", cur_namespace_path=[namespace], new_namespace_path=["nowhere"])
    assert new not in listed(shop.db, limit=1000)


@pytest.mark.parametrize("data", [rows(2), EVERY_TYPE], ids=["usual", "every type"])
def test_schemas_have_the_types_of_local_tables(shop: Shop, data: pa.Table) -> None:
    remote, local = shop.pair(data)
    assert fields(remote.schema) == fields(local.schema)


def test_metadata_of_schemas_is_kept(shop: Shop) -> None:
    field = pa.field("id", pa.int64(), metadata={"unit": "pieces"})
    remote = shop.table(pa.table({"id": [1]}).cast(pa.schema([field], {"owner": "ada"})))
    assert remote.schema.metadata == {b"owner": b"ada"}
    assert remote.schema.field("id").metadata == {b"unit": b"pieces"}
    changed = remote.update_field_metadata({"path": "id", "metadata": {"unit": "grams"}})
    assert changed.version == 2
    assert remote.schema.field("id").metadata == {b"unit": b"grams"}


def test_columns_are_added_by_expressions(shop: Shop) -> None:
    table = shop.table()
    assert table.add_columns({"twice": "id * 2"}).version == 2
    assert table.count_rows("twice = id * 2") == ROWS


def test_columns_of_nulls_are_added_by_fields(shop: Shop) -> None:
    table = shop.table()
    new = [
        pa.field("number", pa.int32()),
        pa.field("price_2", pa.decimal128(10, 2)),
        pa.field("at", pa.timestamp("ms", "UTC"), metadata={"k": "v"}),
        pa.field("pairs", pa.list_(pa.struct([("a", pa.float32()), ("b", pa.large_string())]))),
    ]
    table.add_columns(new)
    found = {name: table.schema.field(name) for name in ("number", "price_2", "at", "pairs")}
    assert [str(each.type) for each in found.values()] == [str(each.type) for each in new]
    assert found["at"].metadata == {b"k": b"v"}
    assert table.count_rows("number IS NULL AND pairs IS NULL") == ROWS
    with refused("id", table=table):
        table.add_columns([pa.field("id", pa.int32())])
    with refused("may be null", table=table):
        table.add_columns([pa.field("filled", pa.int32(), nullable=False)])


def test_columns_are_altered_as_locally(shop: Shop) -> None:
    remote, local = shop.pair()
    for table in (remote, local):
        table.alter_columns(
            {"path": "text", "rename": "words", "data_type": pa.large_string()},
            {"path": "price", "data_type": pa.float32()},
            {"path": "when", "data_type": pa.timestamp("ms")},
            {"path": "id", "nullable": True},
        )
    assert fields(remote.schema) == fields(local.schema)
    remote.drop_columns(["words", "price"])
    assert remote.schema.names == ["id", "when", "tags", "vector"]
    with refused("nope", table=remote):
        remote.drop_columns(["nope"])


def test_statistics_are_those_of_a_local_table(shop: Shop) -> None:
    remote, local = shop.pair()
    found, expected = remote.stats(), local.stats()
    assert (found["num_rows"], found["num_indices"]) == (ROWS, 0)
    assert found["fragment_stats"] == expected["fragment_stats"]


def test_a_handle_outlives_another_table_of_its_name(shop: Shop) -> None:
    table, other = shop.table(), connect(shop.url)
    table.delete("id = 1")
    table.delete("id = 2")
    assert table.version == 3
    other.drop_table(table.name)
    other.create_table(table.name, rows(4))
    assert table.count_rows() == 4

"""Changes of rows by lancedb's remote client."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import lancedb
import pyarrow as pa

from tests.lancedb_remote.remote import ROWS, VECTOR, Shop, connect, new_name, refused, rows

SHORT = pa.table({"id": [1], "text": ["a"]})


def test_rows_are_added(shop: Shop) -> None:
    table = shop.table()
    assert table.add(rows(5, 1000)).version == 2
    assert table.count_rows() == ROWS + 5
    table.add(rows(0))
    assert table.count_rows() == ROWS + 5


def test_rows_of_several_forms_are_added(shop: Shop) -> None:
    table = shop.table(SHORT)
    table.add([{"id": 2, "text": "b"}])
    table.add(pa.table({"id": [3], "text": ["c"]}).to_pandas())
    table.add(pa.table({"id": [4], "text": ["d"]}).to_reader())
    assert table.count_rows() == 4


def test_all_rows_are_replaced(shop: Shop) -> None:
    table = shop.table()
    table.add(rows(5), mode="overwrite")
    assert table.count_rows() == 5
    table.add(rows(0), mode="overwrite")
    assert table.count_rows() == 0


def test_a_large_insert_is_one_version(shop: Shop) -> None:
    table = shop.table()
    large = pa.concat_tables([rows(500, 1000 * (number + 1)) for number in range(12)])
    assert table.add(large, write_parallelism=3).version == 2
    assert table.count_rows() == ROWS + 6000


def test_rows_are_updated_and_counted(shop: Shop) -> None:
    table = shop.table()
    result = table.update(where="id < 3", values={"text": "new"})
    assert (result.rows_updated, result.version) == (3, 2)
    assert table.update(values_sql={"price": "price + 1"}).rows_updated == ROWS
    assert table.count_rows("text = 'new' AND price = id / 2.0 + 1") == 3
    assert table.update(where="id < 0", values={"text": "none"}).rows_updated == 0


def test_rows_are_deleted_and_counted(shop: Shop) -> None:
    table = shop.table()
    result = table.delete("id < 3")
    assert (result.num_deleted_rows, result.version) == (3, 2)
    assert table.delete("id < 3").num_deleted_rows == 0
    assert table.count_rows() == ROWS - 3


def merged(table: Any, *, source: pa.Table | None = None) -> Any:
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute(rows(20, 290) if source is None else source)


def test_rows_are_merged_as_locally(shop: Shop) -> None:
    remote, local = shop.pair()
    assert repr(merged(remote)) == repr(merged(local))
    for table in (remote, local):
        table.delete("id > 305")
    only_updates = [
        table.merge_insert("id").when_matched_update_all().execute(rows(4, 304)) for table in (remote, local)
    ]
    only_inserts = [
        table.merge_insert("id").when_not_matched_insert_all().execute(rows(8, 300)) for table in (remote, local)
    ]
    assert repr(only_updates[0]) == repr(only_updates[1])
    assert repr(only_inserts[0]) == repr(only_inserts[1])
    assert (only_updates[0].num_inserted_rows, only_inserts[0].num_updated_rows) == (0, 0)
    assert remote.count_rows() == local.count_rows()


def test_rows_are_merged_under_conditions(shop: Shop) -> None:
    def work(table: Any) -> Any:
        merge = table.merge_insert(["id", "text"]).when_matched_update_all(where="target.id > 5")
        merge = merge.when_not_matched_insert_all().when_not_matched_by_source_delete("id < 50")
        result = merge.execute(rows(20), timeout=timedelta(seconds=30))
        return repr(result), table.count_rows()

    remote, local = map(work, shop.pair())
    assert remote == local


def test_writers_lose_no_rows(shop: Shop) -> None:
    table = shop.table()

    def work(number: int) -> None:
        handle = connect(shop.url).open_table(table.name)
        for step in range(3):
            handle.add(rows(1, 10_000 + 10 * number + step))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert table.count_rows() == ROWS + 12


def test_errors_name_the_column_and_change_nothing(shop: Shop) -> None:
    table = shop.table()
    wrong = [
        lambda: table.update(where="id = 1", values={"nope": 1}),
        lambda: table.update(where="nope = 1", values={"id": 1}),
        lambda: table.delete("nope = 1"),
        lambda: table.merge_insert("nope").when_not_matched_insert_all().execute(rows(1)),
    ]
    for ask in wrong:
        with refused("nope", table=table):
            ask()
    assert (table.version, table.count_rows()) == (1, ROWS)


def test_the_asynchronous_client(shop: Shop) -> None:
    async def run() -> tuple[int, int, int]:
        db = await lancedb.connect_async("db://shop", api_key="any-key", host_override=shop.url)
        name = new_name()
        table = await db.create_table(name, rows(5))
        await table.add(rows(5, 100))
        counts = (
            await table.count_rows(),
            (await table.query().limit(3).to_arrow()).num_rows,
            (await table.vector_search(VECTOR).limit(3).to_arrow()).num_rows,
        )
        await db.drop_table(name)
        return counts

    assert asyncio.run(run()) == (10, 3, 3)

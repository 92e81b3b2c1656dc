"""A journey of lancedb's client in Python through a server: `python journey.py URL DATABASE`. Prints one JSON object.

`journey.mjs` is the same journey in Node.js. It runs in a process of its own, with the version of lancedb that
PYTHONPATH says.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import lancedb
import pyarrow as pa
from lancedb.index import FTS, BTree, IvfFlat


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": ["puppy runs" if n % 2 else "lazy cat" for n in ids],
            "vector": pa.array([[float(n), 0.0] for n in ids], pa.list_(pa.float32(), 2)),
        }
    )


def ids(found: Any) -> list[int]:
    return [row["id"] for row in found.to_list()]


def told(ask: Callable[[], object]) -> str:
    try:
        ask()
    except Exception as error:  # noqa: BLE001
        return f"{error} {error.__cause__}"
    return "nothing"


def journey(url: str, database: str) -> dict[str, object]:
    connection = lancedb.connect(database, api_key="any-key", host_override=url)
    seen: dict[str, object] = {"empty": list(connection.table_names())}
    table = connection.create_table("t", rows(0, 1, 2))
    seen["created"] = table.count_rows()
    seen["exists"] = "already exists" in told(lambda: connection.create_table("t", rows(1)))
    seen["names"] = list(connection.table_names())
    seen["added"] = table.add(rows(3, 4)).version
    seen["columns"] = connection.open_table("t").schema.names
    seen["updated"] = table.update(where="id > 2", values={"text": "fast dog"}).rows_updated
    seen["deleted"] = table.delete("id = 4").num_deleted_rows
    merged = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(3, 5))
    seen["merged"] = [merged.num_inserted_rows, merged.num_updated_rows]
    seen["filtered"] = ids(table.search().where("id > 2").select(["id"]).limit(10))
    order = [lancedb.query.ColumnOrdering(column_name="id", ascending=False, nulls_first=False)]
    seen["ordered"] = ids(table.search().order_by(order).limit(2))
    seen["nearest"] = ids(table.search([2.2, 0.0]).limit(3))
    seen["bounded"] = ids(table.search([2.2, 0.0]).distance_range(0.5, 3.0).limit(10))
    seen["explained"] = "KNN" in table.search([2.2, 0.0]).limit(3).explain_plan()
    table.create_index("id", config=BTree(), name="ids")
    table.create_index("text", config=FTS(), name="words")
    table.create_index("vector", config=IvfFlat(distance_type="cosine", num_partitions=1), name="near")
    seen["indices"] = sorted(f"{index.name} {','.join(index.columns)}" for index in table.list_indices())
    seen["metric"] = table.index_stats("near").distance_type
    seen["words"] = sorted(ids(table.search("puppy", query_type="fts", fts_columns="text").limit(10)))
    table.drop_index("ids")
    seen["left"] = len(list(table.list_indices()))
    table.add_columns({"twice": "id * 2"})
    table.alter_columns({"path": "twice", "rename": "double"})
    seen["doubled"] = table.count_rows("double = id * 2")
    table.drop_columns(["double"])
    table.tags.create("first", 1)
    seen["tag"] = table.tags.get_version("first")
    table.checkout("first")
    seen["then"] = table.count_rows()
    table.checkout_latest()
    branch = table.branches.create("dev")
    branch.delete("id = 0")
    seen["branch"] = [branch.count_rows(), table.count_rows()]
    table.checkout(1)
    table.restore()
    seen["restored"] = table.count_rows()
    seen["taken"] = sorted(ids(table.take_offsets([2, 0])))
    connection.create_namespace(["inner"])
    connection.create_table("u", rows(1), namespace_path=["inner"])
    seen["inner"] = list(connection.table_names(namespace_path=["inner"]))
    connection.rename_table("t", "renamed")
    seen["renamed"] = list(connection.table_names())
    seen["column"] = "nope" in told(lambda: connection.open_table("renamed").count_rows("nope > 1"))
    connection.drop_table("renamed")
    seen["missing"] = "was not found" in told(lambda: connection.open_table("renamed"))
    return seen


if __name__ == "__main__":
    print(lancedb.__version__)
    print(json.dumps(journey(*sys.argv[1:3])))

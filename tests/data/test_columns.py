"""Columns are added, altered and dropped over HTTP and in process, as the stock server and pylance do it."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Any

import lance
import lance_namespace as models
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, TableColumnNotFoundError, UnsupportedOperationError

from tests.data.two_servers import TwoServers, TwoTables

SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64(), nullable=False),
        pa.field("s", pa.string()),
        pa.field("st", pa.struct([pa.field("x", pa.int32()), pa.field("y.z", pa.string())])),
        pa.field("l", pa.list_(pa.int32())),
        pa.field("ls", pa.list_(pa.struct([pa.field("p", pa.int32()), pa.field("q", pa.string())]))),
        pa.field("v", pa.list_(pa.float32(), 4)),
    ]
)
ROWS = pa.table(
    {
        "a": [1, 2, 3, 4],
        "s": ["x", "y", None, "z"],
        "st": [{"x": 1, "y.z": "q"}, {"x": None, "y.z": "r"}, None, {"x": 4, "y.z": None}],
        "l": [[1, 2], None, [], [None, 7]],
        "ls": [[{"p": 1, "q": "a"}, None], None, [], [{"p": None, "q": "b"}]],
        "v": [[1.0, 2, 3, 4], None, [5, 6, 7, 8], [0, 0, 0, 0]],
    },
    schema=SCHEMA,
)


@pytest.fixture
def table(servers: TwoServers, name: str) -> TwoTables:
    return servers.make(name, ROWS, ROWS.slice(1, 2))


def agree(table: TwoTables) -> lance.LanceDataset:
    """Both have the same schema, rows and indices. Ours, which stock pylance has validated."""
    ours, stock = table.each()
    assert ours.schema.equals(stock.schema, check_metadata=True), (ours.schema, stock.schema)
    assert ours.to_table() == stock.to_table()
    found = [
        [(index.name, index.num_rows_indexed) for index in dataset.describe_indices()] for dataset in (ours, stock)
    ]
    assert found[0] == found[1]
    return ours


def goes_on(table: TwoTables) -> None:
    """Stock pylance reads, deletes, appends and compacts what we made, as in the other table."""
    for dataset in table.each():
        dataset.delete(f"`{dataset.schema.names[-1]}` IS NULL")
        dataset.optimize.compact_files()
    table.append(table.open_stock().to_table().slice(0, 1))
    agree(table)


class TestAdd:
    def test_expressions_are_computed_for_the_rows_that_there_are(self, table: TwoTables) -> None:
        columns = [{"name": "b", "expression": "a + 1"}, {"name": "c", "expression": "upper(s)"}]
        ours, stock = table.both("add_columns", {"new_columns": columns})
        assert ours == stock == {"version": 3}
        assert agree(table).to_table(columns=["b", "c"]).slice(0, 2).to_pylist() == [
            {"b": 2, "c": "X"},
            {"b": 3, "c": "Y"},
        ]
        goes_on(table)

    def test_deleted_rows_stay_deleted(self, table: TwoTables) -> None:
        for dataset in table.each():
            dataset.delete("a = 2")
        table.both("add_columns", {"new_columns": [{"name": "b", "expression": "a * 2"}]})
        agree(table)
        goes_on(table)

    def test_a_table_without_rows(self, servers: TwoServers, name: str) -> None:
        table = servers.make(name, ROWS.slice(0, 0))
        assert table.post("add_columns", {"new_columns": [{"name": "b", "expression": "a + 1"}]}).status_code == 200
        dataset = table.open()
        assert dataset.schema.field("b").type == pa.int64()
        rows = ROWS.append_column("b", pa.array([5, 6, 7, 8], pa.int64()))
        lance.write_dataset(rows, namespace_client=table.client, table_id=table.id, mode="append")
        assert table.open().to_table() == rows

    def test_constants_of_a_table_without_rows(self, servers: TwoServers, name: str) -> None:
        table = servers.make(name, ROWS.slice(0, 0))
        constants = {"number": "1", "text": "'x'", "day": "current_date()"}
        columns = [{"name": name, "expression": value} for name, value in constants.items()]
        table.both("add_columns", {"new_columns": columns})
        table.both("add_columns", {"new_columns": [{"name": "nothing", "expression": "NULL"}]})
        ours, stock = table.each()
        assert (ours.schema.names, ours.schema.types) == (stock.schema.names, stock.schema.types)

    def test_the_id_of_a_dropped_column_is_not_used_again(self, table: TwoTables) -> None:
        table.both("add_columns", {"new_columns": [{"name": "b", "expression": "a + 1"}]})
        table.both("drop_columns", {"columns": ["b"]})
        table.both("add_columns", {"new_columns": [{"name": "b", "expression": "a + 2"}]})
        assert agree(table).to_table(columns=["b"])["b"].to_pylist()[:2] == [3, 4]

    def test_no_columns_change_nothing(self, table: TwoTables) -> None:
        assert table.post("add_columns", {"new_columns": []}).json() == {"version": 2}

    @pytest.mark.parametrize(
        ("entry", "code"),
        [
            ({"name": "a", "expression": "a"}, 13),
            ({"name": "b", "expression": "nope + 1"}, 12),
            ({"name": "b", "expression": "a +"}, 13),
            ({"name": "b", "expression": "1 / 0"}, 13),
            ({"name": "b", "expression": "1 / (a - 1)"}, 13),
            ({"name": "b", "expression": ""}, 13),
            ({"name": "b", "expression": "(" * 200 + "a" + ")" * 200}, None),
            ({"name": "b", "expression": "no_such_function(a)"}, 13),
            ({"name": "b", "expression": 1}, 13),
            ({"name": "b"}, 13),
            ({"name": "", "expression": "a"}, 13),
            ({"name": "st.q", "expression": "a"}, 13),
            ({"name": "b", "computed": "a + 1"}, 0),
            ({"name": "b", "expression": "a", "computed": "a + 1"}, 0),
            ({"name": "b", "expression": "a", "virtual_column": {"image": "i"}}, 0),
            (
                {
                    "name": "b",
                    "virtual_column": {
                        "input_columns": ["a"],
                        "outputs": [],
                        "image": "i",
                        "udf": "u",
                        "udf_name": "n",
                        "udf_version": "1",
                    },
                },
                0,
            ),
            ({"expression": "a"}, 13),
        ],
        ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else "",
    )
    def test_what_cannot_be_added(self, table: TwoTables, entry: dict[str, Any], code: int | None) -> None:
        if code is None:
            assert table.post("add_columns", {"new_columns": [entry]}).status_code in {200, 400}
            return
        status, found, text = table.refused("add_columns", {"new_columns": [entry]})
        assert (status, found) == ({12: 404, 0: 406}.get(code, 400), code), text
        assert table.open().version == 2

    def test_two_columns_of_one_name(self, table: TwoTables) -> None:
        entry = {"name": "b", "expression": "a"}
        assert table.refused("add_columns", {"new_columns": [entry, entry]})[:2] == (400, 13)


class TestAlter:
    @pytest.mark.parametrize(
        "alterations",
        [
            [{"path": "a", "rename": "b"}],
            [{"path": "st.x", "rename": "xx"}],
            [{"path": "st.`y.z`", "rename": "yz"}],
            [{"path": "ls.item.q", "rename": "r"}],
            [{"path": "s", "rename": "tmp"}, {"path": "l", "rename": "s"}],
            [{"path": "s", "rename": "l"}, {"path": "l", "rename": "s"}],
            [{"path": "a", "nullable": True}],
            [{"path": "a", "data_type": "int32"}],
            [{"path": "a", "data_type": "UInt8", "rename": "b", "nullable": True}],
            [{"path": "s", "data_type": "large_utf8"}],
            [{"path": "st.x", "data_type": "int64"}],
            [{"path": "st.`y.z`", "data_type": "large_utf8"}],
            [{"path": "l.item", "data_type": "int64"}],
            [{"path": "ls.item.p", "data_type": "int8"}],
            [{"path": "st.x", "data_type": "int64"}, {"path": "a", "data_type": "int16"}, {"path": "s", "rename": "t"}],
        ],
        ids=lambda value: json.dumps(value)[:70],
    )
    def test_as_the_stock_server_does(self, table: TwoTables, alterations: list[dict[str, Any]]) -> None:
        for dataset in table.each():
            dataset.delete("a = 3")
        ours, stock = table.both("alter_columns", {"alterations": alterations})
        assert ours == stock == {"version": 4}
        agree(table)
        goes_on(table)

    def test_types_as_objects(self, table: TwoTables) -> None:
        half = {"type": "fixed_size_list", "length": 4, "fields": [{"name": "item", "type": {"type": "float16"}}]}
        before = table.open().to_table()
        body = {"alterations": [{"path": "a", "data_type": {"type": "int32"}}, {"path": "v", "data_type": half}]}
        answer = table.post("alter_columns", body)
        assert answer.status_code == 200, answer.text
        dataset = table.open()
        assert [dataset.schema.field(name).type for name in "av"] == [pa.int32(), pa.list_(pa.float16(), 4)]
        assert dataset.to_table().to_pylist() == before.to_pylist()

    def test_a_stock_client_sends_types_as_objects(self, table: TwoTables) -> None:
        entry = {"path": "a", "data_type": {"type": "int32"}}
        request = models.AlterTableAlterColumnsRequest.from_dict({"id": table.id, "alterations": [entry]})
        assert table.client.alter_table_alter_columns(request).version == 3
        assert table.open().schema.field("a").type == pa.int32()

    def test_the_types_of_a_description_are_understood(self, table: TwoTables) -> None:
        described = table.post("describe", {"load_detailed_metadata": True}).json()["schema"]["fields"]
        for field in described:
            if field["name"] in {"a", "s", "v"}:
                body = {"alterations": [{"path": field["name"], "data_type": field["type"]}]}
                assert table.post("alter_columns", body).json() == {"version": 2}

    def test_a_table_without_rows(self, servers: TwoServers, name: str) -> None:
        table = servers.make(name, ROWS.slice(0, 0))
        body = {"alterations": [{"path": "a", "data_type": "int32"}, {"path": "ls.item.p", "data_type": "int64"}]}
        assert table.post("alter_columns", body).status_code == 200
        assert table.open().schema.field("a").type == pa.int32()
        rows = ROWS.set_column(0, pa.field("a", pa.int32(), nullable=False), ROWS["a"].cast(pa.int32()))
        rows = rows.set_column(4, "ls", ROWS["ls"].cast(table.open().schema.field("ls").type))
        lance.write_dataset(rows, namespace_client=table.client, table_id=table.id, mode="append")
        assert table.open().to_table()["ls"].to_pylist() == ROWS["ls"].to_pylist()

    def test_the_old_file_goes_with_its_last_column(self, servers: TwoServers, name: str) -> None:
        table = servers.make(name, pa.table({"a": [1, 2]}))
        table.both("alter_columns", {"alterations": [{"path": "a", "data_type": "int8"}]})
        [fragment] = agree(table).get_fragments()
        assert len(fragment.metadata.files) == 1

    @pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
    def test_every_format_of_data_files(self, servers: TwoServers, name: str, version: str) -> None:
        table = servers.make(name, ROWS.select(["a", "st"]).slice(0, 2), data_storage_version=version)
        table.both("alter_columns", {"alterations": [{"path": "a", "data_type": "int16"}]})
        agree(table)
        body = {"alterations": [{"path": "st.x", "data_type": "int64"}]}
        if version == "2.0":
            assert table.refused("alter_columns", body)[:2] == (400, 13)
        else:
            table.both("alter_columns", body)
        agree(table) if version != "2.0" else table.open().to_table()

    def test_indices_stay_with_a_new_name(self, table: TwoTables) -> None:
        table.both("create_index", {"column": "a", "index_type": "BTREE"})
        table.both("create_index", {"column": "st.x", "index_type": "BTREE"})
        table.both("alter_columns", {"alterations": [{"path": "a", "rename": "b"}]})
        table.both("alter_columns", {"alterations": [{"path": "st.`y.z`", "data_type": "large_utf8"}]})
        assert "ScalarIndexQuery" in agree(table).scanner(filter="b = 2").explain_plan()
        ours, stock = table.both("index/list")
        assert [index["columns"] for index in ours["indexes"]] == [index["columns"] for index in stock["indexes"]]

    @pytest.mark.parametrize("path", ["a", "st.x"])
    def test_a_column_with_an_index_is_not_cast(self, table: TwoTables, path: str) -> None:
        table.both("create_index", {"column": path, "index_type": "BTREE", "name": "i"})
        body = {"alterations": [{"path": path, "data_type": "int16"}]}
        assert table.post_stock("alter_columns", body).status_code == 500
        status, code, text = table.refused("alter_columns", body)
        assert (status, code) == (400, 13)
        assert "'i'" in text

    @pytest.mark.parametrize("alterations", [[], [{"path": "a"}], [{"path": "a", "data_type": "int64"}]])
    def test_what_changes_nothing(self, table: TwoTables, alterations: list[Any]) -> None:
        assert table.post("alter_columns", {"alterations": alterations}).json() == {"version": 2}

    @pytest.mark.parametrize(
        ("entry", "code"),
        [
            ({"path": "nope", "rename": "b"}, 12),
            ({"path": "st.nope", "rename": "b"}, 12),
            ({"path": "st.y.z", "rename": "b"}, 12),
            ({"path": "st.", "rename": "b"}, 13),
            ({"path": "", "rename": "b"}, 13),
            ({"path": "a", "rename": "s"}, 13),
            ({"path": "a", "rename": ""}, 13),
            ({"path": "a", "rename": "x.y"}, 13),
            ({"path": "st.x", "rename": "y.z"}, 13),
            ({"path": "s", "nullable": False}, 13),
            ({"path": "st.x", "nullable": False}, 13),
            ({"path": "l.item", "nullable": False}, 13),
            ({"path": "a", "data_type": "utf8"}, 13),
            ({"path": "a", "data_type": "nope"}, 13),
            ({"path": "a", "data_type": {"type": 1}}, 13),
            ({"path": "a", "data_type": {}}, 13),
            ({"path": "a", "data_type": {"type": "list"}}, 13),
            ({"path": "a", "data_type": {"type": "decimal128", "length": 10**9}}, 13),
            ({"path": "a", "data_type": 1}, 13),
            ({"path": "st", "data_type": "int32"}, 13),
            ({"path": "l", "data_type": "int32"}, 13),
            ({"path": "v", "data_type": {"type": "fixed_size_list", "length": 3, "fields": [{"type": "float16"}]}}, 13),
            ({"path": "a", "virtual_column": {"image": "x"}}, 0),
        ],
        ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else "",
    )
    def test_what_cannot_be_altered(self, table: TwoTables, entry: dict[str, Any], code: int) -> None:
        status, found, text = table.refused("alter_columns", {"alterations": [entry]})
        assert (status, found) == ({12: 404, 0: 406}.get(code, 400), code), text
        assert table.open().version == 2

    def test_a_value_that_does_not_fit(self, servers: TwoServers, name: str) -> None:
        table = servers.make(name, pa.table({"a": [1, 2**40]}))
        body = {"alterations": [{"path": "a", "data_type": "int32"}]}
        assert table.post_stock("alter_columns", body).status_code == 500
        status, code, text = table.refused("alter_columns", body)
        assert (status, code) == (400, 13)
        assert str(2**40) in text


class TestDrop:
    @pytest.mark.parametrize(
        "columns",
        [["a"], ["s", "l"], ["st.x"], ["st.`y.z`"], ["ls.item.p"], ["st.x", "st.`y.z`"], ["st", "st.x"], ["v"]],
        ids=repr,
    )
    def test_as_the_stock_server_does(self, table: TwoTables, columns: list[str]) -> None:
        ours, stock = table.both("drop_columns", {"columns": columns})
        assert (ours["version"], stock) == (3, {"version": 3})
        assert ours["transaction_id"]
        agree(table)
        goes_on(table)

    def test_the_index_goes_with_the_column(self, table: TwoTables) -> None:
        for column in ("a", "st.x", "s"):
            table.both("create_index", {"column": column, "index_type": "BTREE"})
        table.both("drop_columns", {"columns": ["a", "st.x"]})
        assert [index.name for index in agree(table).describe_indices()] == ["s_idx"]

    @pytest.mark.parametrize(
        ("columns", "code"),
        [(["nope"], 12), (["a", "st.nope"], 12), (["st..x"], 13), ([""], 13), (SCHEMA.names, 13), ([1], 13), ("a", 13)],
    )
    def test_what_cannot_be_dropped(self, table: TwoTables, columns: Any, code: int) -> None:
        assert table.refused("drop_columns", {"columns": columns})[:2] == (404 if code == 12 else 400, code)
        assert table.open().version == 2

    def test_no_columns_change_nothing(self, table: TwoTables) -> None:
        assert table.post("drop_columns", {"columns": []}).json() == {"version": 2}


def test_in_process(table: TwoTables) -> None:
    namespace = table.servers.namespace

    def change(call: str, **body: Any) -> Any:
        request = getattr(models, "".join(word.capitalize() for word in call.split("_")) + "Request")
        return getattr(namespace, call)(request.from_dict({"id": table.id, **body}))

    assert change("alter_table_add_columns", new_columns=[{"name": "b", "expression": "a + 1"}]).version == 3
    altered = change(
        "alter_table_alter_columns", alterations=[{"path": "b", "data_type": {"type": "int8"}, "rename": "c"}]
    )
    assert altered.version == 4
    assert table.open().to_table(columns=["c"])["c"].to_pylist() == [2, 3, 4, 5, 3, 4]
    assert table.open().schema.field("c").type == pa.int8()
    dropped = change("alter_table_drop_columns", columns=["c", "st.x"])
    assert (dropped.version, bool(dropped.transaction_id)) == (5, True)
    with pytest.raises(TableColumnNotFoundError):
        change("alter_table_drop_columns", columns=["c"])
    with pytest.raises(InvalidInputError):
        change("alter_table_drop_columns", columns=table.open().schema.names)
    with pytest.raises(UnsupportedOperationError):
        change("alter_table_add_columns", new_columns=[{"name": "d", "computed": "a"}])


def test_columns_are_added_while_rows_are_appended(table: TwoTables) -> None:
    """A merge conflicts with every append, and is computed again."""

    def append() -> None:
        for _ in range(8):
            with suppress(OSError, ValueError):  # the schema has the new column
                lance.write_dataset(ROWS, namespace_client=table.client, table_id=table.id, mode="append")

    thread = threading.Thread(target=append)
    thread.start()
    answer = table.post("add_columns", {"new_columns": [{"name": "b", "expression": "a + 1"}]})
    thread.join()
    assert answer.status_code == 200, answer.text
    dataset = table.open()
    assert dataset.count_rows("b = a + 1") == dataset.count_rows() >= 6

"""Metadata of schemas and fields, restore and statistics: as the stock server and pylance do it."""

from __future__ import annotations

import threading

import lance_namespace as models
import pyarrow as pa
import pytest
from lance_namespace.errors import TableColumnNotFoundError, TableVersionNotFoundError

from tests.data.two_servers import TwoServers, TwoTables, without

STRUCT = pa.struct([pa.field("x", pa.int32()), pa.field("y.z", pa.string()), pa.field("b`t", pa.int8())])
ROWS = pa.table({"a": [1, 2], "s": pa.array([{"x": 1, "y.z": "q", "b`t": 3}] * 2, STRUCT)})


@pytest.fixture
def table(servers: TwoServers, name: str) -> TwoTables:
    return servers.make(name, ROWS)


class TestSchemaMetadata:
    def test_it_is_replaced(self, table: TwoTables) -> None:
        """As the published text says; the stock server keeps the keys that are not named."""
        for keys in ({"k": "1", "l": "2"}, {"l": "3"}):
            assert table.post("schema_metadata/update", keys).json() == keys
            assert table.open().schema.metadata == {key.encode(): value.encode() for key, value in keys.items()}
        before = table.open().version
        assert table.post("schema_metadata/update", {"l": "3"}).json() == {"l": "3"}
        assert table.open().version == before
        assert table.post("schema_metadata/update", {}).json() == {}
        assert not table.open().schema.metadata

    def test_names_of_request_fields_are_keys_like_others(self, table: TwoTables) -> None:
        ours, stock = table.both("schema_metadata/update", {"id": "x", "identity": "y", "metadata": "z"})
        assert ours == stock == {"id": "x", "identity": "y", "metadata": "z"}

    @pytest.mark.parametrize("body", [{"k": None}, {"k": {"m": "x"}}, {"k": 1}, [], "k"], ids=repr)
    def test_values_must_be_strings(self, table: TwoTables, body: object) -> None:
        answer = table.servers.ours.post(f"/v1/table/w${table.name}/schema_metadata/update", json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, 13)

    def test_in_process_the_answer_names_the_transaction(self, table: TwoTables) -> None:
        request = models.UpdateTableSchemaMetadataRequest(id=table.id, metadata={"k": "v"})
        answer = table.servers.namespace.update_table_schema_metadata(request)
        assert answer.metadata == {"k": "v"}
        assert answer.transaction_id
        assert table.client.update_table_schema_metadata(request).metadata == {"k": "v"}

    def test_a_branch_is_named_in_the_query(self, table: TwoTables) -> None:
        answer = table.post("schema_metadata/update?branch=nix", {"k": "v"})
        assert (answer.status_code, answer.json()["code"]) == (404, 22)

    def test_changes_at_one_time_all_succeed(self, table: TwoTables) -> None:
        def change(number: int) -> None:
            answers.append(table.post("schema_metadata/update", {f"k{number}": "v"}).status_code)

        answers: list[int] = []
        threads = [threading.Thread(target=change, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (answers.count(200), answers.count(409)) == (6, 0)
        assert (table.open().version, len(table.open().schema.metadata)) == (7, 1)


class TestFieldMetadata:
    def test_keys_are_set_removed_and_replaced(self, table: TwoTables) -> None:
        stock = table.open_stock()
        for metadata, replace in (({"u": "1", "w": "2"}, None), ({"u": None, "v": "3"}, False), ({"z": "4"}, True)):
            entry = {"path": "a", "metadata": metadata, "replace": replace}
            answer = table.post("update_field_metadata", {"updates": [entry]})
            assert answer.status_code == 200, answer.text
            stock.update_field_metadata({"a": metadata}, replace=bool(replace))
            field = table.open().schema.field("a")
            assert field.metadata == stock.schema.field("a").metadata
            expected = {key.decode(): value.decode() for key, value in field.metadata.items()}
            assert answer.json() == {"version": table.open().version, "fields": {"a": expected}}

    def test_fields_are_named_by_path_and_answered_by_canonical_path(self, table: TwoTables) -> None:
        updates = [
            {"path": "s.`x`", "metadata": {"n": "1"}},
            {"path": "s.`y.z`", "metadata": {"n": "2"}},
            {"path": "s.`b``t`", "metadata": {"n": "3"}},
            {"path": "s", "metadata": {"n": "4"}},
        ]
        answer = table.post("update_field_metadata", {"updates": updates}).json()
        assert answer["fields"] == {
            "s": {"n": "4"},
            "s.x": {"n": "1"},
            "s.`y.z`": {"n": "2"},
            "s.`b``t`": {"n": "3"},
        }
        assert table.open().schema.field("s").type.field("y.z").metadata == {b"n": b"2"}

    def test_entries_for_one_field_are_applied_in_order(self, table: TwoTables) -> None:
        updates = [
            {"path": "a", "metadata": {"gone": "1"}},
            {"path": "a", "metadata": {"p": "1", "q": "1"}, "replace": True},
            {"path": "`a`", "metadata": {"q": None, "r": "2"}},
        ]
        assert table.post("update_field_metadata", {"updates": updates}).json()["fields"] == {"a": {"p": "1", "r": "2"}}

    @pytest.mark.parametrize(
        ("path", "code"), [("nope", 12), ("s.nope", 12), ("a.b", 12), ("s.y.z", 12), ("s..x", 13), ("`a", 13)]
    )
    def test_a_path_that_names_no_field(self, table: TwoTables, path: str, code: int) -> None:
        status, found, text = table.refused("update_field_metadata", {"updates": [{"path": path, "metadata": {}}]})
        assert (status, found) == (404 if code == 12 else 400, code)
        assert repr(path)[1:-1] in text

    def test_no_entries_change_nothing(self, table: TwoTables) -> None:
        assert table.post("update_field_metadata", {"updates": []}).json() == {"version": 1, "fields": {}}

    def test_in_process(self, table: TwoTables) -> None:
        namespace = table.servers.namespace
        entry = models.UpdateFieldMetadataRequest.from_dict(
            {"id": table.id, "updates": [{"path": "a", "metadata": {"u": "1", "v": "2"}}]}
        )
        assert namespace.update_field_metadata(entry).fields == {"a": {"u": "1", "v": "2"}}
        removal = {"id": table.id, "updates": [{"path": "a", "metadata": {"u": None}}]}
        request = models.UpdateFieldMetadataRequest.from_dict(removal)
        assert namespace.update_field_metadata(request).fields == {"a": {"v": "2"}}
        with pytest.raises(TableColumnNotFoundError):
            namespace.update_field_metadata(
                models.UpdateFieldMetadataRequest.from_dict(
                    {"id": table.id, "updates": [{"path": "q", "metadata": {}}]}
                )
            )


class TestRestore:
    def test_the_content_of_an_earlier_version_is_a_new_version(self, table: TwoTables) -> None:
        table.append(ROWS)
        table.both("schema_metadata/update", {"k": "v"})
        ours, stock = table.both("restore", {"version": 1})
        assert ours.keys() == stock.keys() == {"transaction_id"}
        for dataset in table.each():
            assert (dataset.version, dataset.count_rows(), dataset.schema.metadata) == (4, 2, None)
        table.both("restore", {"version": 3})
        for dataset in table.each():
            assert (dataset.version, dataset.count_rows(), dataset.schema.metadata) == (5, 4, {b"k": b"v"})
            assert dataset.to_table().num_rows == 4
        table.append(ROWS)
        assert table.open().count_rows() == 6

    @pytest.mark.parametrize("version", [0, 2, 99, 2**63 - 1])
    def test_a_version_that_does_not_exist(self, table: TwoTables, version: int) -> None:
        status, code, text = table.refused("restore", {"version": version})
        assert (status, code) == (404, 11)
        assert str(version) in text

    @pytest.mark.parametrize("body", [{}, {"version": None}, {"version": -1}, {"version": "1"}, {"version": 2**64}])
    def test_a_version_that_is_none(self, table: TwoTables, body: dict[str, object]) -> None:
        assert table.refused("restore", body)[:2] == (400, 13)

    def test_in_process(self, table: TwoTables) -> None:
        table.append(ROWS)
        namespace = table.servers.namespace
        assert namespace.restore_table(models.RestoreTableRequest(id=table.id, version=1)).transaction_id
        assert table.open().count_rows() == 2
        with pytest.raises(TableVersionNotFoundError):
            namespace.restore_table(models.RestoreTableRequest(id=table.id, version=9))
        assert table.client.restore_table(models.RestoreTableRequest(id=table.id, version=2)).transaction_id
        assert table.open().count_rows() == 4


class TestStatistics:
    def test_are_those_of_the_stock_server(self, servers: TwoServers, name: str) -> None:
        sizes = (1000, 7, 250, 3, 3, 90, 12, 1)
        tables = [pa.table({"a": range(size), "s": [f"text {number}" for number in range(size)]}) for size in sizes]
        table = servers.make(name, *tables)
        ours, stock = table.both("stats")
        assert ours == stock
        assert ours["fragment_stats"]["lengths"]["p75"] == 90
        for dataset in table.each():
            dataset.create_scalar_index("a", "BTREE")
        ours, stock = table.both("stats")
        assert ours == stock
        assert ours["num_indices"] == 1

    def test_rows_are_without_the_deleted_ones(self, table: TwoTables) -> None:
        for dataset in table.each():
            dataset.delete("a = 1")
        ours, stock = table.both("stats")
        assert without(ours, "num_rows") == without(stock, "num_rows")
        assert ours["num_rows"] == table.post("count_rows").json() == 1

    def test_of_a_table_without_rows(self, servers: TwoServers, name: str) -> None:
        table = servers.make(name, ROWS.slice(0, 0))
        ours, stock = table.both("stats")
        assert ours == stock

    def test_in_process_and_as_of_a_catalog_version(self, table: TwoTables) -> None:
        first = table.post("stats")
        table.append(ROWS)
        now = table.servers.namespace.get_table_stats(models.GetTableStatsRequest(id=table.id))
        assert (now.num_rows, now.fragment_stats.num_fragments) == (4, 2)
        assert table.client.get_table_stats(models.GetTableStatsRequest(id=table.id)).num_rows == 4
        pin = {"x-lance-catalog-version": first.headers["x-lance-catalog-version"]}
        assert table.post("stats", headers=pin).json() == first.json()

    def test_of_a_table_that_does_not_exist(self, servers: TwoServers) -> None:
        answer = servers.ours.post("/v1/table/w$absent/stats", json={})
        assert (answer.status_code, answer.json()["code"]) == (404, 4)

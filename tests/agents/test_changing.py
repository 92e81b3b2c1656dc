"""Changes: one batch with a message, once under a key, and none without the right to it."""

from __future__ import annotations

import secrets
from typing import Any

import pyarrow as pa
import pytest

from namespace_server.access.subjects import Privilege
from tests.agents.agents import Caller, over_http, talk, text_of
from tests.agents.conftest import Team

ROWS = [
    {"id": 1, "at": "2026-03-01T12:00:00Z", "price": "1.50", "v": [1, 2], "raw": "AP8="},
    {"id": 2, "at": None, "price": 2, "v": [0.5, 1e3], "raw": None},
]
COLUMNS = "id int64, at timestamp[us, tz=UTC], price decimal(10, 2), v float[2], raw binary"


def new_name() -> str:
    return f"work.t{secrets.token_hex(4)}"


def create(name: str, **fields: Any) -> dict[str, Any]:
    return {"do": "create_table", "table": name, "columns": COLUMNS, "rows": ROWS, **fields}


def test_a_list_of_changes_is_one_batch_with_its_message(admin: Caller) -> None:
    name, other = new_name(), new_name()
    admin("change", message="make", changes=[create(name)])
    changes = [
        {"do": "insert_rows", "table": name, "rows": [{"id": 3}]},
        {"do": "update_rows", "table": name, "set": {"price": "price + 1"}, "filter": "id = 1"},
        {"do": "create_table", "table": other, "rows": [{"a": "x"}]},
        {"do": "set_table_properties", "table": name, "set": {"owner": "me"}},
    ]
    made = admin("change", message="all of it", changes=changes)
    assert [each["rows"] for each in made["changes"]] == [1, 1, 1, None]
    [batch] = admin("catalog_history", table=other)["entries"]
    assert (batch["message"], batch["version"]) == ("all of it", made["catalog_version"])
    found = admin("query_rows", table=name, order_by=[{"column": "id"}])["rows"]
    assert found == [
        {"id": 1, "at": "2026-03-01T12:00:00+00:00", "price": "2.50", "v": [1.0, 2.0], "raw": "AP8="},
        {"id": 2, "at": None, "price": "2.00", "v": [0.5, 1000.0], "raw": None},
        {"id": 3, "at": None, "price": None, "v": None, "raw": None},
    ]
    assert admin("describe_table", table=name)["properties"] == {"owner": "me"}
    gone = admin("change", message="less", changes=[{"do": "delete_rows", "table": name, "filter": "id > 1"}])
    assert gone["changes"][0]["rows"] == 2
    assert admin("count_rows", table=name)["rows"] == 1
    none = admin("change", message="none", changes=[{"do": "delete_rows", "table": name, "filter": "id > 1"}])
    assert (none["transaction_id"], none["changes"][0]["rows"]) == (None, 0)


def test_values_come_back_as_they_were_given(admin: Caller) -> None:
    name = new_name()
    columns = "i int64, u uint64, d decimal(38, 18), f float64, g float32, b binary, t timestamp[ns], s string"
    rows = [
        {"i": 2**63 - 1, "u": 2**64 - 1, "d": "12345678901234567890.123456789012345678", "f": 0.1, "g": 0.5},
        {"i": -(2**63), "u": 2**53 + 1, "d": "-1.000000000000000001", "f": "NaN", "g": "-Infinity"},
        {"b": "AP8AgA==", "t": "2026-03-01T12:00:00.123456789", "s": "\u0000\ud7ff\U0001f600\r\n"},
    ]
    admin("change", message="exact", changes=[create(name, columns=columns, rows=rows)])
    found = admin("query_rows", table=name)["rows"]
    assert [{key: value for key, value in row.items() if value is not None} for row in found] == rows


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("i int64", 2**63),
        ("i int64", 0.5),
        ("u uint64", -1),
        ("d decimal(38, 18)", 0.1234567890123456789),
        ("d decimal(10, 2)", "1.005"),
        ("b binary", "not base64!"),
        ("v float[2]", [1]),
        ("l list<decimal(38, 18)>", [0.1234567890123456789]),
    ],
)
def test_a_value_that_would_be_another_one_is_refused(admin: Caller, column: str, value: Any) -> None:
    change = create(new_name(), columns=column, rows=[{column[0]: value}])
    refused = admin.refused("change", message="inexact", changes=[change])
    assert refused["outcome"] == "nothing_done"
    assert "not foreseen" not in refused["error"]


def test_of_a_batch_that_is_refused_nothing_is_done(admin: Caller) -> None:
    name = new_name()
    wrong = [create(name), {"do": "insert_rows", "table": "shop.orders", "rows": [{"id": "seven"}]}]
    refused = admin.refused("change", message="m", changes=wrong)
    assert refused["error"] == "shop.orders: row 0: column id: expected int64, found 'seven'"
    assert refused["outcome"] == "nothing_done"
    taken = [create(name), {"do": "undrop_table", "table": "shop.never"}]
    assert admin.refused("change", message="m", changes=taken)["outcome"] == "nothing_done"
    assert admin.refused("describe_table", table=name)["code"] == 4
    for changes, said in (
        ([{"do": "create_namespace", "namespace": name}, create(name)], "expected to be the only change"),
        ([{"do": "upsert_rows", "table": "shop.orders", "rows": [{"id": 1}], "on": []}], "at least 1"),
        ([{"do": "upsert_rows", "table": "shop.orders", "rows": [{"id": 1}], "on": ["nope"]}], "nope"),
        ([{"do": "delete_rows", "table": "shop.orders", "filter": "id = 1"}] * 2, "found two"),
        ([{"do": "insert_rows", "table": "shop.orders", "rows": [{"nope": 1}]}], "found nope"),
        ([{"do": "create_table", "table": name}], "found neither"),
        ([{"do": "create_table", "table": name, "columns": "id nothing"}], "expected a type"),
        ([{"do": "burn"}], "burn"),
        ([], "at least 1"),
    ):
        assert said in admin.refused("change", message="m", changes=changes)["error"]


def test_tables_are_dropped_renamed_and_changed_in_one_batch(admin: Caller) -> None:
    kept, gone, moved, new = (new_name() for _ in range(4))
    admin("change", message="make", changes=[create(each) for each in (kept, gone, moved)])
    before = admin("describe_catalog")["catalog_version"]
    upsert = {"do": "upsert_rows", "table": kept, "rows": [{"id": 2, "price": "9"}, {"id": 3}], "on": ["id"]}
    made = admin(
        "change",
        message="as one",
        changes=[
            {"do": "drop_table", "table": gone},
            upsert,
            {"do": "rename_table", "table": moved, "new_name": gone},
            {"do": "create_table", "table": new, "rows": [{"a": 1}]},
        ],
    )
    assert made["catalog_version"] == before + 1
    assert [(each["do"], each["version"], each["rows"]) for each in made["changes"]] == [
        ("drop_table", None, None),
        ("upsert_rows", 2, 2),
        ("rename_table", None, None),
        ("create_table", 1, 1),
    ]
    rows = admin("query_rows", table=kept, columns=["id", "price"], order_by=[{"column": "id"}])["rows"]
    assert rows == [{"id": 1, "price": "1.50"}, {"id": 2, "price": "9.00"}, {"id": 3, "price": None}]
    assert admin("count_rows", table=gone)["rows"] == 2
    assert admin.refused("describe_table", table=moved)["code"] == 4
    told = admin("compare_versions", before=before, after=made["catalog_version"])["tables"]
    assert {each["table"]: each["kind"] for each in told if each["kind"] != "dropped"} == {
        kept: "changed",
        gone: "renamed",
        new: "added",
    }
    admin("change", message="back", changes=[{"do": "undrop_table", "table": gone, "new_name": moved}])
    wrong = [{"do": "drop_table", "table": new}, {"do": "drop_table", "table": f"{new}x"}]
    assert admin.refused("change", message="m", changes=wrong)["outcome"] == "nothing_done"
    assert admin("count_rows", table=new)["rows"] == 1
    changed = [{"do": "insert_rows", "table": new, "rows": [{"a": 2}]}, {"do": "drop_table", "table": new}]
    assert (
        "cannot drop a table that it creates, changes" in admin.refused("change", message="m", changes=changed)["error"]
    )


def test_what_goes_alone_is_one_call_each(admin: Caller) -> None:
    space, name = f"work.n{secrets.token_hex(4)}", new_name()
    table = f"{space}.t"

    def alone(**change: Any) -> dict[str, Any]:
        return admin("change", message="alone", changes=[change])

    alone(do="create_namespace", namespace=space)
    alone(do="create_table", table=table, columns="id int64", rows=[{"id": 1}])
    alone(do="create_tag", table=table, tag="one", version=1)
    alone(do="create_branch", table=table, name="dev")
    alone(do="insert_rows", table=table, rows=[{"id": 2}], branch="dev")
    assert admin("count_rows", table=table)["rows"] == 1
    assert admin("count_rows", table=table, branch="dev")["rows"] == 2
    told = admin("describe_table", table=table)
    assert ([each["name"] for each in told["tags"]], [each["name"] for each in told["branches"]]) == (["one"], ["dev"])
    alone(do="delete_tag", table=table, tag="one")
    alone(do="rename_table", table=table, new_name=name)
    alone(do="drop_namespace", namespace=space)
    alone(do="drop_table", table=name)
    assert admin.refused("query_rows", table=name)["code"] == 4
    alone(do="undrop_table", table=name)
    pin = alone(do="pin_catalog_version", name=f"p{secrets.token_hex(4)}", seconds=60)
    assert pin["catalog_version"]
    assert admin("count_rows", table=name)["rows"] == 1


def test_under_one_key_changes_are_made_once(admin: Caller) -> None:
    name, key = new_name(), secrets.token_hex(8)
    admin("change", message="make", changes=[create(name)])
    insert = {"message": "m", "changes": [{"do": "insert_rows", "table": name, "rows": [{"id": 9}]}]}
    assert admin("change", idempotency_key=key, **insert)["idempotency_key"] == key
    again = admin.refused("change", idempotency_key=key, **insert)
    assert "was used for another request" in again["error"]
    assert admin("count_rows", table=name)["rows"] == 3
    tag = {"message": "m", "changes": [{"do": "create_tag", "table": name, "tag": "t", "version": 1}]}
    first, second = (admin("change", idempotency_key=f"{key}-tag", **tag) for _ in range(2))
    assert first["catalog_version"] == second["catalog_version"]


def test_rows_bring_long_values_as_other_bytes(admin: Caller, team: Team) -> None:
    name = new_name()
    blobs = pa.field("photo", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    with team.catalog as catalog:
        catalog.create(tuple(name.split(".")), schema=pa.schema([pa.field("id", pa.int64()), blobs]))
        rows = [{"id": 1, "photo": "AP8="}, {"id": 2}]
        admin("change", message="m", changes=[{"do": "insert_rows", "table": name, "rows": rows}])
        assert {each["name"]: each["type"] for each in admin("query_rows", table=name)["columns"]} == {
            "id": "int64",
            "photo": "blob",
        }
        photo = catalog.blob(tuple(name.split(".")), "photo", filter="id = 1")
        assert photo is not None
        with photo:
            assert photo.read() == b"\x00\xff"
        assert catalog.blob(tuple(name.split(".")), "photo", filter="id = 2") is None


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("UpdateRows", {"do": "update_rows", "set": {"price": "0"}, "filter": "id = 1"}),
        ("UpsertRows", {"do": "upsert_rows", "rows": [{"id": 1}], "on": ["id"]}),
    ],
)
def test_a_conflict_is_told_with_what_to_do(admin: Caller, team: Team, kind: str, fields: dict[str, Any]) -> None:
    """The other commit comes between the staging of a change and its batch."""
    name = new_name()
    admin("change", message="make", changes=[create(name)])
    from namespace_mcp.tools import batches

    changed: Any = getattr(batches, kind)
    staged = changed.prepare

    def prepare(self: Any, catalog: Any, /) -> Any:
        found = staged(self, catalog)
        with team.catalog as other:
            other.delete(tuple(name.split(".")), "id = 1")
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed, "prepare", prepare)
        refused = admin.refused("change", message="m", changes=[{"table": name, **fields}])
    assert (refused["code"], refused["outcome"]) == (14, "nothing_done")
    assert name in refused["conflicts"][0]
    assert "again" in refused["advice"]


@pytest.mark.parametrize("principal", ["reader", "stranger"])
def test_changes_without_the_right_to_them_are_refused(team: Team, principal: str) -> None:
    caller, name = team.caller(principal), new_name()
    table = {"table": "shop.orders"}
    for change in (
        {"do": "create_table", "table": name, "columns": "id int64"},
        {"do": "insert_rows", "rows": [{"id": 1}], **table},
        {"do": "update_rows", "set": {"id": "1"}, "filter": "true", **table},
        {"do": "delete_rows", "filter": "true", **table},
        {"do": "upsert_rows", "rows": [{"id": 1}], "on": ["id"], **table},
        {"do": "set_table_properties", "set": {"a": "b"}, **table},
        {"do": "drop_table", **table},
        {"do": "rename_table", "new_name": name, **table},
        {"do": "create_tag", "tag": "mine", "version": 1, **table},
        {"do": "create_branch", "name": "mine", **table},
        {"do": "create_namespace", "namespace": name},
        {"do": "pin_catalog_version", "name": "mine"},
    ):
        refused = caller.refused("change", message="m", changes=[change])
        assert refused["outcome"] == "nothing_done", change
        hidden = principal == "stranger" and "table" in change and change["do"] != "create_table"
        assert refused["code"] in ({4} if hidden else {1, 15}), (change, refused)
    assert team.caller()("count_rows", **table)["rows"] == 100


def test_what_is_hidden_is_answered_as_what_is_absent(team: Team) -> None:
    reader, stranger = team.caller("reader"), team.caller("stranger")
    assert reader("list_namespaces")["names"] == ["shop"]
    assert reader("list_tables", recursive=True)["names"][-1] == "shop.orders"
    assert stranger("list_tables", recursive=True)["names"] == []
    for tool in ("describe_table", "query_rows", "count_rows", "list_table_versions"):
        hidden, absent = (reader.refused(tool, table=f"secret.{name}") for name in ("plans", "absent"))
        assert hidden["error"].replace("plans", "absent") == absent["error"]
        assert hidden["code"] == absent["code"] == 4
    changed = {each["about"] for entry in reader("catalog_history")["entries"] for each in entry["changes"]}
    assert "shop.orders" in changed
    assert "secret.plans" not in changed
    assert reader("query_rows", table="shop.orders", limit=1)["rows"]
    assert Privilege.READ == "read"


def test_answers_name_the_caller(team: Team) -> None:
    assert text_of(team.caller("reader").answer("describe_catalog")).endswith("the caller is reader")
    told = talk(over_http(team.urls[1], "reader"), lambda client: client.list_tools())
    assert "change" in {each.name for each in told.tools}

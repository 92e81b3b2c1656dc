"""Tables made from rows, over HTTP and in process."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import httpx
import lance
import lance_namespace
import pyarrow as pa
import pytest
from lance_namespace import CreateTableRequest, InsertIntoTableRequest
from lance_namespace.errors import LanceNamespaceError, TableAlreadyExistsError

from namespace_server.data.change_request import ChangeRecord
from namespace_server.data.inline import InlineChanges
from namespace_server.data.port import CommittedChange
from namespace_server.directory.namespace import DirectoryNamespace
from table_data.batch_operations import StagedOperation
from tests.data.two_servers import TwoServers

ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
ROWS = pa.table({"a": [1, 2], "s": ["x", "y"]})
MORE = pa.table({"a": [3], "s": ["z"]})


def stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def create(servers: TwoServers, name: str, rows: pa.Table | bytes = ROWS, **query: str) -> httpx.Response:
    body = rows if isinstance(rows, bytes) else stream(rows)
    path = f"/v1/table/{name if '$' in name else f'w${name}'}/create?{urlencode(query)}"
    return servers.ours.post(path, content=body, headers=ARROW)


def describe(servers: TwoServers, name: str) -> dict:
    return servers.ours.post(f"/v1/table/w${name}/describe", json={}).json()


def opened(servers: TwoServers, name: str, version: int | None = None) -> lance.LanceDataset:
    client = lance_namespace.connect("rest", {"uri": servers.url})
    return lance.dataset(namespace_client=client, table_id=["w", name], version=version)


def test_a_new_table_has_its_rows_and_properties(servers: TwoServers, name: str) -> None:
    answer = create(servers, name, properties=json.dumps({"owner": "ann"}))
    assert answer.status_code == 200, answer.text
    body = answer.json()
    described = describe(servers, name)
    assert body == {
        "transaction_id": body["transaction_id"],
        "location": described["location"],
        "version": 1,
        "properties": {"owner": "ann"},
    }
    assert described["properties"] == {"owner": "ann"}
    dataset = opened(servers, name)
    dataset.validate()
    assert dataset.to_table() == ROWS
    lance.write_dataset(
        MORE,
        namespace_client=lance_namespace.connect("rest", {"uri": servers.url}),
        table_id=["w", name],
        mode="append",
    )
    assert opened(servers, name).count_rows() == 3


def test_it_is_one_catalog_version(servers: TwoServers, name: str) -> None:
    before = servers.ours.get("/v1/catalog").json()["version"]
    assert int(create(servers, name).headers["x-lance-catalog-version"]) == before + 1


def test_a_schema_without_rows_is_a_table(servers: TwoServers, name: str) -> None:
    assert create(servers, name, ROWS.slice(0, 0)).json()["version"] == 1
    assert opened(servers, name).to_table() == ROWS.slice(0, 0)


@pytest.mark.parametrize("mode", ["create", "Create", "CREATE"])
def test_an_existing_table_is_refused(servers: TwoServers, name: str, mode: str) -> None:
    create(servers, name)
    answer = create(servers, name, MORE, mode=mode)
    assert (answer.status_code, answer.json()["code"]) == (409, 5)
    assert opened(servers, name).to_table() == ROWS


@pytest.mark.parametrize("mode", ["exist_ok", "ExistOk", "existok"])
def test_an_existing_table_is_kept(servers: TwoServers, name: str, mode: str) -> None:
    made = create(servers, name, properties='{"owner":"ann"}').json()
    kept = create(servers, name, MORE, mode=mode, properties='{"owner":"bob"}')
    assert kept.json() == {name: value for name, value in made.items() if name != "transaction_id"}
    assert opened(servers, name).to_table() == ROWS


def test_an_overwritten_table_keeps_its_history(servers: TwoServers, name: str) -> None:
    made = create(servers, name, properties='{"owner":"ann"}').json()
    other = pa.table({"q": [1.5]})
    over = create(servers, name, other, mode="Overwrite", properties='{"team":"b"}').json()
    assert (over["version"], over["location"], over["properties"]) == (2, made["location"], {"team": "b"})
    assert describe(servers, name)["properties"] == {"team": "b"}
    assert opened(servers, name).to_table() == other
    assert opened(servers, name, 1).to_table() == ROWS


def test_a_declared_table_gets_its_first_version(servers: TwoServers, name: str) -> None:
    declared = servers.ours.post(f"/v1/table/w${name}/declare", json={"properties": {"owner": "ann"}}).json()
    refused = create(servers, name, properties='{"owner":"bob"}')
    assert (refused.status_code, refused.json()["code"]) == (400, 13)
    made = create(servers, name).json()
    assert (made["version"], made["location"], made["properties"]) == (1, declared["location"], {"owner": "ann"})
    assert opened(servers, name).to_table() == ROWS


@pytest.mark.parametrize(
    ("path", "query", "body", "status", "code"),
    [
        ("absent$t", {}, stream(ROWS), 404, 1),
        ("w$t", {"mode": "replace"}, stream(ROWS), 400, 13),
        ("w$t", {"properties": "[1]"}, stream(ROWS), 400, 13),
        ("w$t", {"properties": '{"a":1}'}, stream(ROWS), 400, 13),
        ("w$t", {"properties": "nothing"}, stream(ROWS), 400, 13),
        ("w$t", {}, b"", 400, 13),
        ("w$t", {}, b"garbage", 400, 13),
        ("w$t", {}, stream(ROWS)[:-20], 400, 13),
        ("w", {}, stream(ROWS), 409, 2),
        ("$", {}, stream(ROWS), 400, 13),
    ],
)
def test_what_is_refused_leaves_nothing(
    servers: TwoServers, path: str, query: dict[str, str], body: bytes, status: int, code: int
) -> None:
    answer = servers.ours.post(f"/v1/table/{path}/create?{urlencode(query)}", content=body, headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert servers.ours.post("/v1/table/w$t/exists", json={}).status_code == 404


def test_one_of_many_creators_succeeds(servers: TwoServers, name: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda number: create(servers, name, pa.table({"n": [number]})), range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 5
    assert {answer.json()["code"] for answer in answers if answer.status_code != 200} == {5}
    [winner] = [number for number, answer in enumerate(answers) if answer.status_code == 200]
    assert opened(servers, name).to_table().to_pydict() == {"n": [winner]}


def test_a_creator_that_is_too_late_leaves_no_files(tmp_path: Path) -> None:
    first, second = (DirectoryNamespace(root=str(tmp_path), durability="none") for _ in range(2))

    def commit_late(staged: Sequence[StagedOperation], record: ChangeRecord) -> CommittedChange:
        first.create_table(CreateTableRequest(id=["t"]), stream(ROWS))
        return second.commit_change(staged, record)

    changes = InlineChanges(second.tables(), commit_late)
    with pytest.raises(TableAlreadyExistsError):
        changes.create_table({"id": ["t"]}, stream(MORE))
    assert len(list(tmp_path.glob("*_t"))) == 1
    kept = changes.create_table({"id": ["t"], "mode": "exist_ok"}, stream(MORE))
    assert kept.body["version"] == 1
    first.close()
    second.close()


def test_options_of_new_tables(servers: TwoServers, name: str) -> None:
    create(servers, name, storage_options=json.dumps({"new_table_enable_stable_row_ids": "true", "region": "x"}))
    assert opened(servers, name).has_stable_row_ids


@pytest.mark.parametrize("rows", [ROWS, ROWS.slice(0, 0)], ids=["rows", "no rows"])
@pytest.mark.parametrize("asked", ["2.0", "2.1", "2.2", "stable"])
def test_the_data_format_of_new_tables(
    servers: TwoServers, name: str, tmp_path: Path, rows: pa.Table, asked: str
) -> None:
    options = json.dumps({"new_table_data_storage_version": asked})
    create(servers, name, rows, storage_options=options).raise_for_status()
    expected = lance.write_dataset(rows, tmp_path / "t", data_storage_version=asked).data_storage_version
    assert opened(servers, name).data_storage_version == expected
    path = f"/v1/table/w${name}/insert"
    servers.ours.post(path, content=stream(MORE), headers=ARROW).raise_for_status()
    stock = lance.write_dataset(MORE, describe(servers, name)["location"], mode="append")
    assert stock.data_storage_version == expected
    files = {(f.file_major_version, f.file_minor_version) for t in stock.get_fragments() for f in t.data_files()}
    assert files == {tuple(map(int, expected.split(".")))}
    assert stock.to_table() == pa.concat_tables([rows, MORE, MORE])


@pytest.mark.parametrize("asked", ["0.1", "legacy", "2.9", "new"])
def test_a_data_format_that_is_refused(servers: TwoServers, name: str, asked: str) -> None:
    options = json.dumps({"new_table_data_storage_version": asked})
    answer = create(servers, name, ROWS.slice(0, 0), storage_options=options)
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text


def test_a_data_format_that_the_files_do_not_have(servers: TwoServers, name: str) -> None:
    staged = servers.ours.post(f"/v1/table/w${name}/stage?mode=create", content=stream(ROWS), headers=ARROW)
    operations = staged.json()["operations"]
    operations[-1]["commit_transaction"]["data_storage_version"] = "2.0"
    refused = servers.ours.post("/v1/table/batch-commit", json={"operations": operations})
    assert (refused.status_code, refused.json()["code"]) == (400, 13)
    assert "format version 2.2: expected 2.0" in refused.json()["error"]


def test_rows_join_a_batch(servers: TwoServers, name: str) -> None:
    create(servers, f"{name}_old")
    staged = []
    for table, mode, rows in ((f"{name}_new", "create", ROWS), (f"{name}_old", "append", MORE)):
        answer = servers.ours.post(f"/v1/table/w${table}/stage?mode={mode}", content=stream(rows), headers=ARROW)
        assert answer.status_code == 200, answer.text
        assert answer.json()["num_rows"] == rows.num_rows
        staged += answer.json()["operations"]
    assert servers.ours.post(f"/v1/table/w${name}_new/exists", json={}).status_code == 404
    assert opened(servers, f"{name}_old").count_rows() == 2

    committed = servers.ours.post("/v1/table/batch-commit", json={"operations": staged})
    assert committed.status_code == 200, committed.text
    assert opened(servers, f"{name}_new").to_table() == ROWS
    assert opened(servers, f"{name}_old").count_rows() == 3


def test_staged_rows_are_rebased_and_replace(servers: TwoServers, name: str) -> None:
    create(servers, name, properties='{"owner":"ann"}')
    path = f"/v1/table/w${name}"
    append = servers.ours.post(f"{path}/stage?mode=append", content=stream(MORE), headers=ARROW).json()["operations"]
    servers.ours.post(f"{path}/insert", content=stream(MORE), headers=ARROW).raise_for_status()
    assert servers.ours.post("/v1/table/batch-commit", json={"operations": append}).status_code == 200
    assert opened(servers, name).count_rows() == 4
    query = urlencode({"mode": "overwrite", "properties": '{"team":"b"}'})
    over = servers.ours.post(f"{path}/stage?{query}", content=stream(MORE), headers=ARROW).json()["operations"]
    assert servers.ours.post("/v1/table/batch-commit", json={"operations": over}).status_code == 200
    assert opened(servers, name).to_table() == MORE
    assert describe(servers, name)["properties"] == {"team": "b"}


@pytest.mark.parametrize(("mode", "status", "code"), [("create", 409, 5), ("merge", 400, 13)])
def test_staged_rows_that_are_refused(servers: TwoServers, name: str, mode: str, status: int, code: int) -> None:
    create(servers, name)
    answer = servers.ours.post(f"/v1/table/w${name}/stage?mode={mode}", content=stream(MORE), headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_in_process(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path), durability="none")
    made = namespace.create_table(CreateTableRequest(id=["t"], properties={"owner": "ann"}), stream(ROWS))
    assert (made.version, made.properties) == (1, {"owner": "ann"})
    assert namespace.insert_into_table(InsertIntoTableRequest(id=["t"]), stream(MORE)).version == 2
    with pytest.raises(LanceNamespaceError, match="Table already exists: t"):
        namespace.create_table(CreateTableRequest(id=["t"]), stream(ROWS))
    staged = namespace.stage_rows({"id": ["u"]}, stream(ROWS))
    namespace.commit_batch({"operations": staged["operations"]})
    assert lance.dataset(namespace_client=namespace, table_id=["t"]).count_rows() == 3
    assert lance.dataset(namespace_client=namespace, table_id=["u"]).to_table() == ROWS
    namespace.close()


def test_it_equals_the_stock_server(servers: TwoServers, name: str) -> None:
    location = ""
    for mode, rows in (("create", ROWS), ("overwrite", MORE), ("exist_ok", ROWS), ("create", ROWS)):
        ours = create(servers, name, rows, mode=mode)
        stock = servers.stock.post(f"/v1/table/{name}/create?mode={mode}", content=stream(rows), headers=ARROW)
        assert ours.status_code == stock.status_code, (mode, ours.text, stock.text)
        assert ours.json().get("code") == stock.json().get("code")
        if mode != "exist_ok":
            assert ours.json().get("version") == stock.json().get("version")
        location = stock.json().get("location") or location
    assert opened(servers, name).to_table() == lance.dataset(location).to_table() == MORE

"""Updates and deletes: what they change, what they answer, and the same as pylance's own server does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import lance
import lance_namespace
import pyarrow as pa
import pytest

from namespace_server.directory.namespace import DirectoryNamespace
from tests.data.arrow import ARROW, files, location, read, stream, table_id

ROWS = pa.table({"a": [1, 2], "s": ["x", "y"]})
MANY = pa.table(
    {
        "a": pa.array([1, 2, 3, None], pa.int64()),
        "s": ["x", "y", None, "z"],
        "f": pa.array([0.5, 1.5, 2.5, 3.5], pa.float32()),
        "n": pa.array([{"k": 1, "v": "p"}, {"k": 2, "v": "q"}, None, {"k": None, "v": "r"}]),
        "l": pa.array([[1], [2, 3], [], None]),
        "v": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float32(), 2)),
        "d": pa.array(["u", "v", "u", "v"]).dictionary_encode(),
    }
)


def rows_of(http: httpx.Client, route: str) -> list[dict[str, Any]]:
    described = http.post(f"{route}/describe", json={}).json()
    return lance.dataset(described["location"].removeprefix("file://")).to_table().to_pylist()


class TestUpdate:
    def test_sets_columns_in_the_rows_that_match(self, url: str, http: httpx.Client, table: str) -> None:
        body = {"predicate": "a > 1", "updates": [["a", "a + 10"], ["s", "concat(s, '!')"]]}
        answer = http.post(f"{table}/update", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json().keys() == {"transaction_id", "version", "updated_rows"}
        assert (answer.json()["version"], answer.json()["updated_rows"]) == (2, 1)
        assert sorted(read(url, table).to_pylist(), key=str) == [{"a": 1, "s": "x"}, {"a": 12, "s": "y!"}]

    def test_without_a_predicate_all_rows(self, url: str, http: httpx.Client, table: str) -> None:
        assert http.post(f"{table}/update", json={"updates": [["`s`", "'q'"]]}).json()["updated_rows"] == 2
        assert read(url, table).column("s").to_pylist() == ["q", "q"]
        body = {"predicate": None, "updates": [["a", "NULL"]]}
        assert http.post(f"{table}/update", json=body).json()["version"] == 3

    @pytest.mark.parametrize("predicate", ["", " ", "\n"])
    def test_an_empty_predicate_changes_nothing(self, url: str, http: httpx.Client, table: str, predicate: str) -> None:
        answer = http.post(f"{table}/update", json={"predicate": predicate, "updates": [["a", "NULL"]]})
        assert (answer.status_code, answer.json()["code"]) == (400, 13)
        assert "expected an SQL expression" in answer.json()["error"]
        assert read(url, table).to_pydict() == ROWS.to_pydict()

    def test_without_a_match_nothing_is_committed(self, http: httpx.Client, table: str) -> None:
        before = files(location(http, table))
        answer = http.post(f"{table}/update", json={"predicate": "a > 100", "updates": [["a", "0"]]})
        assert answer.json() == {"updated_rows": 0, "version": 1}
        assert files(location(http, table)) == before

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({}, 400, 13),
            ({"updates": []}, 400, 13),
            ({"updates": [["a"]]}, 400, 13),
            ({"updates": [["a", "1", "2"]]}, 400, 13),
            ({"updates": [["a", "1"], ["`a`", "2"]]}, 400, 13),
            ({"updates": [["nope", "1"]]}, 404, 12),
            ({"updates": [["a", "nope + 1"]]}, 404, 12),
            ({"updates": [["a", "a +"]]}, 400, 13),
            ({"updates": [["a", "a / 0"]]}, 400, 13),
            ({"updates": [["a", "'text'"]]}, 400, 13),
            ({"updates": [["a", "(select 1)"]]}, 400, 13),
            ({"updates": [["", "1"]]}, 400, 13),
            ({"updates": [["`a", "1"]]}, 400, 13),
            ({"updates": [["a.b", "1"]]}, 400, 13),
            ({"updates": [["a", "1"]], "predicate": "nope = 1"}, 404, 12),
            ({"updates": [["a", "1"]], "predicate": "a ="}, 400, 13),
            ({"updates": [["a", "1"]], "predicate": "1"}, 400, 13),
            ({"updates": [["a", "1"]], "predicate": "(" * 5000 + "a = 1" + ")" * 5000}, 400, 13),
            ({"updates": [["a", "1"]], "predicate": "s = '" + "x" * 900_000 + "' and"}, 400, 13),
            ({"updates": [["a", "1"]], "branch": "none"}, 404, 22),
            ({"updates": [["a", "1"]], "properties": {"p": "v"}}, 400, 13),
        ],
        ids=range(21),
    )
    def test_a_wrong_one_changes_nothing(
        self, url: str, http: httpx.Client, table: str, body: dict[str, Any], status: int, code: int
    ) -> None:
        before = files(location(http, table))
        answer = http.post(f"{table}/update", json=body)
        assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
        assert len(answer.text) < 2000
        assert ".rs" not in answer.text
        assert str(location(http, table)) not in answer.text
        assert read(url, table).to_pydict() == ROWS.to_pydict()
        assert files(location(http, table)) == before

    @pytest.mark.parametrize(
        "body",
        [
            {"updates": [["a", "a * 2"], ["s", "upper(s)"]]},
            {"updates": [["f", "f / 2"]], "predicate": "f > 1.0 AND s IS NOT NULL"},
            {"updates": [["a", "NULL"]], "predicate": "n.k = 1"},
            {"updates": [["s", "CAST(a AS STRING)"]]},
            {"updates": [["s", "a"]]},
            {"updates": [["a", "f * 2"]]},
            {"updates": [["d", "'w'"]], "predicate": "d = 'u'"},
            {"updates": [["n", "named_struct('k', CAST(5 AS BIGINT), 'v', 'yy')"]], "predicate": "a = 2"},
            {"updates": [["l", "NULL"]]},
        ],
        ids=range(9),
    )
    def test_is_the_same_on_the_stock_server(
        self, http: httpx.Client, stock: httpx.Client, request: pytest.FixtureRequest, url: str, body: dict[str, Any]
    ) -> None:
        route = f"/v1/table/w$same-{request.node.name[-2]}"
        namespace = lance_namespace.connect("rest", {"uri": url})
        lance.write_dataset(MANY, namespace_client=namespace, table_id=table_id(route), mode="create")
        stock.post(f"{route}/create", content=stream(MANY), headers=ARROW).raise_for_status()
        ours, theirs = http.post(f"{route}/update", json=body), stock.post(f"{route}/update", json=body)
        assert (ours.status_code, ours.json().get("code")) == (theirs.status_code, theirs.json().get("code")), ours.text
        assert ours.json().get("updated_rows") == theirs.json().get("updated_rows")
        key = str
        assert sorted(rows_of(http, route), key=key) == sorted(rows_of(stock, route), key=key)


class TestDelete:
    def test_deletes_the_rows_that_match(self, url: str, http: httpx.Client, table: str) -> None:
        answer = http.post(f"{table}/delete", json={"predicate": "a = 1"})
        assert answer.json().keys() == {"transaction_id", "version"}
        assert answer.json()["version"] == 2
        assert read(url, table).to_pydict() == {"a": [2], "s": ["y"]}
        assert http.post(f"{table}/delete", json={"predicate": "true"}).json()["version"] == 3
        assert read(url, table).num_rows == 0
        assert read(url, table, version=1).num_rows == 2

    def test_without_a_match_nothing_is_committed(self, http: httpx.Client, table: str) -> None:
        assert http.post(f"{table}/delete", json={"predicate": "a > 100"}).json() == {"version": 1}

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({}, 400, 13),
            ({"predicate": ""}, 400, 13),
            ({"predicate": " "}, 400, 13),
            ({"predicate": 3}, 400, 13),
            ({"predicate": "a ="}, 400, 13),
            ({"predicate": "1"}, 400, 13),
            ({"predicate": "a / 0 = 1"}, 400, 13),
            ({"predicate": "nope = 1"}, 404, 12),
            ({"predicate": "true", "branch": "none"}, 404, 22),
            ({"predicate": "a = " + "1 + " * 20_000 + "1"}, 400, 13),
            ({"predicate": "NOT " * 50_000 + "a = 1"}, 400, 13),
        ],
        ids=range(11),
    )
    def test_a_wrong_one_changes_nothing(
        self, url: str, http: httpx.Client, table: str, body: dict[str, Any], status: int, code: int
    ) -> None:
        answer = http.post(f"{table}/delete", json=body)
        assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
        assert read(url, table).to_pydict() == ROWS.to_pydict()

    @pytest.mark.parametrize(
        "predicate", ["a > 1", "s IS NULL", "n.k = 2 OR a IS NULL", "array_length(l) > 1", "d = 'u'"]
    )
    def test_is_the_same_on_the_stock_server(
        self, http: httpx.Client, stock: httpx.Client, url: str, predicate: str
    ) -> None:
        route = f"/v1/table/w$gone-{abs(hash(predicate))}"
        namespace = lance_namespace.connect("rest", {"uri": url})
        lance.write_dataset(MANY, namespace_client=namespace, table_id=table_id(route), mode="create")
        stock.post(f"{route}/create", content=stream(MANY), headers=ARROW).raise_for_status()
        ours = http.post(f"{route}/delete", json={"predicate": predicate})
        theirs = stock.post(f"{route}/delete", json={"predicate": predicate})
        assert (ours.json()["version"], ours.status_code) == (theirs.json()["version"], theirs.status_code)
        assert rows_of(http, route) == rows_of(stock, route)


def test_a_table_that_is_only_declared_has_nothing_to_change(http: httpx.Client) -> None:
    http.post("/v1/table/w$declared/declare", json={}).raise_for_status()
    for operation, body in (("update", {"updates": [["a", "1"]]}), ("delete", {"predicate": "true"})):
        answer = http.post(f"/v1/table/w$declared/{operation}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, 13)
        assert "w.declared has no version yet" in answer.json()["error"]


def test_changes_of_the_same_rows_at_one_time_are_all_done(url: str, http: httpx.Client, table: str) -> None:
    def add(_: int) -> int:
        with httpx.Client(base_url=url, timeout=60) as client:
            answer = client.post(f"{table}/update", json={"updates": [["a", "a + 1"]], "predicate": "s = 'x'"})
            assert answer.status_code == 200, answer.text
            return answer.json()["version"]

    with ThreadPoolExecutor(6) as pool:
        versions = list(pool.map(add, range(12)))
    assert sorted(versions) == list(range(2, 14))
    assert sorted(read(url, table).to_pylist(), key=str) == [{"a": 13, "s": "x"}, {"a": 2, "s": "y"}]
    kept = {
        file.path
        for fragment in lance.dataset(str(location(http, table))).get_fragments()
        for file in fragment.data_files()
    }
    assert {f"data/{path}" for path in kept} <= files(location(http, table))


def test_the_message_is_in_the_transaction(http: httpx.Client, table: str) -> None:
    body = {"predicate": "a = 1", "context": {"message": "cleaning up"}}
    http.post(f"{table}/delete", json=body).raise_for_status()
    transaction = lance.dataset(str(location(http, table))).read_transaction(2)
    assert transaction.transaction_properties["__lance_commit_message"] == "cleaning up"


def test_a_branch_is_changed_alone(url: str, http: httpx.Client, table: str) -> None:
    namespace = lance_namespace.connect("rest", {"uri": url})
    dataset = lance.dataset(namespace_client=namespace, table_id=table_id(table))
    dataset.create_branch("side", 1)
    assert http.post(f"{table}/delete", json={"predicate": "a = 1", "branch": "side"}).json()["version"] == 2
    update = {"updates": [["s", "'side'"]], "branch": "side"}
    assert http.post(f"{table}/update", json=update).json()["version"] == 3
    assert read(url, table).to_pydict() == ROWS.to_pydict()
    side = lance.dataset(namespace_client=namespace, table_id=table_id(table)).checkout_version(("side", None))
    assert side.to_table().to_pydict() == {"a": [2], "s": ["side"]}


def test_a_catalog_in_process_does_the_same(tmp_path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path), durability="none")
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["t"], mode="create")
    update = lance_namespace.UpdateTableRequest(id=["t"], updates=[["a", "a + 1"]], predicate="s = 'x'")
    updated = namespace.update_table(update)
    assert (updated.version, updated.updated_rows) == (2, 1)
    deleted = namespace.delete_from_table(lance_namespace.DeleteFromTableRequest(id=["t"], predicate="s = 'y'"))
    assert deleted.version == 3
    with pytest.raises(lance_namespace.errors.TableColumnNotFoundError):
        namespace.update_table(lance_namespace.UpdateTableRequest(id=["t"], updates=[["q", "1"]]))
    assert lance.dataset(namespace_client=namespace, table_id=["t"]).to_table().to_pylist() == [{"a": 2, "s": "x"}]
    namespace.close()

"""Merges by key: every flag as the stock server has it, rows that are kept for another try, and bad calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import lance
import lance_namespace
import pyarrow as pa
import pytest

from namespace_server.directory.namespace import DirectoryNamespace
from tests.data.arrow import ARROW, file, files, location, read, stream, table_id

ROWS = pa.table({"a": [1, 2], "s": ["x", "y"]})
TARGET = pa.table({"a": pa.array([1, 2, 3, None], pa.int64()), "b": [1, 1, 2, 2], "s": ["x", "y", "z", "n"]})
SOURCE = pa.table({"a": pa.array([2, 3, 9, None], pa.int64()), "b": [1, 9, 9, 2], "s": ["2", "3", "9", "null"]})
MATCHED, FILTERED = "when_matched_update_all=true", "when_matched_update_all_filt=target.s%20%3D%20%27y%27"
INSERT, KEEP = "when_not_matched_insert_all=true", "when_not_matched_insert_all=false"
DELETE, SOME = "when_not_matched_by_source_delete=true", "when_not_matched_by_source_delete_filt=a%20%3C%202"


def merge(client: httpx.Client, route: str, query: str, rows: pa.Table, encode=stream) -> httpx.Response:
    return client.post(f"{route}/merge_insert?{query}", content=encode(rows), headers=ARROW)


def rows_of(client: httpx.Client, route: str) -> list[dict[str, Any]]:
    described = client.post(f"{route}/describe", json={}).json()
    rows = lance.dataset(described["location"].removeprefix("file://")).to_table().to_pylist()
    return sorted(rows, key=str)


@pytest.mark.parametrize(
    "query",
    [
        "on=a",
        f"on=a&{MATCHED}",
        f"on=a&{MATCHED}&{INSERT}",
        f"on=a&{MATCHED}&{KEEP}",
        f"on=a&{FILTERED}",
        f"on=a&{MATCHED}&{FILTERED}",
        f"on=a&when_matched_update_all=false&{FILTERED}",
        f"on=a&{DELETE}",
        f"on=a&{DELETE}&{KEEP}",
        f"on=a&{SOME}",
        f"on=a&{MATCHED}&{INSERT}&{DELETE}&{SOME}",
        f"on=a&on=b&{MATCHED}&{INSERT}",
        f"on=%60a%60&{MATCHED}&{INSERT}&use_index=true&timeout=30s",
        f"on=a&{MATCHED}&{INSERT}&use_index=false&timeout=5m",
        f"on=a&{KEEP}",
        f"on=a&on=a&{MATCHED}",
        f"on=nope&{MATCHED}",
        MATCHED,
        "on=a&when_matched_update_all=maybe",
        f"on=a&{DELETE}&when_not_matched_by_source_delete_filt=nope%20%3D%201",
        f"on=a&{DELETE}&when_not_matched_by_source_delete_filt=",
        f"on=a&{MATCHED}&when_matched_update_all_filt=",
        "on=a&when_not_matched_by_source_delete_filt=%20",
    ],
)
def test_a_merge_is_the_same_on_the_stock_server(
    http: httpx.Client, stock: httpx.Client, table: str, query: str
) -> None:
    route = f"{table}-both"
    namespace = lance_namespace.connect("rest", {"uri": str(http.base_url)})
    lance.write_dataset(TARGET, namespace_client=namespace, table_id=table_id(route), mode="create")
    stock.post(f"{route}/create", content=stream(TARGET), headers=ARROW).raise_for_status()
    ours, theirs = merge(http, route, query, SOURCE), merge(stock, route, query, SOURCE)
    if theirs.status_code == 200:
        assert ours.status_code == 200, ours.text
        assert {**ours.json(), "transaction_id": 0} == {**theirs.json(), "transaction_id": 0}
    else:
        assert ours.json()["code"] in {theirs.json()["code"], 12}, ours.text
        assert ours.status_code in {400, 404}
    assert rows_of(http, route) == rows_of(stock, route)


@pytest.mark.parametrize(
    ("rows", "status", "code"),
    [
        (pa.table({"a": [2, 2], "s": ["p", "q"]}), 400, 13),
        (pa.table({"a": ["2"], "s": ["p"]}), 400, 20),
        (pa.table({"a": [2], "s": ["p"], "more": [1]}), 400, 20),
        (pa.table({"s": ["p"]}), 400, 13),
        (None, 400, 13),
    ],
    ids=["two for one", "wrong type", "unknown column", "no key", "no body"],
)
def test_rows_that_do_not_fit_change_nothing(
    url: str, http: httpx.Client, table: str, rows: pa.Table | None, status: int, code: int
) -> None:
    before = files(location(http, table))
    body = b"" if rows is None else stream(rows)
    answer = http.post(f"{table}/merge_insert?on=a&{MATCHED}", content=body, headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert read(url, table).to_pydict() == ROWS.to_pydict()
    assert files(location(http, table)) == before


@pytest.mark.parametrize("rows", [pa.table({"a": [2, 7]}), pa.table({"s": ["p", "q"], "a": [2, 7]})])
def test_columns_may_be_missing_or_in_another_order(url: str, http: httpx.Client, table: str, rows: pa.Table) -> None:
    assert merge(http, table, f"on=a&{MATCHED}&{INSERT}", rows, file).json()["num_inserted_rows"] == 1
    found = {row["a"]: row["s"] for row in read(url, table).to_pylist()}
    assert found.keys() == {1, 2, 7}
    assert found[7] == (None if "s" not in rows.column_names else "q")


def test_nothing_to_do_commits_nothing(http: httpx.Client, table: str) -> None:
    answer = merge(http, table, f"on=a&{KEEP}&{MATCHED}", pa.table({"a": [77], "s": ["-"]}))
    assert answer.json() == {"num_updated_rows": 0, "num_inserted_rows": 0, "num_deleted_rows": 0, "version": 1}


def test_a_declared_table_gets_its_first_version(url: str, http: httpx.Client) -> None:
    http.post("/v1/table/w$empty/declare", json={}).raise_for_status()
    answer = merge(http, "/v1/table/w$empty", "on=a", ROWS).json()
    assert (answer["version"], answer["num_inserted_rows"]) == (1, 2)
    assert read(url, "/v1/table/w$empty").to_pydict() == ROWS.to_pydict()


@pytest.mark.parametrize("timeout", ["", "30", "-1s", "1y", "nan s", "1e3s", "s"])
def test_a_timeout_has_a_unit(http: httpx.Client, table: str, timeout: str) -> None:
    answer = merge(http, table, f"on=a&{MATCHED}&timeout={timeout}", ROWS)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert "timeout" in answer.json()["error"]


def test_the_time_may_pass(url: str, http: httpx.Client, table: str) -> None:
    rows = pa.table({"a": list(range(300_000)), "s": ["t"] * 300_000})
    answer = merge(http, table, f"on=a&{MATCHED}&timeout=1ms", rows)
    assert (answer.status_code, answer.json()["code"]) == (503, 17)
    assert read(url, table).to_pydict() == ROWS.to_pydict()
    assert merge(http, table, f"on=a&{MATCHED}", ROWS).json()["version"] == 2


@pytest.mark.parametrize("size", [1, 40_000], ids=["in memory", "in a file"])
def test_merges_of_the_same_keys_at_one_time_are_all_done(url: str, http: httpx.Client, table: str, size: int) -> None:
    """Each conflicts with the others, so its rows are read more than once. 40,000 of them are more than 8 MiB."""
    text = "t" * 240 if size > 1 else "t"

    def upsert(number: int) -> dict[str, Any]:
        rows = pa.table(
            {"a": [1, 100 + number] * 1 + list(range(1000, 999 + size)), "s": [f"{number}-{text}"] * (1 + size)}
        )
        with httpx.Client(base_url=url, timeout=60) as client:
            answer = merge(client, table, f"on=a&{MATCHED}&{INSERT}", rows)
            assert answer.status_code == 200, answer.text
            return answer.json()

    count = 6 if size == 1 else 3
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(upsert, range(count)))
    assert sorted(answer["version"] for answer in answers) == list(range(2, 2 + count))
    rows = read(url, table)
    keys = rows.column("a").to_pylist()
    assert sorted(keys) == sorted({1, 2, *range(100, 100 + count), *range(1000, 999 + size)})
    newest = max(answers, key=lambda answer: answer["version"])
    assert newest["num_inserted_rows"] == 1
    # What lost left no file: only the versions that were committed have any.
    dataset = lance.dataset(str(location(http, table)))
    named = {
        f"data/{part.path}"
        for version in range(1, 2 + count)
        for fragment in dataset.checkout_version(version).get_fragments()
        for part in fragment.data_files()
    }
    assert {name for name in files(location(http, table)) if name.startswith("data/")} == named


def test_a_catalog_in_process_does_the_same(tmp_path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path), durability="none")
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["t"], mode="create")
    request = lance_namespace.MergeInsertIntoTableRequest(
        id=["t"], on=["a"], when_matched_update_all=True, when_not_matched_insert_all=True
    )
    merged = namespace.merge_insert_into_table(request, stream(pa.table({"a": [2, 3], "s": ["two", "three"]})))
    assert (merged.version, merged.num_updated_rows, merged.num_inserted_rows) == (2, 1, 1)
    namespace.close()

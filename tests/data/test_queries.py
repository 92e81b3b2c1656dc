"""Queries over HTTP and in process give what pylance gives for the same call, and what the stock adapter answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.data.queried import DIMENSION, Queried, answered, queried

QUERY = [0.1 * n for n in range(DIMENSION)]
NAMES = {"column_names": ["id", "x"]}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queried]:
    with queried(tmp_path_factory.mktemp("queried")) as found:
        yield found


def refused(response: httpx.Response) -> tuple[int, int]:
    assert "/" not in response.json()["error"], response.text
    return response.status_code, response.json()["code"]


class TestScans:
    @pytest.mark.parametrize(
        ("request_", "scan"),
        [
            ({}, {"limit": 10}),
            ({"k": 0}, {}),
            ({"k": 2**31 - 1}, {}),
            ({"k": 2**63 - 1, "offset": 2100}, {"offset": 2100}),
            ({"k": 5, "offset": 3, "filter": "x > 40"}, {"limit": 5, "offset": 3, "filter": "x > 40"}),
            ({"vector": {"single_vector": []}}, {"limit": 10}),
            ({"vector": {"multi_vector": []}, "full_text_query": {}}, {"limit": 10}),
            ({"filter": "", "columns": {"column_names": []}}, {"limit": 10}),
            ({"columns": {"column_names": ["x", "id"]}}, {"limit": 10, "columns": ["x", "id"]}),
            (
                {"columns": {"column_names": ["nested.a", "nested.`b.c`", "nested.deep.d"]}},
                {"limit": 10, "columns": ["nested.a", "nested.`b.c`", "nested.deep.d"]},
            ),
            (
                {"columns": {"column_aliases": {"twice": "x * 2", "a": "nested.a"}}},
                {"limit": 10, "columns": {"twice": "x * 2", "a": "nested.a"}},
            ),
            ({"with_row_id": True, "columns": NAMES}, {"limit": 10, "with_row_id": True, "columns": ["id", "x"]}),
            ({"columns": {"column_names": ["_rowid", "id"]}}, {"limit": 10, "columns": ["_rowid", "id"]}),
            (
                {"filter": "nested.a % 2 = 0 and kind is not null"},
                {"limit": 10, "filter": "nested.a % 2 = 0 and kind is not null"},
            ),
            ({"filter": "id = 77"}, {"limit": 10, "filter": "id = 77"}),
            ({"filter": "kind = 'apple'", "fast_search": True}, {"limit": 10, "filter": "kind = 'apple'"}),
        ],
    )
    def test_are_those_of_pylance_and_of_the_stock_adapter(
        self, tables: Queried, request_: dict[str, Any], scan: dict[str, Any]
    ) -> None:
        found = tables.query(**request_)
        assert found.equals(tables.dataset.to_table(**scan))
        if request_.get("k", 0) < 2**31:  # of the stock adapter's requests, `k` has 32 bits
            assert found.equals(tables.stock_query(**request_))

    def test_k_and_vector_may_be_left_out(self, tables: Queried) -> None:
        found = answered(tables.ours.post("/v1/table/w$t/query", json={"filter": "x = 3"}))
        assert found.equals(tables.dataset.to_table(filter="x = 3"))

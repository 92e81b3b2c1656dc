"""Queries over HTTP and in process give what pylance gives for the same call, and what the stock adapter answers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import lance
import lance_namespace as models
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from namespace_server.directory.namespace import DirectoryNamespace
from tests.data.queried import (
    APPLE,
    ID,
    MATCH_APPLE,
    OTHER,
    QUERY,
    TABLE,
    VECTOR,
    WORDS,
    Queried,
    answered,
    complete,
    refusal,
    same_ranking,
    stream,
    text,
)


class TestScans:
    @pytest.mark.parametrize(
        ("request_", "scan"),
        [
            ({}, {"limit": 10}),
            ({"k": 0}, {}),
            ({"k": 2**31 - 1}, {}),
            ({"k": 2**63 - 1, "offset": 2000}, {"offset": 2000}),
            ({"k": 5, "offset": 3, "filter": "x > 40"}, {"limit": 5, "offset": 3, "filter": "x > 40"}),
            ({"vector": {"single_vector": []}}, {"limit": 10}),
            ({"vector": {"multi_vector": []}, "full_text_query": {}}, {"limit": 10}),
            ({"columns": {"column_names": []}}, {"limit": 10}),
            ({"columns": {"column_names": ["x", "id"]}}, {"limit": 10, "columns": ["x", "id"]}),
            (
                {"columns": {"column_names": ["nested.a", "nested.`b.c`", "nested.deep.d"]}},
                {"limit": 10, "columns": ["nested.a", "nested.`b.c`", "nested.deep.d"]},
            ),
            (
                {"columns": {"column_aliases": {"twice": "x * 2", "a": "nested.a"}}},
                {"limit": 10, "columns": {"twice": "x * 2", "a": "nested.a"}},
            ),
            ({"with_row_id": True, "columns": ID}, {"limit": 10, "with_row_id": True, "columns": ["id"]}),
            ({"columns": {"column_names": ["_rowid", "id"]}}, {"limit": 10, "columns": ["_rowid", "id"]}),
            (
                {"filter": "nested.a % 2 = 0 and kind is not null"},
                {"limit": 10, "filter": "nested.a % 2 = 0 and kind is not null"},
            ),
            ({"filter": "id = 77"}, {"limit": 10, "filter": "id = 77"}),
            (
                {"filter": "kind = 'apple'", "fast_search": True},
                {"limit": 10, "filter": "kind = 'apple'", "fast_search": True},
            ),
        ],
    )
    def test_are_those_of_pylance_and_of_the_stock_adapter(
        self, tables: Queried, request_: dict[str, Any], scan: dict[str, Any]
    ) -> None:
        found = tables.query(**request_)
        assert found.equals(tables.dataset.to_table(**scan))
        if request_.get("k", 0) < 2**31:  # in requests of the stock adapter `k` has 32 bits
            stock = tables.stock_query(**request_)  # whose aliases come in any order
            assert found.equals(stock.select(found.column_names))
            assert stock.num_columns == found.num_columns

    def test_k_and_vector_may_be_left_out(self, tables: Queried) -> None:
        found = answered(tables.ours.post(f"{TABLE}/query", json={"filter": "x = 3"}))
        assert found.equals(tables.dataset.to_table(filter="x = 3"))

    def test_an_answer_without_rows_has_the_schema(self, tables: Queried) -> None:
        assert tables.query(filter="id < 0").schema.equals(tables.dataset.schema)

    def test_dictionaries_of_all_fragments_are_one(self, tables: Queried) -> None:
        client = models.connect("rest", {"uri": tables.url})
        for mode, words in (("create", "aba"), ("append", "zby"), ("append", "b")):
            part = pa.table({"d": pa.array(list(words)).dictionary_encode()})
            lance.write_dataset(part, namespace_client=client, table_id=["w", "encoded"], mode=mode)
        found = answered(tables.ours.post("/v1/table/w$encoded/query", json={}))
        assert pa.types.is_dictionary(found.schema[0].type)
        assert found["d"].to_pylist() == list("abazbyb")


class TestVectorSearches:
    @pytest.mark.parametrize(
        ("request_", "nearest"),
        [
            ({}, {}),
            ({"k": 0}, {"k": 10}),
            ({"k": 3, "vector_column": "other"}, {"k": 3, "column": "other"}),
            ({"k": 3, "vector_column": "other", "ef": 40}, {"k": 3, "column": "other", "ef": 40}),
            ({"distance_type": "Cosine", "bypass_vector_index": True}, {"metric": "cosine", "use_index": False}),
            ({"distance_type": "dot", "bypass_vector_index": True}, {"metric": "dot", "use_index": False}),
            ({"nprobes": 1}, {"nprobes": 1}),
            ({"nprobes": 4, "minimum_nprobes": 1, "maximum_nprobes": 1}, {"minimum_nprobes": 1, "maximum_nprobes": 1}),
            ({"refine_factor": 4}, {"refine_factor": 4}),
            ({"bypass_vector_index": True}, {"use_index": False}),
            (
                {"bypass_vector_index": True, "lower_bound": 15.0, "upper_bound": 20.0},
                {"use_index": False, "distance_range": (15.0, 20.0)},
            ),
            ({"bypass_vector_index": True, "upper_bound": 17}, {"use_index": False, "distance_range": (None, 17)}),
        ],
    )
    def test_are_those_of_pylance_and_of_the_stock_adapter(
        self, tables: Queried, request_: dict[str, Any], nearest: dict[str, Any]
    ) -> None:
        request_ = {"vector": VECTOR, "columns": ID, "with_row_id": True, **request_}
        options = {"column": "vector", "q": QUERY, "k": 10, **nearest}
        found = tables.query(**request_)
        assert found.num_rows > 0
        assert found.equals(tables.dataset.to_table(columns=["id"], with_row_id=True, nearest=options))
        assert found.equals(tables.stock_query(**request_))

    @pytest.mark.parametrize("prefilter", [None, False, True])
    def test_a_filter_applies_to_the_result_unless_prefilter_is_set(
        self, tables: Queried, prefilter: bool | None
    ) -> None:
        request_ = {"vector": VECTOR, "columns": ID, "filter": "x > 40", "prefilter": prefilter}
        options = {"column": "vector", "q": QUERY, "k": 10}
        found = tables.query(**request_)
        assert found.equals(
            tables.dataset.to_table(columns=["id"], nearest=options, filter="x > 40", prefilter=bool(prefilter))
        )
        assert found.equals(tables.stock_query(**request_))
        assert (found.num_rows == 10) is bool(prefilter)

    def test_k_rows_come_after_the_offset(self, tables: Queried) -> None:
        whole = tables.query(vector=VECTOR, columns=ID, k=12)
        assert tables.query(vector=VECTOR, columns=ID, k=5, offset=7).equals(whole.slice(7))

    def test_several_vectors_are_several_searches(self, tables: Queried) -> None:
        found = tables.query(vector={"multi_vector": [QUERY, OTHER]}, columns=ID, k=3)
        options = {"column": "vector", "q": [QUERY, OTHER], "k": 3}
        assert found.equals(tables.dataset.to_table(columns=["id"], nearest=options))
        assert found["query_index"].to_pylist() == [0, 0, 0, 1, 1, 1]
        for index, query in enumerate((QUERY, OTHER)):
            one = tables.query(vector={"single_vector": query}, columns=ID, k=3)
            assert one["id"].to_pylist() == found.filter(pa.compute.field("query_index") == index)["id"].to_pylist()

    @pytest.mark.parametrize(
        "bounds", [{"k": 2**31 - 1}, {"k": 5, "refine_factor": 2**31}, {"k": 5, "ef": 2**40, "vector_column": "other"}]
    )
    def test_large_bounds_take_no_memory(self, tables: Queried, bounds: dict[str, Any]) -> None:
        found = tables.query(vector=VECTOR, columns=ID, **bounds)
        assert found.num_rows == min(bounds["k"], tables.dataset.count_rows())

    def test_the_only_column_of_vectors_is_searched(self, tables: Queried) -> None:
        client = models.connect("rest", {"uri": tables.url})
        vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 1.0, 5.0, 5.0], pa.float32()), 2)
        rows = pa.table({"id": [1, 2], "in": pa.StructArray.from_arrays([vectors], ["v"])})
        lance.write_dataset(rows, namespace_client=client, table_id=["w", "one"], mode="create")
        request_ = {"vector": {"single_vector": [5, 5]}, "k": 1, "columns": ID}
        assert answered(tables.ours.post("/v1/table/w$one/query", json=request_))["id"].to_pylist() == [2]
        lance.write_dataset(
            rows.append_column("w", vectors), namespace_client=client, table_id=["w", "one"], mode="overwrite"
        )
        response = tables.ours.post("/v1/table/w$one/query", json=request_)
        assert refusal(response) == (400, 13)
        assert response.json()["error"] == "vector_column: expected one of in.v, w, found nothing"

    @pytest.mark.parametrize(
        ("name", "column", "vector"),
        [
            ("many", pa.list_(pa.list_(pa.float32(), 4)), {"multi_vector": [[0.1] * 4, [0.2, 0.1, 0.0, -1.0]]}),
            ("many_one", pa.list_(pa.list_(pa.float32(), 4)), {"single_vector": [0.1] * 4}),
            ("half", pa.list_(pa.float16(), 4), {"single_vector": [0.5] * 4}),
            ("bits", pa.list_(pa.uint8(), 4), {"single_vector": [1, 2, 3, 4]}),
        ],
        ids=["several for one row", "one of several", "float16", "uint8"],
    )
    def test_of_vectors_of_any_kind_are_those_of_pylance(
        self, tables: Queried, name: str, column: pa.DataType, vector: dict[str, Any]
    ) -> None:
        random = np.random.default_rng(1)
        shape = (50, 3, 4) if name.startswith("many") else (50, 4)
        values = random.integers(0, 255, shape) if name == "bits" else random.standard_normal(shape)
        kind = {"half": "float16", "bits": "uint8"}.get(name, "float32")
        rows = [row.tolist() if name.startswith("many") else list(row) for row in values.astype(kind)]
        written = pa.table({"id": list(range(50)), "v": pa.array(rows, column)})
        client = models.connect("rest", {"uri": tables.url})
        dataset = lance.write_dataset(written, namespace_client=client, table_id=["w", name], mode="create")
        metric = "hamming" if name == "bits" else "cosine"
        request_ = {"k": 3, "vector": vector, "columns": ID, "distance_type": metric}
        found = answered(tables.ours.post(f"/v1/table/w${name}/query", json=request_))
        options = {"column": "v", "q": next(iter(vector.values())), "k": 3, "metric": metric}
        assert found.num_rows == 3
        assert found.equals(dataset.to_table(columns=["id"], nearest=options))


FILTERS = (
    None,
    "x > 25",
    "kind = 'apple'",
    "id between 100 and 1500",
    "nested.a is null",
    "x in (1, 2, 3) or x is null",
)


class TestAnyRequest:
    @settings(max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_is_answered_as_by_pylance_and_by_the_stock_adapter(self, tables: Queried, data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from(["scan", "vector", "text"]))
        k = data.draw(st.integers(0, 40))
        condition = data.draw(st.sampled_from(FILTERS))
        prefilter, row_ids, fast = (data.draw(st.booleans()) for _ in range(3))
        prefilter = prefilter or kind == "text"  # of rows with the same score any may be among the first
        columns = data.draw(st.sampled_from([["id"], ["id", "title", "x"], ["nested.deep.d", "id"]]))
        request_: dict[str, Any] = {
            "k": k,
            "filter": condition,
            "prefilter": prefilter,
            "with_row_id": row_ids,
            "fast_search": fast,
            "columns": {"column_names": columns},
        }
        scan: dict[str, Any] = {
            "columns": columns,
            "filter": condition,
            "prefilter": prefilter,
            "with_row_id": row_ids,
            "fast_search": fast,
            "limit": k or None,
        }
        if kind == "vector":
            column = data.draw(st.sampled_from(["vector", "other"]))
            exact = data.draw(st.booleans())
            request_ |= {"vector": VECTOR, "vector_column": column, "bypass_vector_index": exact}
            scan |= {"nearest": {"column": column, "q": QUERY, "k": k or 10, "use_index": not exact}, "limit": None}
            scan["fast_search"] = fast and not exact
        elif kind == "text":
            words = " ".join(data.draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)))
            request_ |= {"full_text_query": {"string_query": {"query": words, "columns": ["title"]}}, "k": k or 10}
            scan |= {"full_text_query": {"query": words, "columns": ["title"]}, "limit": k or 10}
        else:
            request_["offset"] = scan["offset"] = data.draw(st.integers(0, 60))
        found = tables.query(**request_)
        expected = tables.dataset.to_table(**scan)
        stock = tables.stock_query(**request_)
        if kind == "text":
            same_ranking(found, expected)
            if not fast:  # of which the stock adapter knows nothing in a full-text search
                same_ranking(found, stock)
        else:
            assert found.equals(expected)
            # The stock adapter ignores an offset without a bound, takes no side between two that contradict, and
            # leaves out of a fast scan what no index covers, which pylance does not.
            fast_scan = kind == "scan" and fast
            if (k or not scan.get("offset")) and scan["fast_search"] == fast and not fast_scan:
                assert found.equals(stock)


class TestPlans:
    REQUESTS = (
        ({"filter": "x > 3"}, {"filter": "x > 3", "limit": 10}),
        (
            {"vector": VECTOR, "filter": "x > 3", "columns": ID},
            {"nearest": {"column": "vector", "q": QUERY, "k": 10}, "filter": "x > 3", "columns": ["id"]},
        ),
        (text(MATCH_APPLE), {"full_text_query": APPLE, "columns": ["id"], "limit": 10}),
    )

    @pytest.mark.parametrize(("request_", "scan"), REQUESTS)
    def test_have_the_steps_of_pylance_and_no_path(
        self, tables: Queried, request_: dict[str, Any], scan: dict[str, Any]
    ) -> None:
        scanner = tables.dataset.scanner(**scan)
        analyzed = tables.ours.post(f"{TABLE}/analyze_plan", json=complete(request_)).json()
        assert steps(analyzed) == steps(scanner.analyze_plan())
        assert "metrics=[" in analyzed
        plans = [analyzed]
        for verbose in (False, True):
            body = {"query": complete(request_), "verbose": verbose}
            plans.append(tables.ours.post(f"{TABLE}/explain_plan", json=body).json())
            assert steps(plans[-1]) == steps(scanner.explain_plan(verbose=verbose))
        for plan in plans:
            assert str(tables.location).strip("/").split("/")[0] + "/" not in plan
            assert tables.location.name not in plan

    def test_of_merged_searches_are_one_for_each(self, tables: Queried) -> None:
        request_ = complete({"vector": VECTOR, **text(MATCH_APPLE)})
        for path, body in (("explain_plan", {"query": request_}), ("analyze_plan", request_)):
            plan = tables.ours.post(f"{TABLE}/{path}", json=body).json()
            assert plan.startswith("vector search:\n")
            assert "\nfull-text search:\n" in plan
            assert tables.location.name not in plan

    def test_of_queries_that_are_wrong_are_refused(self, tables: Queried) -> None:
        for path, body in (
            ("explain_plan", {"query": complete({"filter": "absent > 1"})}),
            ("analyze_plan", complete({"filter": "absent > 1"})),
        ):
            assert refusal(tables.ours.post(f"{TABLE}/{path}", json=body)) == (404, 12)
        assert refusal(tables.ours.post(f"{TABLE}/explain_plan", json={})) == (400, 13)
        body = {"query": complete({"branch": "a"}), "branch": "b"}
        assert refusal(tables.ours.post(f"{TABLE}/explain_plan", json=body)) == (400, 13)


def steps(plan: str) -> list[str]:
    return [line.strip().partition(":")[0].partition(" ")[0].rstrip(",") for line in plan.splitlines()]


class TestVersions:
    def test_of_table_and_catalog_may_be_named(self, tables: Queried) -> None:
        client = models.connect("rest", {"uri": tables.url})
        for mode, value in (("create", 1), ("append", 2)):
            dataset = lance.write_dataset(
                pa.table({"a": [value]}), namespace_client=client, table_id=["w", "versions"], mode=mode
            )
        pin = tables.ours.post("/v1/table/w$versions/describe", json={}).headers["x-lance-catalog-version"]
        dataset = lance.write_dataset(
            pa.table({"a": [3]}), namespace_client=client, table_id=["w", "versions"], mode="append"
        )
        dataset.create_branch("dev", 1)
        http, path = tables.ours, "/v1/table/w$versions"
        tables.ours.post(f"{path}/insert?branch=dev", content=stream(pa.table({"a": [9]}))).raise_for_status()

        def seen(headers: dict[str, str] | None = None, **request: Any) -> list[list[int]]:
            queried = http.post(f"{path}/query", json=complete(request), headers=headers)
            counted = http.post(f"{path}/count_rows", json=request, headers=headers)
            found: list[int] = answered(queried)["a"].to_pylist()
            assert counted.json() == len(found)
            assert counted.headers["x-lancedb-version"] == queried.headers["x-lancedb-version"]
            return [found, [int(queried.headers["x-lancedb-version"])]]

        assert seen() == [[1, 2, 3], [3]]
        assert seen(version=1) == [[1], [1]]
        assert seen({"x-lance-catalog-version": pin}) == [[1, 2], [2]]
        assert seen({"x-lance-catalog-version": pin, "x-lancedb-min-read-version": "3"}) == [[1, 2], [2]]
        assert seen(branch="dev")[0] == [1, 9]
        assert seen(branch="dev", version=1)[0] == [1]
        explained = {"query": complete({"filter": "a > 0", "branch": "dev"})}
        assert http.post(f"{path}/explain_plan", json=explained).headers["x-lancedb-version"] == "2"
        for request, code in (({"version": 99}, 11), ({"branch": "absent"}, 22)):
            for call in ("query", "count_rows", "analyze_plan"):
                body = request if call == "count_rows" else complete(request)
                assert refusal(http.post(f"{path}/{call}", json=body)) == (404, code)

    def test_that_a_client_has_seen_are_the_oldest_it_gets(self, tables: Queried) -> None:
        version = tables.dataset.version
        for call, body in (("query", complete({})), ("count_rows", {})):
            for least in (0, version):
                headers = {
                    "x-lancedb-min-read-version": str(least),
                    "x-lancedb-min-timestamp": "2999-01-01T00:00:00Z",
                    "x-lancedb-min-version": str(2**63),
                }
                assert tables.ours.post(f"{TABLE}/{call}", json=body, headers=headers).status_code == 200
            headers = {"x-lancedb-min-read-version": str(version + 1)}
            assert refusal(tables.ours.post(f"{TABLE}/{call}", json=body, headers=headers)) == (404, 11)
            pinned = {**body, "version": version}
            assert tables.ours.post(f"{TABLE}/{call}", json=pinned, headers=headers).status_code == 200
            headers = {"x-lancedb-min-read-version": "new"}
            assert refusal(tables.ours.post(f"{TABLE}/{call}", json=body, headers=headers)) == (400, 13)

    def test_are_those_of_the_table_that_has_the_name_now(self, tables: Queried) -> None:
        client = models.connect("rest", {"uri": tables.url})
        for value in (1, 2, 3):
            rows = pa.table({"a": [value] * value})
            lance.write_dataset(rows, namespace_client=client, table_id=["w", "again"], mode="create")
            assert answered(tables.ours.post("/v1/table/w$again/query", json={})).equals(rows)
            assert tables.ours.post("/v1/table/w$again/count_rows", json={}).json() == value
            tables.ours.post("/v1/table/w$again/drop", json={}).raise_for_status()
            assert refusal(tables.ours.post("/v1/table/w$again/query", json={})) == (404, 4)

    def test_a_table_that_is_only_declared_has_none(self, tables: Queried) -> None:
        tables.ours.post("/v1/table/w$declared/declare", json={}).raise_for_status()
        for call, body in (("query", {}), ("count_rows", {}), ("explain_plan", {"query": {}}), ("analyze_plan", {})):
            assert refusal(tables.ours.post(f"/v1/table/w$declared/{call}", json=body)) == (400, 13)


class TestInProcess:
    def test_gives_the_same_bytes_and_texts(self, tables: Queried) -> None:
        catalog = tables.namespace
        request = {"id": ["w", "t"], **complete({"vector": VECTOR, "columns": ID})}
        for form in (request, models.QueryTableRequest.from_dict(request)):
            response = catalog.query_table(form)
            assert isinstance(response, models.QueryTableResponse)
            found = pa.ipc.open_file(io.BytesIO(response.data)).read_all()
            assert found.equals(tables.query(vector=VECTOR, columns=ID))
        explain = {"id": ["w", "t"], "query": complete({"vector": VECTOR}), "verbose": True}
        assert catalog.explain_table_query_plan(models.ExplainTableQueryPlanRequest.from_dict(explain)) == (
            tables.ours.post(f"{TABLE}/explain_plan", json=explain).json()
        )
        analyze = models.AnalyzeTableQueryPlanRequest.from_dict(request)
        plan = tables.ours.post(f"{TABLE}/analyze_plan", json=complete({"vector": VECTOR, "columns": ID})).json()
        assert steps(catalog.analyze_table_query_plan(analyze)) == steps(plan)
        count = models.CountTableRowsRequest(id=["w", "t"], predicate="x > 40")
        assert catalog.count_table_rows(count).count == tables.dataset.count_rows("x > 40")

    def test_refuses_what_the_server_refuses(self, tables: Queried) -> None:
        for change in ({"filter": "absent > 1"}, {"version": 99}, {"vector": {"single_vector": [1.0]}}):
            response = tables.ours.post(f"{TABLE}/query", json=complete(change))
            with pytest.raises(Exception) as caught:  # noqa: PT011 - the kinds differ
                tables.namespace.query_table({"id": ["w", "t"], **complete(change)})
            assert (int(caught.value.code), str(caught.value)) == (response.json()["code"], response.json()["error"])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"k": -1}, (400, 13)),
        ({"k": 2**64}, (400, 13)),
        ({"k": 1.5}, (400, 13)),
        ({"k": "ten"}, (400, 13)),
        ({"offset": 2**64}, (400, 13)),
        ({"vector": [1.0]}, (400, 13)),
        ({"vector": {"single_vector": ["a"]}}, (400, 13)),
        ({"vector": {"single_vector": [1.0]}}, (400, 13)),
        ({"vector": {"multi_vector": [QUERY, [1.0]]}}, (400, 13)),
        ({"vector": {"single_vector": QUERY, "multi_vector": [QUERY]}}, (400, 13)),
        ({"vector": VECTOR, "vector_column": "absent"}, (404, 12)),
        ({"vector": VECTOR, "vector_column": "id"}, (400, 13)),
        ({"vector": VECTOR, "distance_type": "nope"}, (400, 13)),
        ({"vector": VECTOR, "distance_type": "hamming"}, (400, 13)),
        ({"vector": VECTOR, "nprobes": 0}, (400, 13)),
        ({"vector": VECTOR, "refine_factor": 0}, (400, 13)),
        ({"vector": VECTOR, "minimum_nprobes": 2, "maximum_nprobes": 1}, (400, 13)),
        ({"columns": {"column_names": ["absent"]}}, (404, 12)),
        ({"columns": {"column_names": ["id", "id"]}}, (400, 13)),
        ({"columns": {"column_aliases": {"y": "absent + 1"}}}, (404, 12)),
        ({"columns": {"column_aliases": {"y": "id +"}}}, (400, 13)),
        ({"columns": {"column_names": ["id"], "column_aliases": {"y": "id"}}}, (400, 13)),
        ({"filter": "absent > 1"}, (404, 12)),
        ({"filter": "(("}, (400, 13)),
        ({"filter": "id"}, (400, 13)),
        ({"filter": "1 / (id - 4) = 2"}, (400, 13)),
        ({"filter": "cast(title as int) = 2"}, (400, 13)),
        ({"filter": "regexp_match(title, '((((a{1,100}){1,100}){1,100}){1,100})') is not null"}, (400, 13)),
        ({"filter": "(" * 10_000 + "id > 1" + ")" * 10_000}, (400, 13)),
        ({"filter": "title = '" + "x" * (17 << 20) + "'"}, (413, 13)),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_request_that_makes_no_sense_is_refused(
    tables: Queried, change: dict[str, Any], error: tuple[int, int]
) -> None:
    response = tables.ours.post(f"{TABLE}/query", json=complete(change))
    assert refusal(response) == error
    assert len(response.json()["error"]) < 1000
    assert str(tables.location.parent) not in response.text


def test_long_filters_and_vectors_are_read(tables: Queried) -> None:
    assert tables.query(filter="title = '" + "x" * (1 << 21) + "'").num_rows == 0
    many = tables.query(vector={"multi_vector": [QUERY] * 1000}, columns=ID, k=1)
    assert many["query_index"].to_pylist() == list(range(1000))


def test_a_query_that_ends_its_worker_ends_nothing_else(tables: Queried) -> None:
    response = tables.ours.post(f"{TABLE}/query", json=complete({"filter": "id" + "+1" * 20_000 + " > 1"}))
    assert refusal(response) in {(500, 18), (400, 13)}  # pylance runs out of stack, or says that it would
    assert tables.query(filter="id = 7")["id"].to_pylist() == [7]


@pytest.mark.parametrize(
    ("columns", "names"),
    [(None, ["a", "v"]), ({"column_names": ["a"]}, ["a"]), ({"column_aliases": {"b": "a"}}, ["b"])],
)
def test_a_search_logs_nothing_about_its_score(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], columns: dict[str, Any] | None, names: list[str]
) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path), durability="none")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 1.0, 2.0, 3.0], pa.float32()), 2)
    namespace.create_table(models.CreateTableRequest(id=["t"]), stream(pa.table({"a": [1, 2], "v": vectors})))
    request = {"id": ["t"], "k": 1, "vector": {"single_vector": [0.0, 1.0]}, "columns": columns}
    found = namespace.query_table(models.QueryTableRequest.from_dict(request)).data
    assert pa.ipc.open_file(found).schema.names == [*names, "_distance"]
    assert "WARN" not in capfd.readouterr().err
    namespace.close()

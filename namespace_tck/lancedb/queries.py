"""Lines about queries: scans, vectors, words, plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from namespace_tck.lancedb.data import DIMENSION
from namespace_tck.lancedb.lines import BIG, Asked, LineList, N, R, T, missing, post, refused
from namespace_tck.lancedb.matching import ANY, Rows, Where, text
from namespace_tck.registry import Promise

lines = LineList("queries", Promise.QUERIES)

_ALL: Final = 9223372036854775807
_SCAN: Final[dict[str, Any]] = {"version": None, "prefilter": True, "k": _ALL, "vector": []}
_NEAR: Final = {
    "version": None,
    "prefilter": True,
    "k": 3,
    "vector": [2.2, 0.0],
    "nprobes": 20,
    "minimum_nprobes": 20,
    "maximum_nprobes": 20,
    "lower_bound": None,
    "upper_bound": None,
    "ef": None,
    "refine_factor": None,
}
_WITH_DISTANCE: Final = ("id", "text", "price", "label", "meta", "vector", "_distance")


def scan(answer: Any, *, table: str = R, **given: Any) -> Asked:
    """A query without a vector."""
    return post(f"{table}query/", {**_SCAN, **given}, answer)


def near(answer: Any, *, table: str = R, **given: Any) -> Asked:
    """The nearest rows of (2.2, 0), whose order is 2, 3, 1."""
    return post(f"{table}query/", {**_NEAR, **given}, answer)


def words(query: object, answer: Any, **given: Any) -> Asked:
    """A query of words."""
    return scan(answer, full_text_query=query, k=10, **given)


def tree(node: str, answer: Any, **given: Any) -> Asked:
    """A query of words by a tree whose root is a node of this kind."""
    return words({"query": {node: given}}, answer)


def _by(column: str, *, ascending: bool = False, nulls_first: bool = False) -> dict[str, Any]:
    return {"column_name": column, "ascending": ascending, "nulls_first": nulls_first}


_search = lines.about("Table.search")
_search(
    "A query without a vector answers all rows as an Arrow file or stream.",
    post(
        R + "query/",
        _SCAN,
        Rows(columns=_WITH_DISTANCE[:-1], count=6),
        answered={"content-type": text("application/vnd.apache.arrow.")},
    ),
)
_search("Rows are filtered by a condition with quoted names.", scan(Rows(values={"id": [4, 5]}), filter="`id` > 3"))
_search("A condition may join others.", scan(Rows(values={"id": [1]}), filter="((id > 0) AND (text = 'lazy cat'))"))
lines("Table.head", "The first rows are answered.", scan(Rows(count=5), k=5))
_search("No rows are answered where none are asked for.", scan(Rows(count=0), k=0))
_search("Rows are skipped.", scan(Rows(values={"id": [4, 5]}), offset=4))
_select = lines.about("Query.select")
_select(
    "Columns are answered in the order in which they are asked for.",
    scan(Rows(columns=["price", "id"], count=2), columns=["price", "id"], k=2),
)
_select(
    "Expressions are answered under their names.",
    scan(Rows(columns=["twice"], values={"twice": [0, 2, 4, 6, 8, 10]}), columns={"twice": "id * 2"}),
)
lines("Query.with_row_id", "Row ids are answered.", scan(Rows(having=["_rowid"], count=6), with_row_id=True))
_order_by = lines.about("Query.order_by")
_order_by(
    "Rows are sorted downwards.",
    scan(Rows(values={"id": [5, 4, 3]}), k=3, order_by=[_by("id", nulls_first=True)]),
)
_order_by(
    "Rows are sorted by two columns.",
    scan(
        Rows(values={"text": ["cat nap", "fast dog", "lazy cat"]}),
        k=3,
        order_by=[_by("text", ascending=True), _by("id", ascending=True)],
    ),
)
lines(
    "Table.take_row_ids",
    "Rows are taken by their ids.",
    scan(Rows(values={"id": [0, 1]}, ordered=False), filter="_rowid IN (0, 1)"),
)
lines(
    "Table.take_offsets",
    "Rows are taken by their offsets, which are answered.",
    scan(
        Rows(columns=["id", "_rowoffset"], values={"id": [3, 5], "_rowoffset": [3, 5]}, ordered=False),
        filter="_rowoffset IN (5, 3)",
        columns=["id", "_rowoffset"],
    ),
)
lines(
    "Table.checkout",
    "A query reads the version that it names.",
    post(T + "delete/", {"predicate": "id < 3"}),
    scan(Rows(count=3), table=T),
    scan(Rows(count=6), table=T, version=1),
)
_search(
    "A table in a namespace is queried.",
    post("/v1/namespace/{m}/create", {}, statuses=(200, 204)),
    post("/v1/table/{m}${n}/create/?mode=create", pa.table({"id": [1, 2]})),
    post("/v1/table/{m}${n}/query/", _SCAN, Rows(values={"id": [1, 2]})),
)
_search("A table that is missing is told by 404.", missing(N + "query/", _SCAN))
_search(
    "A column that is missing is no missing table.",
    refused(R + "query/", {**_SCAN, "filter": "nope > 1"}, text("nope")),
    refused(R + "query/", {**_SCAN, "columns": ["nope"]}, text("nope")),
)
_order_by(
    "An order by a column that is missing is refused.",
    refused(R + "query/", {**_SCAN, "order_by": [_by("nope", ascending=True)]}, text("nope")),
)
_search(
    "A query of a log is refused by name, or answered.",
    post(R + "query/", {**_SCAN, "use_lsm": True}, Rows(count=6), refusal="use_lsm"),
)
_search(
    "A query may read the table without its log.",
    post(R + "query/", {**_SCAN, "use_lsm": False}, Rows(count=6), refusal="use_lsm"),
)

vectors = LineList("vectors", Promise.QUERIES)
_nearest_to = vectors.about("Query.nearest_to")
_nearest_to(
    "The nearest rows come first, with their distance as the last column.",
    near(Rows(columns=_WITH_DISTANCE, values={"id": [2, 3, 1], "_distance": [0.04, 0.64, 1.44]})),
)
_column = vectors.about("VectorQuery.column")
_column("The column of the vectors is named.", near(Rows(values={"id": [2, 3, 1]}), vector_column="vector"))
_column(
    "The column of the vectors may be a field of another column.",
    post(
        N + "create/?mode=create",
        pa.table(
            {
                "id": [0, 1],
                "image": pa.array(
                    [{"embedding": [0.0, 0.0]}, {"embedding": [2.0, 0.0]}],
                    pa.struct([("embedding", pa.list_(pa.float32(), 2))]),
                ),
            }
        ),
    ),
    near(Rows(values={"id": [1, 0]}), table=N, vector_column="image.embedding"),
)
_distance_type = vectors.about("VectorQuery.distance_type")
_distance_type(
    "The cosine is the distance if that is asked for.",
    near(Rows(count=3, having=["_distance"]), distance_type="cosine", filter="id > 0"),
)
_distance_type(
    "The dot product is the distance if that is asked for.", near(Rows(values={"id": [5, 4, 3]}), distance_type="dot")
)
_distance_type(
    "Vectors of bits are compared by the Hamming distance.",
    post(
        N + "create/?mode=create",
        pa.table({"id": [0, 1], "vector": pa.array([[255, 255], [0, 1]], pa.list_(pa.uint8(), 2))}),
    ),
    near(Rows(values={"id": [1, 0], "_distance": [1.0, 16.0]}), table=N, vector=[0.0, 0.0], distance_type="hamming"),
)
vectors(
    "VectorQuery.distance_range",
    "Distances are bounded, the upper bound not included.",
    near(Rows(values={"id": [3, 1]}), k=10, lower_bound=0.5, upper_bound=3.0),
)
vectors(
    "VectorQuery.nprobes",
    "Numbers of probes are taken, also without a maximum.",
    near(Rows(values={"id": [2, 3, 1]}), nprobes=5, minimum_nprobes=5, maximum_nprobes=15),
    near(Rows(values={"id": [2, 3, 1]}), nprobes=5, minimum_nprobes=5, maximum_nprobes=0),
)
vectors(
    "VectorQuery.refine_factor",
    "A factor for refinement is taken.",
    near(Rows(values={"id": [2, 3, 1]}), refine_factor=2),
)
vectors("VectorQuery.ef", "A size of the list of candidates is taken.", near(Rows(values={"id": [2, 3, 1]}), ef=16))
vectors(
    "VectorQuery.bypass_vector_index",
    "A search may leave the index out.",
    near(Rows(values={"id": [2, 3, 1]}), bypass_vector_index=True),
)
vectors(
    "Query.fast_search",
    "A search of indexed rows alone finds no others.",
    near(Rows(count=0), fast_search=True),
    post(
        BIG + "create_index/", {"column": "vector", "index_type": "IVF_FLAT", "metric_type": "l2", "num_partitions": 1}
    ),
    near(Rows(count=3), table=BIG, vector=[0.0] * DIMENSION, fast_search=True),
)
vectors(
    "VectorQuery.approx_mode",
    "A mode of approximation is taken.",
    post(R + "query/", {**_NEAR, "approx_mode": "accurate"}, Rows(values={"id": [2, 3, 1]}), refusal="approx_mode"),
)
vectors(
    "VectorQuery.postfilter",
    "Rows are filtered before the search, or after it.",
    near(Rows(values={"id": [4, 5]}), filter="id > 3"),
    near(Rows(count=0), filter="id > 3", prefilter=False),
)
vectors("Query.offset", "The nearest rows are skipped.", near(Rows(values={"id": [3, 1]}), k=2, offset=1))
vectors(
    "Query.select",
    "Columns of the nearest rows are chosen, and the distance is added.",
    near(Rows(columns=["id", "_distance"], values={"id": [2, 3, 1]}), columns=["id"]),
)
vectors(
    "Query.with_row_id",
    "Row ids of the nearest rows are answered.",
    near(Rows(having=["_rowid", "_distance"], count=3), with_row_id=True),
)
vectors(
    "Query.order_by",
    "The nearest rows are sorted by a column.",
    near(Rows(values={"id": [3, 2, 1]}), order_by=[_by("id")]),
)
vectors(
    "VectorQuery",
    "All parameters of a search go together.",
    post(
        R + "query/",
        {
            **_NEAR,
            "vector_column": "vector",
            "prefilter": False,
            "k": 42,
            "offset": 1,
            "distance_type": "cosine",
            "bypass_vector_index": True,
            "columns": ["id", "price"],
            "order_by": [_by("price", nulls_first=True), _by("id", ascending=True)],
            "nprobes": 12,
            "minimum_nprobes": 12,
            "maximum_nprobes": 12,
            "refine_factor": 2,
            "with_row_id": True,
            "filter": "id > 0",
        },
        Rows(having=["id", "price", "_distance", "_rowid"]),
    ),
)
_nearest_to("A vector of another length is refused.", refused(R + "query/", {**_NEAR, "vector": [1.0, 2.0, 3.0]}))
_column("A column that is missing is refused.", refused(R + "query/", {**_NEAR, "vector_column": "nope"}, text("nope")))
_nearest_to(
    "A number that is none is refused.",
    refused(
        R + "query/", b'{"k":1,"vector":[NaN,1.0]}', statuses=(400, 415), headers={"content-type": "application/json"}
    ),
)
vectors(
    "VectorQuery.add_query_vector",
    "Several vectors are searched for in one request, and rows say for which.",
    near(
        Rows(having=["query_index", "id"], values={"query_index": [0, 0, 1, 1]}, ordered=False),
        vector=[[0.0, 0.0], [5.0, 0.0]],
        k=2,
    ),
    since="0.2.0",
)

found = LineList("words", Promise.QUERIES)
_PUPPIES: Final = Rows(having=["_score"], values={"id": [0, 2]}, ordered=False)
_MATCH: Final[dict[str, Any]] = {
    "terms": "puppy",
    "column": "text",
    "boost": 1.0,
    "fuzziness": 0,
    "max_expansions": 50,
    "operator": "Or",
    "prefix_length": 0,
}
_full_text_search = found.about("Query.full_text_search")
_full_text_search(
    "Words are searched for in all columns that have an index.", words({"columns": [], "query": "puppy"}, _PUPPIES)
)
_full_text_search(
    "Words are searched for in named columns.",
    words(
        {"columns": ["text"], "query": "puppy"},
        Rows(having=["_score", "_rowid"], values={"id": [0, 2]}, ordered=False),
        with_row_id=True,
    ),
)
_full_text_search(
    "Words that nothing has are found nowhere.", words({"columns": ["text"], "query": "zebra"}, Rows(count=0))
)
_CAT: Final = {"match": {**_MATCH, "terms": "cat"}}
_match_query = found.about("MatchQuery", since="0.3.0")
_match_query("A match is searched for.", tree("match", _PUPPIES, **_MATCH))
_match_query(
    "A match in no named column is searched for in all that have an index.",
    tree("match", _PUPPIES, **{**_MATCH, "column": None}),
)
_match_query(
    "A match may have a letter that is wrong.",
    tree("match", _PUPPIES, **{**_MATCH, "terms": "pupy", "fuzziness": 1}),
)
_match_query(
    "All words of a match are needed if that is asked for.",
    tree("match", Rows(values={"id": [2]}), **{**_MATCH, "terms": "puppy cat", "operator": "And"}),
)
_match_query(
    "A document may be a row, by name.",
    replace(tree("match", _PUPPIES, **_MATCH, document_granularity="row"), refusal="document_granularity"),
)
_match_query(
    "A document may be an element of a list.",
    tree("match", ANY, **_MATCH, document_granularity="list_element"),
    since="0.6.0",
)
found(
    "PhraseQuery",
    "A phrase is searched for.",
    tree("phrase", Rows(values={"id": [1]}), terms="lazy cat", column="text", slop=0),
    since="0.3.0",
)
found(
    "BoostQuery",
    "What is not wanted comes last.",
    tree("boost", Rows(values={"id": [0, 2]}), positive={"match": _MATCH}, negative=_CAT, negative_boost=0.3),
    since="0.3.0",
)
found(
    "MultiMatchQuery",
    "A match in several columns is searched for.",
    tree("multi_match", _PUPPIES, query="puppy", columns=["text"], boost=[1.0]),
    since="0.3.0",
)
found(
    "BooleanQuery",
    "Conditions on words are joined.",
    tree("boolean", Rows(values={"id": [0]}), must=[{"match": _MATCH}], should=[], must_not=[_CAT]),
    since="0.3.0",
)
found(
    "CombinedFieldsQuery",
    "Columns are searched as one, or that is refused by name.",
    replace(
        tree("combined_fields", _PUPPIES, query="puppy", columns=["text"], boost=[1.0], operator="Or"),
        refusal="combined_fields",
    ),
    since="0.3.0",
)
_full_text_search(
    "Words and a condition go together.",
    words({"columns": ["text"], "query": "puppy"}, Rows(values={"id": [2]}), filter="id > 0"),
)
found(
    "HybridQuery",
    "Both halves of a hybrid search answer row ids.",
    words({"columns": [], "query": "puppy"}, Rows(having=["_rowid", "_score"]), with_row_id=True),
    near(Rows(having=["_rowid", "_distance"]), with_row_id=True),
)
_full_text_search(
    "A column without an index of words is refused, or read.",
    post(
        T + "query/",
        {**_SCAN, "k": 10, "full_text_query": {"columns": ["text"], "query": "puppy"}},
        statuses=(200, 400),
    ),
)

plans = LineList("plans", Promise.QUERIES)
_explain_plan = plans.about("Query.explain_plan")
_explain_plan(
    "A plan is a JSON string.",
    post(R + "explain_plan/", {"verbose": True, "query": _NEAR}, text("knn")),
    post(R + "explain_plan/", {"verbose": False, "query": {**_SCAN, "filter": "id > 1"}}, text("id")),
)
_explain_plan(
    "The plan of rows that are taken is explained without a query.",
    post(
        R + "explain_plan/",
        {
            "verbose": False,
            "query": {**_SCAN, "filter": "_rowoffset IN (0, 1, 2)", "columns": ["id", "_rowoffset"], "k": 3},
        },
        Where("a text", lambda plan: len(plan) > 10),
    ),
)
_analyze_plan = plans.about("Query.analyze_plan")
_analyze_plan("A plan that was run has metrics.", post(R + "analyze_plan/", _NEAR, text("metrics")))
_analyze_plan(
    "Metrics of each worker are answered, or refused by name.",
    post(R + "analyze_plan/?distributed_metrics=per_worker", {**_SCAN, "k": 1}, refusal="distributed_metrics"),
)
_explain_plan(
    "A column that is missing is refused.",
    refused(R + "explain_plan/", {"verbose": False, "query": {**_SCAN, "filter": "nope > 1"}}, text("nope")),
)
_explain_plan(
    "A table that is missing is told by 404.",
    missing(N + "explain_plan/", {"verbose": False, "query": _SCAN}),
    missing(N + "analyze_plan/", _SCAN),
)

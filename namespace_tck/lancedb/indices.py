"""Lines about indices."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from namespace_tck.lancedb.lines import BIG, LineList, N, R, T, missing, post, refused
from namespace_tck.lancedb.matching import HasEntry, Where, kind, text
from namespace_tck.registry import Promise

lines = LineList("indices", Promise.INDICES)

_TRAINED: Final = {"sample_rate": 256, "max_iterations": 50}
_GRAPH: Final = {**_TRAINED, "m": 20, "ef_construction": 300}
_TEXT: Final = {
    "lance_tokenizer": None,
    "base_tokenizer": "simple",
    "language": "English",
    "with_position": False,
    "max_token_length": 40,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "custom_stop_words": None,
    "ascii_folding": True,
    "min_ngram_length": 3,
    "max_ngram_length": 3,
    "prefix_only": False,
    "block_size": 128,
    "index_operators": False,
    "preserve_original": False,
    "split_identifiers": False,
    "split_on_numerics": False,
}
_OF_VECTORS: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("as it comes", "IVF_FLAT", {"metric_type": "l2", **_TRAINED}),
    ("with partitions", "IVF_FLAT", {"metric_type": "dot", "num_partitions": 4, **_TRAINED}),
    ("as it comes", "IVF_PQ", {"metric_type": "l2", **_TRAINED}),
    ("with bits", "IVF_PQ", {"metric_type": "cosine", "num_partitions": 4, "num_bits": 4, **_TRAINED}),
    (
        "with sub-vectors",
        "IVF_PQ",
        {"metric_type": "l2", "num_sub_vectors": 4, "sample_rate": 512, "max_iterations": 100},
    ),
    ("as it comes", "IVF_HNSW_SQ", {"metric_type": "l2", **_GRAPH}),
    (
        "with a graph",
        "IVF_HNSW_SQ",
        {"metric_type": "l2", "num_partitions": 2, **_TRAINED, "m": 40, "ef_construction": 500},
    ),
    ("as it comes", "IVF_HNSW_FLAT", {"metric_type": "l2", **_GRAPH}),
    (
        "with a graph",
        "IVF_HNSW_FLAT",
        {"metric_type": "cosine", "num_partitions": 2, **_TRAINED, "m": 40, "ef_construction": 500},
    ),
    ("as it comes", "IVF_SQ", {"metric_type": "l2", **_TRAINED}),
    ("with partitions", "IVF_SQ", {"metric_type": "cosine", "num_partitions": 4, **_TRAINED}),
    ("as it comes", "IVF_RQ", {"metric_type": "l2", **_TRAINED}),
    ("with bits", "IVF_RQ", {"metric_type": "cosine", "num_partitions": 2, "num_bits": 1, **_TRAINED}),
)
_OF_COLUMNS: Final[tuple[tuple[str, str, str, dict[str, Any]], ...]] = (
    ("as it comes", "BTREE", "id", {}),
    ("as it comes", "BITMAP", "id", {}),
    ("as it comes", "LABEL_LIST", "label", {}),
    ("as it comes", "ZONEMAP", "id", {}),
    ("as it comes", "NGRAM", "text", {}),
    ("as it comes", "BLOOM_FILTER", "id", {}),
    ("with a size", "BLOOM_FILTER", "id", {"number_of_items": 4096, "probability": 0.01}),
    ("with all options", "FTS", "text", _TEXT),
    ("with a block size", "FTS", "text", {**_TEXT, "block_size": 256}),
    ("with stop words", "FTS", "text", {**_TEXT, "custom_stop_words": ["cat", " cat ", "CAT"]}),
)
_ALIASES: Final = {"FTS": "inverted"}


def _listed(name: str, column: str, kind_of_index: str) -> dict[str, object]:
    plain = _ALIASES.get(kind_of_index, kind_of_index.replace("_", "").lower())
    type_of = Where(
        f"the type {kind_of_index}", lambda found: _ALIASES.get(found, found.replace("_", "").lower()) == plain
    )
    return {"indexes": HasEntry({"index_name": name, "columns": [column], "index_type": type_of})}


_create_index = lines.about("Table.create_index")
for _how, _kind, _options in _OF_VECTORS:
    _create_index(
        f"An index {_kind} is made {_how}, of its metric.",
        post(BIG + "create_index/", {"column": "vector", "index_type": _kind, "name": "own", **_options}),
        post(BIG + "index/list/", {"version": None}, _listed("own", "vector", _kind)),
        post(
            BIG + "index/own/stats/",
            {"version": None},
            {"distance_type": _options["metric_type"], "num_indexed_rows": 300, "num_unindexed_rows": 0},
        ),
    )
for _how, _kind, _column, _options in _OF_COLUMNS:
    _create_index(
        f"An index {_kind} of the column {_column} is made {_how}.",
        post(
            T + "create_index/",
            {"column": _column, "index_type": _kind, "name": "own", **_options},
            refusal=_kind if not _options else next(iter(_options)),
        ),
        post(T + "index/list/", {"version": None}, _listed("own", _column, _kind)),
        post(
            T + "index/own/stats/",
            {"version": None},
            {"num_indexed_rows": 6, "num_unindexed_rows": 0, "index_type": kind(str)},
        ),
    )
_create_index(
    "An index of points is made, or refused by name.",
    post(T + "create_index/", {"column": "vector", "index_type": "RTREE", "page_size": 1024}, refusal="page_size"),
)
_create_index(
    "An index of substrings is made, or refused by name.",
    post(T + "create_index/", {"column": "text", "index_type": "FM"}, refusal="FM"),
)
_create_index(
    "An index of the elements of lists is made.",
    post(
        T + "create_index/", {"column": "label", "index_type": "FTS", **_TEXT, "document_granularity": "list_element"}
    ),
    since="0.6.0",
)
_create_index(
    "Vectors of bits have an index by the Hamming distance.",
    post(
        N + "create/?mode=create",
        pa.table({"v": pa.array([[n % 256, n // 3 % 256] for n in range(300)], pa.list_(pa.uint8(), 2))}),
    ),
    post(
        N + "create_index/",
        {
            "column": "v",
            "index_type": "IVF_FLAT",
            "metric_type": "hamming",
            "num_partitions": 2,
            "name": "own",
            **_TRAINED,
        },
    ),
    post(N + "index/own/stats/", {"version": None}, {"distance_type": "hamming"}),
)
_create_index(
    "An index is replaced where nothing else is said.",
    post(T + "create_index/", {"column": "id", "index_type": "BTREE"}),
    post(T + "create_index/", {"column": "id", "index_type": "BTREE"}),
)
_create_index(
    "An index that must not be replaced is refused.",
    post(T + "create_index/", {"column": "id", "index_type": "BTREE"}),
    refused(T + "create_index/", {"column": "id", "index_type": "BTREE", "replace": False}, text("exist")),
)
_create_index(
    "A field of a column has an index.",
    post(T + "create_index/", {"column": "meta.userId", "index_type": "BTREE", "name": "own"}),
    post(T + "index/list/", {"version": None}, _listed("own", "meta.userId", "BTREE")),
)
_create_index(
    "Names with other characters are quoted.",
    post(
        N + "create/?mode=create",
        pa.table({"ROW-ID": [1], "lit": pa.array([{"a.b": 1}], pa.struct([("a.b", pa.int64())]))}),
    ),
    post(N + "create_index/", {"column": "`ROW-ID`", "index_type": "BTREE", "name": "one"}),
    post(N + "create_index/", {"column": "lit.`a.b`", "index_type": "BTREE", "name": "two"}),
    post(N + "index/list/", {"version": None}, {"indexes": HasEntry({"index_name": "two", "columns": ["lit.`a.b`"]})}),
)
_create_index(
    "A column that is missing is refused.",
    refused(T + "create_index/", {"column": "nope", "index_type": "BTREE"}, text("nope")),
)
_create_index(
    "A table that is missing is told by 404.", missing(N + "create_index/", {"column": "id", "index_type": "BTREE"})
)
_create_index(
    "The job of an index has an id, or there is none.",
    post(
        T + "create_index/",
        {"column": "id", "index_type": "BTREE"},
        Where("an id, or none", lambda found: isinstance(found.get("job_id"), str | None)),
    ),
)
lines(
    "Table.create_scalar_index",
    "The older route of indices of columns makes one.",
    post(T + "create_scalar_index/", {"column": "id", "index_type": "BTREE"}),
    post(T + "index/list/", {"version": None}, {"indexes": HasEntry({"columns": ["id"]})}),
)
_list_indices = lines.about("Table.list_indices")
_list_indices("A table without indices lists none.", post(T + "index/list/", {"version": None}, {"indexes": []}))
_list_indices(
    "An entry of the list says all of an index.",
    post(
        R + "index/list/",
        {"version": None},
        {
            "indexes": HasEntry(
                {
                    "index_name": kind(str),
                    "columns": ["text"],
                    "index_type": kind(str),
                    "index_uuid": kind(str),
                    "num_indexed_rows": 6,
                    "num_unindexed_rows": 0,
                    "size_bytes": kind(int),
                    "num_segments": kind(int),
                }
            )
        },
    ),
)
_list_indices(
    "Indices of a version are listed.",
    post(T + "create_index/", {"column": "id", "index_type": "BTREE"}),
    post(T + "index/list/", {"version": 1}, {"indexes": []}),
)
lines(
    "Table.tokenize",
    "The list has what the words of a text are cut by.",
    post(R + "index/list/", {"version": None}, {"indexes": HasEntry({"index_details": text("base_tokenizer")})}),
)
_index_stats = lines.about("Table.index_stats")
_index_stats("An index that is missing is told by 404.", missing(R + "index/nope/stats/", {"version": None}))
lines(
    "Table.wait_for_index",
    "Rows that were added since are counted.",
    post(T + "create_index/", {"column": "id", "index_type": "BTREE", "name": "own"}),
    post(T + "insert/", pa.table({"id": [9]})),
    post(T + "index/own/stats/", {"version": None}, {"num_indexed_rows": 6, "num_unindexed_rows": 1}),
)
_drop_index = lines.about("Table.drop_index")
_drop_index(
    "An index is dropped by a request without a body.",
    post(T + "create_index/", {"column": "id", "index_type": "BTREE", "name": "own"}),
    post(T + "index/own/drop/"),
    post(T + "index/list/", {"version": None}, {"indexes": []}),
)
_drop_index("An index that is missing is told by 404.", missing(T + "index/nope/drop/"))
_prewarm_index = lines.about("Table.prewarm_index")
_prewarm_index(
    "A hint that an index will be read is taken.",
    post(T + "create_index/", {"column": "id", "index_type": "BTREE", "name": "own"}),
    post(T + "index/own/prewarm/"),
)
_prewarm_index("A hint about an index that is missing is told by 404.", missing(T + "index/nope/prewarm/"))
lines(
    "Table.prewarm_data",
    "A hint that columns will be read is taken.",
    post(R + "page_cache/prewarm/", {"columns": ["id", "text"]}),
    post(R + "page_cache/prewarm/", {"columns": None}),
)
_index_stats(
    "A name with reserved characters is encoded in the path.",
    post(T + "create_index/", {"column": "id", "index_type": "BTREE", "name": "my/index?a#b c"}),
    post(T + "index/my%2Findex%3Fa%23b%20c/stats/", {"version": None}, {"num_indexed_rows": 6}),
    post(T + "index/my%2Findex%3Fa%23b%20c/prewarm/"),
    post(T + "index/my%2Findex%3Fa%23b%20c/drop/"),
)

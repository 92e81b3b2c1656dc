"""Types and options of indices, from requests to the arguments of pylance. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import TYPE_CHECKING, Final

from table_data.errors import InvalidCall

if TYPE_CHECKING:
    from table_data.requests.table_requests import CreateTableIndex

SCALAR: Final = (
    *("BTREE", "BITMAP", "LABEL_LIST", "INVERTED", "NGRAM", "ZONEMAP", "BLOOMFILTER"),
    "RTREE",
)
VECTOR: Final = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
_OTHER_NAMES: Final = {
    "FTS": "INVERTED",
    "SCALAR": "BTREE",
    "VECTOR": "IVF_PQ",
    "ZONE_MAP": "ZONEMAP",
    "BLOOM_FILTER": "BLOOMFILTER",
}
_METRICS: Final = {"l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "dot", "hamming": "hamming"}
_TEXT_OPTIONS: Final = (
    *("with_position", "base_tokenizer", "language", "max_token_length"),
    *("lower_case", "stem", "remove_stop_words", "ascii_folding"),
)
_IVF_OPTIONS: Final = {
    "num_partitions": "num_partitions",
    "target_partition_size": "target_partition_size",
    "sample_rate": "sample_rate",
    "max_iterations": "max_iters",
}
_BOUNDS: Final = {"m": 1024, "ef_construction": 1 << 16}
"""Pylance allocates memory for them before it looks at the rows."""
_MOST: Final = (1 << 31) - 1
_SUB_VECTORS: Final = 16
"""The number of sub-vectors if none is given, or less where it does not divide the dimension."""


def index_type_of(request: CreateTableIndex) -> str:
    """The type of the index to create, as pylance names it. Raises `InvalidCall`."""
    given = request["index_type"].upper()
    found = _OTHER_NAMES.get(given, given)
    if found not in SCALAR and found not in VECTOR:
        known = ", ".join((*SCALAR, *VECTOR, *_OTHER_NAMES))
        raise InvalidCall(f"index_type {given[:80]!r}: expected one of {known}")
    return found


def parameters_of(request: CreateTableIndex, index_type: str, dimension: int | None) -> Mapping[str, object]:
    """The arguments of pylance for the options of a request that this type of index has; others are left out.

    `dimension` is that of the vectors, if the column has vectors. Raises `InvalidCall` for a value out of range.
    """
    for name, value in request.items():
        most = _BOUNDS.get(name, _MOST)
        if isinstance(value, int) and value > most:
            raise InvalidCall(f"{name[:80]}: expected at most {most}, found {value}")
    if index_type == "INVERTED":
        return _given(request, {name: name for name in _TEXT_OPTIONS})
    if index_type not in VECTOR:
        return {}
    names = dict(_IVF_OPTIONS)
    if not index_type.endswith("FLAT"):
        names["num_bits"] = "num_bits"
    if "HNSW" in index_type:
        names |= {"m": "m", "ef_construction": "ef_construction"}
    parameters = {"metric": _metric(request), **_given(request, names)}
    if index_type.endswith("PQ"):
        parameters["num_sub_vectors"] = request.get("num_sub_vectors") or gcd(dimension or _SUB_VECTORS, _SUB_VECTORS)
    return parameters


def _given(request: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    return {argument: request[name] for name, argument in names.items() if request.get(name) is not None}


def _metric(request: CreateTableIndex) -> str:
    given = request.get("distance_type") or "l2"
    metric = _METRICS.get(given.lower())
    if metric is None:
        raise InvalidCall(f"distance_type {given[:80]!r}: expected one of {', '.join(_METRICS)}")
    return metric

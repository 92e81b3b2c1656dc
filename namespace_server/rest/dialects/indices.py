"""Translations of operations on indices, and of hints that queries will come. Pure."""

from __future__ import annotations

from typing import Any, Final

from lance_namespace.errors import InvalidInputError

from namespace_server.rest.dialects.translation import Translation, present
from namespace_server.rest.handlers import TableRead
from namespace_server.rest.request.body import JsonObject

_KNOWN: Final = frozenset(
    {
        *("IVFFLAT", "IVFSQ", "IVFPQ", "IVFRQ", "IVFHNSWPQ", "IVFHNSWSQ", "IVFHNSWFLAT"),
        *("BTREE", "BITMAP", "LABELLIST", "FTS", "INVERTED", "FM", "ZONEMAP", "NGRAM", "BLOOMFILTER", "RTREE"),
    }
)
"""The types that lancedb's clients know, without underscores. One that they do not know fails their whole list."""


_NGRAMS: Final = {"min_ngram_length": 3, "max_ngram_length": 3, "prefix_only": False}
"""What clients send with every index of text, though it is of other tokenizers, where it has no effect."""
_UNBOUNDED: Final = (1 << 31) - 1


def created(body: JsonObject) -> JsonObject:
    """A new index: lancedb calls the distance type a metric, and replaces an index unless it is told not to."""
    found = present(body)
    if "metric_type" in found:
        if "distance_type" in found:
            raise InvalidInputError("distance_type: expected metric_type alone, found both")
        found["distance_type"] = found.pop("metric_type")
    if "max_token_length" in body:
        found.setdefault("max_token_length", _UNBOUNDED)  # their null is no bound, that of the published API no value
    if found.get("base_tokenizer") != "ngram":
        found = {name: value for name, value in found.items() if name not in _NGRAMS or value != _NGRAMS[name]}
    found.setdefault("replace", True)
    return found


def listed(answer: Any) -> object:
    """A list of indices; of one whose type clients do not know the type is left out."""
    return {**answer, "indexes": [_named(index) for index in answer["indexes"]]}


def _named(index: dict[str, Any]) -> dict[str, Any]:
    kind = str(index.get("index_type", "")).replace("_", "").upper()
    return index if kind in _KNOWN else {name: value for name, value in index.items() if name != "index_type"}


TRANSLATIONS: Final = {
    "create_table_index": Translation(body=created, is_keyed=True),
    "create_table_scalar_index": Translation(body=created, is_keyed=True),
    "list_table_indices": Translation(body=present, answer=listed),
    "describe_table_index_stats": Translation(body=present),
    "drop_table_index": Translation(body=present, is_keyed=True),
    "prewarm_table_index": Translation(body=present, work=TableRead(named="index_name")),
    "prewarm_table_pages": Translation(body=present, work=TableRead()),
}

"""Translations of queries and their plans: lancedb says vectors, columns and words in shapes of its own. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from lance_namespace.errors import InvalidInputError

from namespace_server.rest.dialects.translation import Translation, present
from namespace_server.rest.request.body import JsonObject
from table_data.errors import InvalidCall
from table_data.sql.expressions import sql_expression

_MOST_WRITTEN: Final = 1 << 20
"""Bytes of the matches of one query that are written out for each column: a few bytes may name many columns."""
_ROW: Final = ("document_granularity", "row")
"""A row is a document, as everywhere here."""
_PROBES: Final = ("nprobes", "minimum_nprobes", "maximum_nprobes")
_ALL_ROWS: Final = 1 << 62
"""From here on a number of rows stands for all of them."""


def query(body: JsonObject) -> JsonObject:
    """A query. What has the same shape in both APIs is left as it is, and checked by the operation."""
    found = present(body)
    if "vector" in found:
        found["vector"] = _vector(found["vector"])
    if "columns" in found:
        found["columns"] = _columns(found["columns"])
    if "full_text_query" in found:
        found["full_text_query"] = _full_text(found["full_text_query"])
    if found.get("maximum_nprobes") == 0:  # no maximum
        del found["maximum_nprobes"]
    if found.get("use_lsm") is False:  # the rows of the table alone: it has no others
        del found["use_lsm"]
    is_scan = not found.get("vector") and not found.get("full_text_query")
    if is_scan:
        for name in _PROBES:  # clients send them with each query
            _check_count(name, found.pop(name, 0))
        rows = found.get("k")
        if isinstance(rows, int) and rows >= _ALL_ROWS:
            del found["k"]
        elif rows == 0:
            found = {**found, "filter": _nothing_of(found.get("filter"))}
    return found


def _check_count(name: str, value: object) -> None:
    if type(value) is not int or value < 0:
        raise InvalidInputError(f"{name}: expected a number from 0 on, found {str(value)[:80]}")


def _nothing_of(given: object) -> object:
    """A filter that no row matches, for which one that a client sent is checked as if it were asked for."""
    if not isinstance(given, str):
        return "false" if given is None else given
    try:
        return f"{sql_expression(given, 'filter')} AND false"
    except InvalidCall as error:
        raise InvalidInputError(str(error)) from None


def explained(body: JsonObject) -> JsonObject:
    """A query whose plan is asked for."""
    inner = body.get("query")
    if not isinstance(inner, dict):
        raise InvalidInputError(f"query: expected an object, found {str(inner)[:80]}")
    return {**body, "query": query(inner)}


def _vector(given: object) -> object:
    if not isinstance(given, list):
        raise InvalidInputError(f"vector: expected a list of numbers or of vectors, found {str(given)[:80]}")
    if not given:
        return {}
    return {"multi_vector" if isinstance(given[0], list) else "single_vector": given}


def _columns(given: object) -> object:
    if isinstance(given, list):
        return {"column_names": given}
    if isinstance(given, dict):
        return {"column_aliases": given}
    raise InvalidInputError(f"columns: expected a list of names or an object of expressions, found {str(given)[:80]}")


def _full_text(given: object) -> object:
    if not isinstance(given, dict):
        raise InvalidInputError(f"full_text_query: expected an object, found {str(given)[:80]}")
    asked = given.get("query")
    if isinstance(asked, str):
        return {"string_query": {**given, "columns": given.get("columns") or None}}
    others = given.keys() - {"query"}
    if others:
        raise InvalidInputError(f"full_text_query: expected query alone, found {', '.join(sorted(others))[:200]}")
    return {"structured_query": {"query": _tree(asked, _Room())}}


class _Room:
    """What the matches of one query may still have."""

    def __init__(self) -> None:
        self._left = _MOST_WRITTEN

    def take(self, size: int) -> None:
        """Raises `InvalidInputError` if it is too much."""
        self._left -= size
        if self._left < 0:
            raise InvalidInputError(
                f"multi_match: expected at most {_MOST_WRITTEN} bytes of matches, one for each column, found more"
            )


def _tree(given: Any, room: _Room) -> Any:
    """A tree of text queries: a match in several columns is written out, the other kinds have the same shape."""
    if isinstance(given, list):
        return [_tree(each, room) for each in given]
    if not isinstance(given, dict):
        return given
    return {
        kind: _several(asked, room) if kind == "multi_match" else _tree(asked, room)
        for kind, asked in given.items()
        if (kind, asked) != _ROW
    }


def _several(given: object, room: _Room) -> object:
    if not isinstance(given, dict) or not isinstance(given.get("columns"), list):
        raise InvalidInputError(f"multi_match: expected an object with columns, found {str(given)[:80]}")
    columns: list[object] = given["columns"]
    boosts = given.get("boost")
    if boosts is None:
        boosts = [1.0] * len(columns)
    if not isinstance(boosts, list) or len(boosts) != len(columns):
        raise InvalidInputError(f"multi_match: expected a boost for each of {len(columns)} columns, found {boosts}")
    shared: Mapping[str, object] = {
        k: v for k, v in given.items() if k not in {"columns", "boost", "query"} and (k, v) != _ROW
    }
    room.take(len(columns) * len(orjson.dumps([given.get("query"), shared])) + len(orjson.dumps([columns, boosts])))
    matches = [
        {"terms": given.get("query"), "column": column, "boost": boost, **shared}
        for column, boost in zip(columns, boosts, strict=True)
    ]
    return {"match_queries": matches}


TRANSLATIONS: Final = {
    "query_table": Translation(body=query, is_large=True, is_timed=True),
    "explain_table_query_plan": Translation(body=explained, is_large=True, is_timed=True),
    "analyze_table_query_plan": Translation(body=query, is_large=True, is_timed=True),
    "count_table_rows": Translation(body=present, is_large=True, is_timed=True),
    "fetch_table_blobs": Translation(body=present),
    "read_table_blob": Translation(),
}

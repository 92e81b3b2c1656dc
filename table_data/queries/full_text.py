"""Full-text queries as pylance takes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from lance.query import (
    BooleanQuery,
    BoostQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

from table_data.batch_operations import Json
from table_data.errors import InvalidCall
from table_data.queries.printed import AUTOMATIC, printed_query

if TYPE_CHECKING:
    import lance

_KINDS: Final = ("match", "phrase", "boost", "multi_match", "boolean")
_MAX_EXPANSIONS: Final = 50
_NEGATIVE_BOOST: Final = 0.5

DefaultColumns = Callable[[], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches of which the best counts, and which differ in more than column and boost."""

    queries: tuple[MatchQuery, ...]


def full_text_query(dataset: lance.LanceDataset, given: Json) -> FullTextQuery | Json | Matches | None:
    """What pylance takes as `full_text_query`, or `Matches`; None if nothing is given.

    Columns that a query does not name are all that have a full-text index. Raises `InvalidCall`.
    """
    string, structured = given.get("string_query"), given.get("structured_query")
    if string is not None and structured is not None:
        raise InvalidCall("full_text_query: expected string_query or structured_query, found both")
    columns = None if string is None else string.get("columns") or None
    if string is not None:
        tree = printed_query(string["query"])
        if tree is None:
            return {"query": string["query"], "columns": columns}
    elif structured is not None:
        tree = structured["query"]
    else:
        return None

    @cache
    def defaults() -> tuple[str, ...]:
        return tuple(columns or indexed_columns(dataset))

    kind, query = _kind(tree)
    if kind in {"match", "multi_match"}:
        return _best_of(_leaves(kind, query, defaults))
    return _query(kind, query, defaults)


def indexed_columns(dataset: lance.LanceDataset) -> tuple[str, ...]:
    """The columns that have a full-text index. Raises `InvalidCall` if there are none."""
    names = [
        name
        for index in dataset.describe_indices()
        if index.index_type.upper() in {"INVERTED", "FTS"}
        for name in index.field_names
    ]
    if not names:
        raise InvalidCall("full_text_query: expected a table with a full-text index, found none")
    return tuple(dict.fromkeys(names))


def _kind(given: Json) -> tuple[str, Json]:
    found = [(kind, given[kind]) for kind in _KINDS if given.get(kind) is not None]
    if len(found) != 1:
        kinds = ", ".join(kind for kind, _ in found) or "none"
        raise InvalidCall(f"structured_query: expected one of {', '.join(_KINDS)}, found {kinds}")
    return found[0]


def _query(kind: str, query: Json, defaults: DefaultColumns) -> FullTextQuery:
    match kind:
        case "phrase":
            column = query.get("column")
            if column is None:
                columns = defaults()
                if len(columns) != 1:
                    raise InvalidCall(f"phrase: expected a column, of {', '.join(columns)[:400]}, found none")
                [column] = columns
            return PhraseQuery(query["terms"], column, slop=query.get("slop") or 0)
        case "boost":
            weight = query.get("negative_boost")
            return BoostQuery(
                _inner(query["positive"], defaults),
                _inner(query["negative"], defaults),
                negative_boost=_NEGATIVE_BOOST if weight is None else float(weight),
            )
        case "boolean":
            clauses = [
                (occur, _inner(inner, defaults))
                for occur, name in ((Occur.SHOULD, "should"), (Occur.MUST, "must"), (Occur.MUST_NOT, "must_not"))
                for inner in query.get(name) or ()
            ]
            if not clauses:
                raise InvalidCall("boolean: expected at least one query, found none")
            return BooleanQuery(clauses)
        case _:
            best = _best_of(_leaves(kind, query, defaults))
            if isinstance(best, Matches):
                raise InvalidCall(
                    f"{kind} inside another query: expected matches with the same terms and operator and no fuzziness, "
                    "found different ones"
                )
            return best


def _inner(given: Json, defaults: DefaultColumns) -> FullTextQuery:
    return _query(*_kind(given), defaults)


def _leaves(kind: str, query: Json, defaults: DefaultColumns) -> list[Json]:
    """The matches, each with its column."""
    queries = [query] if kind == "match" else query["match_queries"]
    if not queries:
        raise InvalidCall("multi_match: expected at least one match, found none")
    return [
        {**match, "column": column}
        for match in queries
        for column in ((match["column"],) if match.get("column") is not None else defaults())
    ]


def _best_of(matches: list[Json]) -> FullTextQuery | Matches:
    """The query whose score is that of the best match."""
    first = matches[0]
    if len(matches) == 1:
        return _match(first)
    same = {(match["terms"], _operator(match), bool(match.get("fuzziness"))) for match in matches}
    if same == {(first["terms"], _operator(first), False)}:
        return MultiMatchQuery(
            first["terms"],
            [match["column"] for match in matches],
            boosts=[_weight(match) for match in matches],
            operator=_operator(first),
        )
    return Matches(tuple(_match(match) for match in matches))


def _match(query: Json) -> MatchQuery:
    return MatchQuery(
        query["terms"],
        query["column"],
        boost=_weight(query),
        fuzziness=None if query.get("fuzziness") == AUTOMATIC else query.get("fuzziness") or 0,
        max_expansions=_or(query.get("max_expansions"), _MAX_EXPANSIONS),
        operator=_operator(query),
        prefix_length=query.get("prefix_length") or 0,
    )


def _weight(query: Json) -> float:
    return float(_or(query.get("boost"), 1.0))


def _operator(query: Json) -> FullTextOperator:
    given = query.get("operator") or "or"
    try:
        return FullTextOperator(given.upper())
    except ValueError:
        raise InvalidCall(f"operator: expected And or Or, found {given[:80]!r}") from None


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value

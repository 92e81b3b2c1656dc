"""Full-text queries as pylance takes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

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

    from table_data.requests.table_requests import FullTextQuery as AskedText
    from table_data.requests.table_requests import MatchQuery as AskedMatch
    from table_data.requests.table_requests import PhraseQuery as AskedPhrase
    from table_data.requests.table_requests import TextQuery

_KINDS: Final = ("match", "phrase", "boost", "multi_match", "boolean")
_MAX_EXPANSIONS: Final = 50
_NEGATIVE_BOOST: Final = 0.5
_FUZZY_LETTERS: Final = 256
"""Most characters of a word that is matched fuzzily: the time grows with their square."""
_FUZZY_WORDS: Final = 1000
"""Most of such words."""

DefaultColumns = Callable[[], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches of which the best counts, and which differ in more than column and boost."""

    queries: tuple[MatchQuery, ...]


def full_text_query(dataset: lance.LanceDataset, given: AskedText) -> FullTextQuery | Json | Matches | None:
    """The argument of pylance for a full-text query, or `Matches`; None if nothing is given.

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

    if _kind(tree) in {"match", "multi_match"}:
        return _best_of(_leaves(tree, defaults))
    return _query(tree, defaults)


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


def _kind(tree: TextQuery) -> str:
    found = [kind for kind, query in tree.items() if kind in _KINDS and query is not None]
    if len(found) != 1:
        raise InvalidCall(
            f"structured_query: expected one of {', '.join(_KINDS)}, found {', '.join(sorted(found)) or 'none'}"
        )
    return found[0]


def _query(tree: TextQuery, defaults: DefaultColumns) -> FullTextQuery:
    kind = _kind(tree)
    if (phrase := tree.get("phrase")) is not None:
        return _phrase(phrase, defaults)
    if (boost := tree.get("boost")) is not None:
        weight = boost.get("negative_boost")
        return BoostQuery(
            _query(boost["positive"], defaults),
            _query(boost["negative"], defaults),
            negative_boost=_NEGATIVE_BOOST if weight is None else float(weight),
        )
    if (boolean := tree.get("boolean")) is not None:
        clauses = [
            (occur, _query(inner, defaults))
            for occur, queries in (
                (Occur.SHOULD, boolean.get("should")),
                (Occur.MUST, boolean.get("must")),
                (Occur.MUST_NOT, boolean.get("must_not")),
            )
            for inner in queries or ()
        ]
        if not clauses:
            raise InvalidCall("boolean: expected at least one query, found none")
        return BooleanQuery(clauses)
    best = _best_of(_leaves(tree, defaults))
    if isinstance(best, Matches):
        raise InvalidCall(
            f"{kind} inside another query: expected matches with the same terms and operator and no fuzziness, "
            "found different ones"
        )
    return best


def _phrase(phrase: AskedPhrase, defaults: DefaultColumns) -> FullTextQuery:
    column = phrase.get("column")
    if column is None:
        columns = defaults()
        if len(columns) != 1:
            raise InvalidCall(f"phrase: expected a column, of {', '.join(columns)[:400]}, found none")
        [column] = columns
    return PhraseQuery(phrase["terms"], column, slop=phrase.get("slop") or 0)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A match in one column."""

    column: str
    match: AskedMatch

    @property
    def boost(self) -> float:
        given = self.match.get("boost")
        return 1.0 if given is None else float(given)

    @property
    def operator(self) -> FullTextOperator:
        given = self.match.get("operator") or "or"
        try:
            return FullTextOperator(given.upper())
        except ValueError:
            raise InvalidCall(f"operator: expected And or Or, found {given[:80]!r}") from None


def _leaves(tree: TextQuery, defaults: DefaultColumns) -> list[_Leaf]:
    """The matches, each in one column."""
    one, several = tree.get("match"), tree.get("multi_match")
    queries = [one] if one is not None else [] if several is None else several["match_queries"]
    if not queries:
        raise InvalidCall("multi_match: expected at least one match, found none")
    leaves: list[_Leaf] = []
    for match in queries:
        column = match.get("column")
        leaves += [_Leaf(name, match) for name in ((column,) if column is not None else defaults())]
    return leaves


def _best_of(leaves: list[_Leaf]) -> FullTextQuery | Matches:
    """The query whose score is that of the best match."""
    first, terms = leaves[0], leaves[0].match["terms"]
    if len(leaves) == 1:
        return _match(first)
    same = {(leaf.match["terms"], leaf.operator, bool(leaf.match.get("fuzziness"))) for leaf in leaves}
    if same == {(terms, first.operator, False)}:
        return MultiMatchQuery(
            terms,
            [leaf.column for leaf in leaves],
            boosts=[leaf.boost for leaf in leaves],
            operator=first.operator,
        )
    return Matches(tuple(_match(leaf) for leaf in leaves))


def _check_fuzzy(terms: str) -> None:
    words = terms.split()
    if len(words) > _FUZZY_WORDS:
        raise InvalidCall(f"fuzziness: expected at most {_FUZZY_WORDS} words, found {len(words)}")
    longest = max(map(len, words), default=0)
    if longest > _FUZZY_LETTERS:
        raise InvalidCall(f"fuzziness: expected words of at most {_FUZZY_LETTERS} characters, found {longest}")


def _match(leaf: _Leaf) -> MatchQuery:
    fuzziness, expansions = leaf.match.get("fuzziness"), leaf.match.get("max_expansions")
    if fuzziness:
        _check_fuzzy(leaf.match["terms"])
    return MatchQuery(
        leaf.match["terms"],
        leaf.column,
        boost=leaf.boost,
        fuzziness=None if fuzziness == AUTOMATIC else fuzziness or 0,
        max_expansions=_MAX_EXPANSIONS if expansions is None else expansions,
        operator=leaf.operator,
        prefix_length=leaf.match.get("prefix_length") or 0,
    )

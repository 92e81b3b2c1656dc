"""Full-text queries that come as the text that Lance prints of them.

Where lancedb has a server do its queries it sends `Match(MatchQuery { column: Some("title"), terms: "apple", ... })` as
the words to look for, also for plain words. Taken as words, that finds other rows than lancedb itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from table_data.batch_operations import Json

if TYPE_CHECKING:
    from table_data.requests.table_requests import TextQuery

AUTOMATIC: Final = -1
"""Fuzziness that depends on the length of the word."""
_MAX_DEPTH: Final = 32
_BEGIN: Final = re.compile(r"(?:Match|Phrase|Boost|Boosting|MultiMatch|Boolean)\(")
_TOKEN: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\w[\w.+-]*|-[\d.]+|[()\[\]{}:=,])', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}
_KINDS: Final = {
    "Match": "match",
    "Phrase": "phrase",
    "Boost": "boost",
    "Boosting": "boost",
    "MultiMatch": "multi_match",
    "Boolean": "boolean",
}


class _NotPrinted(Exception):
    """The text is something else."""


def printed_query(text: str) -> TextQuery | None:
    """The structured query that a text is the print of; None if it is not."""
    if not _BEGIN.match(text):
        return None
    try:
        parser = _Parser(text)
        query = parser.query(0)
        parser.end()
    except (_NotPrinted, ValueError, LookupError, TypeError):
        return None
    return cast("TextQuery", query)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def query(self, depth: int) -> Json:
        """`Match(MatchQuery { ... })`, or `Boolean(must=[...], ...)`."""
        if depth > _MAX_DEPTH:
            raise _NotPrinted
        kind = _KINDS[self._next()]
        self._expect("(")
        if kind in {"boost", "boolean"} and self._peek() in {"positive", "must"}:
            fields = self._fields("=", ")", depth)
        else:
            self._next()
            self._expect("{")
            fields = self._fields(":", "}", depth)
            self._expect(")")
        return {kind: fields}

    def end(self) -> None:
        if self._text[self._place :].strip():
            raise _NotPrinted

    def _fields(self, sign: str, end: str, depth: int) -> Json:
        fields: Json = {}
        while self._peek() != end:
            name = self._next()
            self._expect(sign)
            value = self._value(name, depth)
            if value is not None:
                fields[name] = value
            elif name == "fuzziness":
                fields[name] = AUTOMATIC
            if self._peek() == ",":
                self._next()
        self._expect(end)
        if fields.pop("document_granularity", None) is not None:
            raise _NotPrinted
        return fields

    def _value(self, name: str, depth: int) -> Any:
        match name:
            case "positive" | "negative":
                return self.query(depth + 1)
            case "must" | "should" | "must_not":
                return self._list(lambda: self.query(depth + 1))
            case "match_queries":
                return self._list(self._match)
            case "operator":
                return self._next()
        if self._peek() == "None":
            self._next()
            return None
        if self._peek() != "Some":
            return _scalar(self._next())
        self._next()
        self._expect("(")
        value = _scalar(self._next())
        self._expect(")")
        return value

    def _match(self) -> Json:
        self._expect("MatchQuery")
        self._expect("{")
        return self._fields(":", "}", 0)

    def _list(self, item: Callable[[], Json]) -> list[Json]:
        self._expect("[")
        items = []
        while self._peek() != "]":
            items.append(item())
            if self._peek() == ",":
                self._next()
        self._expect("]")
        return items

    def _token(self) -> re.Match[str]:
        found = _TOKEN.match(self._text, self._place)
        if found is None:
            raise _NotPrinted
        return found

    def _peek(self) -> str:
        return self._token()[1]

    def _next(self) -> str:
        found = self._token()
        self._place = found.end()
        return found[1]

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise _NotPrinted


def _scalar(token: str) -> Any:
    if token.startswith('"'):
        return _ESCAPE.sub(_unescaped, token[1:-1])
    value = json.loads(token)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _NotPrinted
    return value


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2])

"""The tokens of an SQL expression, as pylance reads them.

Quotes, comments and brackets are exactly pylance's, so that no token means something else here than there. What is
within them is left to pylance's parser.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, cast

from table_data.errors import InvalidCall

Kind = Literal["word", "name", "text", "number", "operator", "bracket"]
"""A `name` is in backticks, a `word` is not; `text` is in single quotes. Commas and dots are operators."""

_TOKEN: Final = re.compile(
    r"""
    (?P<space>    [^\S\x1c-\x1f]+ )
  | (?P<comment>  --[^\n]* | /\*.*?\*/ )
  | (?P<text>     '(?:[^']|'')*' )
  | (?P<name>     `(?:[^`]|``)*` )
  | (?P<number>   (?:[0-9]|\.[0-9]) (?:[eE][-+][0-9]|[0-9A-Za-z_.])* )
  | (?P<word>     (?:[A-Za-z_@#]|[^\x00-\x7f\s\u2018-\u201e\xab\xbb]) (?:[A-Za-z0-9_@$#]|[^\x00-\x7f\s])* )
  | (?P<bracket>  [()\[\]] )
  | (?P<operator> <=> | <> | <= | >= | == | != | \|\| | << | >> | :: | ->> | -> | => | (?!/\*)[-+*/%<>=!~&|^,.] )
    """,
    re.VERBOSE | re.DOTALL,
)
_VALUES: Final = re.compile(r"(?:(?:-?[0-9]+(?:\.[0-9]+)?|'(?:[^']|'')*+')\s*,\s*)+")
"""Values of a list but the last, which may be many."""
_MOST_DIGITS: Final = sys.float_info.max_10_exp
_LONG: Final = re.compile(r"[0-9]{20}")
_PREFIXES: Final = frozenset("BENRUbenru")
"""Letters directly before a text that make it another kind of text in some SQL. Pylance has no such text."""
_HEXADECIMAL: Final = re.compile(r"'(?:[0-9A-Fa-f]{2})*'")
_CURLY: Final = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\xab\xbb"
_EXPECTED: Final = {
    '"': 'column names in backticks (`name`) and text in single quotes, found a double quote (")',
    ";": "one expression, found a semicolon",
    "'": "a text that ends with a single quote, found none",
    "`": "a name that ends with a backtick, found none",
    "/": "a comment that ends with */, found none",
    **{quote: f"text in straight single quotes, found {quote}" for quote in _CURLY},
    "?": "a value, found the parameter ?",
    "$": "a value, found the parameter $",
    ":": "a value, found the parameter :",
}


BETWEEN_VALUES: Final = frozenset(
    {"and", "as", "between", "distinct", "escape", "from", "ilike", "in", "is", "like", "not", "or"}
)
"""Words that are no values, and that a value may follow."""


class Token(NamedTuple):
    """A token, the place where it begins, and its text in lower case if it is a word, else empty."""

    kind: Kind
    text: str
    start: int
    lowered: str = ""

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + len(self.text)


def tokens_of(text: str, what: str) -> Iterator[Token]:
    """The tokens, without spaces and comments. Of a list of values in brackets only the last is given.

    Raises `InvalidCall`, which begins with `what`, for text in double quotes, a semicolon, parameters, and all else
    that pylance would take for something else or ignore.
    """
    place, before = 0, ""
    while place < len(text):
        if before == "(" and (values := _VALUES.match(text, place)) is not None and not _LONG.search(values[0]):
            yield Token("operator", ",", values.end() - 1)
            place, before = values.end(), ""
            continue
        found = _TOKEN.match(text, place)
        if found is None:
            raise _unexpected(text, place, what)
        kind, value = str(found.lastgroup), found[0]
        if kind in {"space", "comment"}:
            if kind == "comment" and before == "operator":
                raise InvalidCall(f"{what}: expected a space between an operator and a comment, at character {place}")
        else:
            if kind == "word":
                _check_word(value, text, found.end(), what)
            elif kind == "number" and value[:2] in {"0x", "0X"}:  # bytes to pylance, the number 1 to others
                raise InvalidCall(f"{what}: expected a number in decimal digits, found {value[:40]}")
            elif kind == "number" and value.isdecimal() and not _is_exact(value.lstrip("0")):
                raise InvalidCall(
                    f"{what}: expected an integer of at most 64 bits, found {value[:40]}: pylance rounds larger ones; "
                    "CAST('...' AS DECIMAL(38, 0)) is exact"
                )
            yield Token(cast("Kind", kind), value, place, value.lower() if kind == "word" else "")
        before = value if value == "(" else "" if value in {",", "."} else kind
        place = found.end()


def _is_exact(digits: str) -> bool:
    """Whether pylance has the value of an integer: it takes one beyond 64 bits for a floating-point number."""
    if len(digits) < len(str(1 << 64)):
        return True
    return len(digits) <= _MOST_DIGITS and (int(digits) < 1 << 64 or int(float(digits)) == int(digits))


def _check_word(word: str, text: str, end: int, what: str) -> None:
    if text[end : end + 1] == "'":
        if word in _PREFIXES:
            raise InvalidCall(f"{what}: expected a text in single quotes alone, found {word}'")
        if word in {"x", "X"} and not _HEXADECIMAL.match(text, end):  # which pylance takes for NULL
            raise InvalidCall(
                f"{what}: expected two hexadecimal digits for each byte, found {text[end - 1 : end + 40]}"
            )
    if "$" in word and not word.isascii():
        raise InvalidCall(f"{what}: expected a name with a dollar sign in backticks, found {word[:40]}")


def _unexpected(text: str, place: int, what: str) -> InvalidCall:
    character = text[place]
    expected = _EXPECTED.get(character, f"an SQL expression, found {character!r}")
    return InvalidCall(f"{what}: expected {expected}, at character {place}")

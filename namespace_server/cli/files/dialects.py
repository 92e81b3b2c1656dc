"""How a CSV file is written: its delimiter, and its header."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from itertools import islice
from typing import Final

from namespace_server.cli.files.chunks import Chunk, count_lines, rows_of
from namespace_server.cli.files.refusals import FileRefused

DELIMITERS: Final = (",", ";", "\t", "|")
_SAMPLE: Final = 200
_STATED: Final = re.compile(rb"sep=([,;\t|])\r?\n")
"""A first line as Excel writes and reads it."""
MARK: Final = b"\xef\xbb\xbf"
_OTHER_ENCODINGS: Final = (
    *((b"\xff\xfe\x00\x00", "UTF-32"), (b"\x00\x00\xfe\xff", "UTF-32")),
    *((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")),
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The delimiter of a file, the names of its columns, and the bytes and lines up to its first row."""

    delimiter: str
    names: tuple[str, ...]
    header_bytes: int
    header_lines: int


def check_is_utf8(head: bytes) -> None:
    """Raise `FileRefused` for the first bytes of a text in another encoding."""
    for mark, name in _OTHER_ENCODINGS:
        if head.startswith(mark):
            raise FileRefused(f"line 1: expected UTF-8, found {name}")
    if b"\0" in head[:4]:
        raise FileRefused("line 1: expected UTF-8, found a NUL byte, as UTF-16 and UTF-32 have them")


def dialect_of(head: bytes, given: str | None, *, is_whole: bool) -> Dialect:
    """The dialect of a file by its first bytes, which may be all. `given` is its delimiter if that is known.

    Raises `FileRefused` where the delimiter is not certain, and for a column without a name or with that of another.
    """
    check_is_utf8(head)
    start = len(MARK) if head.startswith(MARK) else 0
    stated = _STATED.match(head, start)
    lines = 0
    if stated is not None:
        start, lines = stated.end(), 1
        given = given or stated[1].decode()
    body = Chunk(head[start:], lines + 1)
    delimiter = given or _delimiter(body, is_whole=is_whole)
    for place, row in rows_of(body, delimiter, blank=False):
        end = place + len(row)
        if end == len(body.data) and not is_whole:
            raise FileRefused(f"line {body.line_at(place)}: expected names of columns in {end:,} bytes, found more")
        names = cells_of(row, delimiter, body.line_at(place))
        _check_names(names, body.line_at(place))
        end += 2 if body.data[end : end + 2] == b"\r\n" else 1
        return Dialect(delimiter, tuple(names), start + end, body.line_at(end) - 1)
    raise FileRefused("expected a line with the names of the columns, found an empty file")


def cells_of(row: bytes, delimiter: str, line: int) -> list[str]:
    """The cells of a row. Raises `FileRefused` for bytes that are not UTF-8."""
    try:
        text = row.decode()
    except UnicodeDecodeError as error:
        raise FileRefused(not_utf8(row, error, line)) from None
    old = csv.field_size_limit(len(text) + 1)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [""])
    finally:
        csv.field_size_limit(old)


def not_utf8(data: bytes, error: UnicodeDecodeError, line: int) -> str:
    """The error for bytes whose first line is `line`."""
    line = Chunk(data, line).line_at(error.start)
    return f"line {line}: expected UTF-8, found the byte 0x{data[error.start]:02x}"


def _delimiter(body: Chunk, *, is_whole: bool) -> str:
    """The delimiter that divides the header and all first rows into as many cells. Raises `FileRefused` for two."""
    counts = {each: _widths(body, each, is_whole=is_whole) for each in DELIMITERS}
    found = [each for each, widths in counts.items() if widths and widths[0] > 1]
    even = [each for each in found if len(set(counts[each])) == 1]
    if len(even) > 1:
        raise FileRefused(
            f"expected one delimiter, found {' and '.join(repr(each) for each in even)} in each line; --delimiter says "
            "which it is"
        )
    if even:
        return even[0]
    return found[0] if found else DELIMITERS[0]


def _widths(body: Chunk, delimiter: str, *, is_whole: bool) -> list[int]:
    rows = list(islice(rows_of(body, delimiter, blank=False), _SAMPLE))
    if not is_whole and 1 < len(rows) < _SAMPLE:
        del rows[-1]  # which may go on
    widths, line, counted = [], body.line, 0
    for place, row in rows:
        line, counted = line + count_lines(body.data[counted:place]), place
        widths.append(row.count(delimiter.encode()) and len(cells_of(row, delimiter, line)))
    return widths


def _check_names(names: list[str], line: int) -> None:
    if nul := [name for name in names if "\0" in name]:
        raise FileRefused(f"line {line}: expected names of columns, found a NUL byte in {nul[0]!r}")
    if "" in names:
        raise FileRefused(f"line {line}: expected a name for each column, found none for column {names.index('') + 1}")
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise FileRefused(f"line {line}: expected different names of columns, found {twice[0]!r} twice")

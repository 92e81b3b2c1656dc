"""Parts of text files that end with a row, with the numbers of their lines. A part grows until it has a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from namespace_server.cli.files.refusals import FileRefused

CHUNK_BYTES: Final = 8 << 20
LONGEST_ROW: Final = 1 << 30
"""Bytes. Arrow counts the bytes of the texts of a chunk with 31 bits."""
_QUOTE: Final = ord('"')
_LINE_ENDS: Final = (ord("\n"), ord("\r"))
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


class ByteReader(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole rows of a file. `line` is the number of the first line; `lines` are those of all rows if they are known."""

    data: bytes
    line: int
    lines: Sequence[int] = ()

    def line_at(self, offset: int) -> int:
        """The number of the line of a byte."""
        return self.line + count_lines(self.data[:offset])


def count_lines(data: bytes) -> int:
    """The line ends in bytes: a line feed, a carriage return, or both as one."""
    returns = data.count(b"\r")
    return data.count(b"\n") + (returns - data.count(b"\r\n") if returns else 0)


def chunks(stream: ByteReader, last_end: Callable[[Chunk], int], line: int = 1) -> Iterator[Chunk]:
    """The parts of a stream. `last_end` gives the end of the last whole row of a part, 0 if it has none.

    What is left at the end is a part of its own. Raises `FileRefused` for a row of more than `LONGEST_ROW`.
    """
    rest, size = b"", CHUNK_BYTES
    while block := stream.read(size):
        data = rest + block
        end = last_end(Chunk(data, line))
        if end:
            yield Chunk(data[:end], line)
            line += count_lines(data[:end])
        elif len(data) > LONGEST_ROW:
            raise FileRefused(f"line {line}: expected a row of at most {LONGEST_ROW:,} bytes, found a longer one")
        rest, size = data[end:], CHUNK_BYTES if end else len(data)
    if rest:
        yield Chunk(rest, line)


def last_line_end(chunk: Chunk) -> int:
    """The end of the last line, as an offset."""
    return chunk.data.rfind(b"\n") + 1


def last_row_end(chunk: Chunk, delimiter: str) -> int:
    """The end of the last row of CSV, as an offset: a line end that is not between quotes."""
    data = chunk.data
    quotes = quotes_of(data, delimiter)
    for mark in (b"\n", b"\r"):
        place = data.rfind(mark, 0, len(data) - (mark == b"\r"))  # what follows a last \r may be \n
        while place >= 0:
            before = int(np.searchsorted(quotes, place))
            if before % 2 == 0:
                return place + 1
            place = data.rfind(mark, 0, int(quotes[before - 1]))
    return 0


def quotes_of(data: bytes, delimiter: str) -> npt.NDArray[np.int64]:
    """The places of the quotes that begin and end cells, by turns, from the begin of a row on.

    A quote counts at the begin of a cell, and in one that begins so; a doubled one there is both an end and a begin.
    """
    octets = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(octets == _QUOTE)
    begins = quotes[::2]
    before = octets[begins[begins > 0] - 1]
    if np.isin(before, (ord(delimiter), _QUOTE, *_LINE_ENDS)).all():
        doubled = before == _QUOTE
        if not doubled.any() or np.isin(begins[begins > 0][doubled] - 1, quotes[1::2]).all():
            return quotes
    return np.fromiter(_quotes_one_by_one(data, delimiter), np.int64)


def _quotes_one_by_one(data: bytes, delimiter: str) -> Iterator[int]:
    begins_cell = {ord(delimiter), *_LINE_ENDS}
    place = data.find(b'"')
    while place >= 0:
        if place and data[place - 1] not in begins_cell:
            place = data.find(b'"', place + 1)
            continue
        yield place
        place = data.find(b'"', place + 1)
        while place >= 0 and data[place + 1 : place + 2] == b'"':
            place = data.find(b'"', place + 2)
        if place >= 0:
            yield place
            place = data.find(b'"', place + 1)


def check_quotes(chunk: Chunk, delimiter: str) -> None:
    """Raise `FileRefused` for a quote that no other one ends, and for text between such an end and the next cell."""
    quotes = quotes_of(chunk.data, delimiter)
    if len(quotes) % 2:
        line = chunk.line_at(int(quotes[-1]))
        raise FileRefused(f"line {line}: expected a quote that ends the cell, found the end of the file")
    octets = np.frombuffer(chunk.data, np.uint8)
    ends = quotes[1::2]
    ends = ends[ends + 1 < len(octets)]
    wrong = ends[~np.isin(octets[ends + 1], (ord(delimiter), _QUOTE, *_LINE_ENDS))]
    if len(wrong):
        found = chr(octets[int(wrong[0]) + 1])
        raise FileRefused(
            f"line {chunk.line_at(int(wrong[0]))}: expected {delimiter!r} or the end of the line after a quote that "
            f"ends a cell, found {found!r}; a quote in a cell is written twice"
        )


def rows_of(chunk: Chunk, delimiter: str, *, blank: bool) -> Iterator[tuple[int, bytes]]:
    """The places and bytes of the rows of CSV, one after another; empty lines too if these are rows (`blank`)."""
    data = chunk.data
    quotes = quotes_of(data, delimiter)
    start = 0
    for found in _LINE_END.finditer(data):
        if np.searchsorted(quotes, found.start()) % 2:
            continue
        if blank or found.start() > start:
            yield start, data[start : found.start()]
        start = found.end()
    if start < len(data):
        yield start, data[start:]

"""Rows of JSON one after another: lines, objects over several lines, or one array of objects."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any, Final

import numpy as np

from namespace_server.cli.files.chunks import CHUNK_BYTES, LONGEST_ROW, Chunk, chunks, last_line_end
from namespace_server.cli.files.dialects import MARK, check_is_utf8, not_utf8
from namespace_server.cli.files.refusals import FileRefused
from table_data.values.json_columns import Literal

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_OTHER_ROW: Final = re.compile(rb"(?m)^[ \t\r]*[^{ \t\r\n]")
_NULL_ROW: Final = re.compile(rb"\}[ \t\r\n]*null")
_LINE_FEEDS: Final = re.compile(r"[\r\n]+")
_NEAR_END: Final = 16
"""Characters before the end at which the decoder finds that a value goes on."""


def different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises `ValueError` for a key twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} twice in an object")
    return found


_DECODER: Final = json.JSONDecoder(
    parse_float=Literal, parse_int=Literal, parse_constant=Literal, object_pairs_hook=different_keys
)
_SCANNER: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)


def row_chunks(stream: IO[bytes]) -> Iterator[Chunk]:
    """The rows of a stream as chunks with a row a line. Raises `FileRefused`."""
    head = stream.read(CHUNK_BYTES)
    check_is_utf8(head)
    head = head.removeprefix(MARK)
    rest = _Continued(head, stream)
    found = _chunks_of_values(rest) if _goes_over_lines(head) else chunks(rest, last_line_end)
    for chunk in found:
        if not chunk.data.isascii():
            try:
                chunk.data.decode()
            except UnicodeDecodeError as error:
                raise FileRefused(not_utf8(chunk.data, error, chunk.line)) from None
        yield chunk


def parsed_rows(chunk: Chunk) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a chunk with their lines. Numbers are `Literal`. Raises `FileRefused`."""
    row = 0
    for number, data in enumerate(chunk.data.splitlines()):
        if not data.strip():
            continue
        line = chunk.lines[row] if chunk.lines else chunk.line + number
        row += 1
        text = data.decode()
        place = _after_space(text, 0)
        while place < len(text):  # some programs write several objects in a line
            found, end = _decoded(text, place, line)
            if not isinstance(found, dict):
                raise FileRefused(f"line {line}: expected a JSON object, found {text[place : place + 40]!r}")
            yield line, found
            place = _after_space(text, end)


def holds_other_rows(data: bytes) -> bool:
    """Whether a chunk may have a row that is no object, for parsers that take null for one."""
    octets = np.frombuffer(data, np.uint8)
    begins = octets[np.flatnonzero(octets[:-1] == ord("\n")) + 1]
    if not (data.startswith(b"{") and (begins == ord("{")).all()) and _OTHER_ROW.search(data):
        return True
    return b"null" in data and _NULL_ROW.search(data) is not None


def parsed(text: str, line: int) -> Any:
    """A value of JSON, whose numbers are `Literal`. Raises `FileRefused`."""
    found, end = _decoded(text, _after_space(text, 0), line)
    if text[end:].strip():
        raise FileRefused(f"line {line}: expected JSON, found {text[end : end + 20]!r} after it")
    return found


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _decoded(text: str, place: int, line: int) -> tuple[Any, int]:
    """The value at a place, and where it ends. Raises `FileRefused`."""
    try:
        return _DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        raise FileRefused(
            f"line {line}: expected JSON, found {text[error.pos : error.pos + 20]!r} at character {error.pos + 1} "
            f"({error.msg})"
        ) from None
    except ValueError as error:
        raise FileRefused(f"line {line}: expected JSON, found {error}") from None
    except RecursionError:
        raise FileRefused(f"line {line}: expected fewer levels of lists and objects") from None


class _Continued:
    """A stream with bytes before it."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head, self._stream = head, stream

    def read(self, size: int) -> bytes:
        head, self._head = self._head, b""
        return head or self._stream.read(size)


def _goes_over_lines(head: bytes) -> bool:
    """Whether the first value is an array, or an object that is not on one line."""
    start = head.lstrip()
    if start.startswith(b"["):
        return True
    first, feed, _ = start.partition(b"\n")
    if not start.startswith(b"{") or not feed:
        return False
    try:
        _SCANNER.decode(first.decode(errors="replace"))
    except json.JSONDecodeError as error:
        return error.pos >= len(first.rstrip()) - 1
    except (ValueError, RecursionError):
        return False
    return False


def _chunks_of_values(stream: Any) -> Iterator[Chunk]:
    """The objects of an array, or objects over several lines, as chunks with an object a line."""
    rows: list[bytes] = []
    lines: list[int] = []
    size = 0
    for line, text in _values(stream):
        rows.append(_LINE_FEEDS.sub(" ", text).encode())
        lines.append(line)
        size += len(rows[-1])
        if size >= CHUNK_BYTES:
            yield Chunk(b"\n".join(rows), lines[0], lines)
            rows, lines, size = [], [], 0
    if rows:
        yield Chunk(b"\n".join(rows), lines[0], lines)


def _values(stream: Any) -> Iterator[tuple[int, str]]:
    reader = _TextWindow(stream)
    is_array = reader.next() == "["
    if is_array:
        reader.place += 1
        if reader.next() == "]":
            reader.place += 1
            reader.expect_end()
            return
    while reader.next():
        yield reader.line(), reader.value()
        if not is_array:
            continue
        mark = reader.next()
        if mark not in {",", "]"}:
            raise FileRefused(
                f"line {reader.line()}: expected , or ] after a value of the array, found {mark or 'the end'!r}"
            )
        reader.place += 1
        if mark == "]":
            reader.expect_end()
            return
    if is_array:
        raise FileRefused(f"line {reader.line()}: expected ] at the end of the array, found the end of the file")


class _TextWindow:
    """A part of a text, which moves on."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._line = 1
        self._counted = 0
        self.place = 0

    def line(self) -> int:
        self._line += self._text.count("\n", self._counted, self.place)
        self._counted = self.place
        return self._line

    def next(self) -> str:
        """The next character that is not a space, from which on the text is read; empty at the end."""
        while True:
            self.place = _after_space(self._text, self.place)
            if self.place < len(self._text):
                return self._text[self.place]
            if not self._more():
                return ""

    def value(self) -> str:
        while True:
            try:
                _, end = _SCANNER.raw_decode(self._text, self.place)
            except json.JSONDecodeError as error:
                is_cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _NEAR_END
                if is_cut and self._more():
                    continue
                line = self.line() + self._text.count("\n", self.place, error.pos)
                raise FileRefused(
                    f"line {line}: expected JSON, found {self._text[error.pos : error.pos + 20]!r} ({error.msg})"
                ) from None
            except RecursionError:
                raise FileRefused(f"line {self.line()}: expected fewer levels of lists and objects") from None
            text = self._text[self.place : end]
            self.place = end
            return text

    def expect_end(self) -> None:
        if mark := self.next():
            raise FileRefused(f"line {self.line()}: expected the end of the file after the array, found {mark!r}")

    def _more(self) -> bool:
        data = self._stream.read(max(CHUNK_BYTES, len(self._text) - self.place))
        line = self.line()
        try:
            more = self._decode(data, not data)
        except UnicodeDecodeError as error:
            place = line + self._text.count("\n", self.place) + data.count(b"\n", 0, error.start)
            raise FileRefused(
                f"line {place}: expected UTF-8, found the byte 0x{error.object[error.start]:02x}"
            ) from None
        if len(self._text) - self.place > LONGEST_ROW:
            raise FileRefused(
                f"line {line}: expected a value of at most {LONGEST_ROW:,} characters, found a longer one"
            )
        self._text = self._text[self.place :] + more
        self.place = self._counted = 0
        return bool(data)

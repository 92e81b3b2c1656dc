"""The lines of a directory, newest first, in pages.

The files of several processes are merged by the times of their lines. A line that is torn, as the last one of a process
that was killed, is counted and passed over.
"""

from __future__ import annotations

import base64
import binascii
import heapq
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from namespace_server.attempts import AttemptPage, AttemptQuery
from namespace_server.observability.audit.files import NAMES
from namespace_server.observability.audit.lines import parse_line, time_in

_BLOCK: Final = 64 << 10
_MOST_LINES: Final = 50_000
"""Lines that are looked at for one page."""


class _Key(NamedTuple):
    """The place of a line among all of a directory: by time, file and offset."""

    time: str
    file: str
    offset: int


class DirectoryReader:
    """Reads what processes have written to a directory. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def page(self, query: AttemptQuery) -> AttemptPage:
        """See `RefusedAttemptLog.read`."""
        before = None if query.token is None else _parse_token(query.token)
        unreadable: list[str] = []
        files = sorted(self._directory.glob(NAMES))
        lines = heapq.merge(*(_lines_of(path, before, unreadable) for path in files), reverse=True)
        found: list[Mapping[str, Any]] = []
        last: _Key | None = None
        for looked, (key, line) in enumerate(lines):
            if len(found) >= query.limit or looked >= _MOST_LINES:
                return AttemptPage(found, None if last is None else _token(last), len(unreadable))
            last = key
            attempt = parse_line(line)
            if attempt is None:
                unreadable.append(key.file)
            elif _is_wanted(attempt, query):
                found.append(attempt)
        return AttemptPage(found, None, len(unreadable))


def _is_wanted(attempt: Mapping[str, Any], query: AttemptQuery) -> bool:
    if query.principal is not None and attempt.get("principal") != query.principal:
        return False
    if query.decision is not None and attempt.get("decision") != query.decision:
        return False
    return query.id is None or any(_is_below(each, query.id) for each in _named(attempt))


def _named(attempt: Mapping[str, Any]) -> Iterator[object]:
    for group in ("objects", "authorizations", "failures"):
        for each in attempt.get(group) or ():
            yield each.get("id") if isinstance(each, dict) else None


def _is_below(found: object, wanted: tuple[str, ...]) -> bool:
    return isinstance(found, list) and tuple(found[: len(wanted)]) == wanted


def _lines_of(path: Path, before: _Key | None, unreadable: list[str]) -> Iterator[tuple[_Key, bytes]]:
    """The lines of a file that are older than `before`, the last one first."""
    if before is not None and _begins_after(path, before.time):
        return
    for offset, line in _backwards(path):
        time = time_in(line)
        if time is None:
            if before is None:
                unreadable.append(path.name)
            continue
        key = _Key(time, path.name, offset)
        if before is None or key < before:
            yield key, line


def _begins_after(path: Path, time: str) -> bool:
    try:
        with path.open("rb") as file:
            first = time_in(file.readline(_BLOCK))
    except OSError:  # removed meanwhile
        return True
    return first is not None and first > time


def _backwards(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their offsets, the last one first. What has no line break yet is left out."""
    try:
        position = path.stat().st_size
    except OSError:  # removed meanwhile
        return
    rest, is_whole = b"", False
    while position:
        begin = max(0, position - _BLOCK)
        try:
            with path.open("rb") as file:
                file.seek(begin)
                data = file.read(position - begin) + rest
        except OSError:
            return
        position = begin
        if not is_whole:
            end = data.rfind(b"\n") + 1
            rest, is_whole = data, end > 0
            if not is_whole:
                continue
            data = data[:end]
        offset = position + len(data)
        first, *lines = data.split(b"\n")[:-1]
        for line in reversed(lines):
            offset -= len(line) + 1
            yield offset, line
        rest = first + b"\n"  # of a line that may begin before
    if is_whole:
        yield 0, rest[:-1]


def _token(key: _Key) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(tuple(key))).decode()


def _parse_token(text: str) -> _Key:
    try:
        time, file, offset = orjson.loads(base64.urlsafe_b64decode(text))
    except (binascii.Error, ValueError, TypeError):
        raise ValueError("page_token: expected one of an earlier page") from None
    if not (isinstance(time, str) and isinstance(file, str) and type(offset) is int):
        raise ValueError("page_token: expected one of an earlier page")
    return _Key(time, file, offset)

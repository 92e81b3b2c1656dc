"""A directory of lines.

Each process appends to files of its own, so that servers which share a directory, also on a network file system that
does not append atomically, never write into one file. A file is opened for each write, and found again by its name: one
that was moved or removed by others is followed by a new one. In a file times do not go back: where the clock did, the
next file begins. A file has at most so many bytes, and the lines of one day (UTC).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)

NAMES: Final = "refused-*.jsonl"
FILE_BYTES: Final = 16 << 20
_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_CERTAIN: Final = 3600.0
"""Seconds for which a file has to be too old before it is removed: the clock may be wrong for a while."""
_DAY: Final = len("2026-01-31")


class DirectoryFull(OSError):
    """The lines of a directory have as many bytes as they may have."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The time in seconds since the epoch, and a time that never goes back."""

    wall: Callable[[], float] = time.time
    elapsed: Callable[[], float] = time.monotonic


class LineFiles:
    """The files of one process in a directory that several may share. Belongs to one thread.

    Args:
        directory: where they are; made with mode 700 if it is not there.
        process: a name that no other process has.
        keep: how long lines are kept. What is older goes, by the file.
        most: bytes that all files of the directory may have.
    """

    def __init__(self, directory: Path, process: str, keep: timedelta, most: int, clocks: Clocks | None = None) -> None:
        self._directory = directory
        self._process = process
        self._keep = keep.total_seconds()
        self._most = most
        self._clocks = clocks or Clocks()
        self._number = 0
        self._current: Path | None = None
        self._size = 0
        self._newest = ""
        self._is_whole = True
        self._others = 0
        self._too_old: dict[str, float] = {}

    def make(self) -> None:
        """Make the directory, and see that files can be made in it. Raises `OSError`."""
        self._directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        if not os.access(self._directory, os.W_OK | os.X_OK):
            raise PermissionError(13, os.strerror(13), str(self._directory))

    def append(self, data: bytes, first: str, last: str) -> int:
        """Append lines, and make them durable. How many bytes of them were taken: the rest is appended next.

        `first` and `last` are the times of the first and the last line. Raises `OSError`: they are to be written again.
        """
        if self._others + self._size + len(data) > self._most:
            raise DirectoryFull(f"{self._directory}: its files have the {self._most} bytes that they may have")
        descriptor = self._open(first, len(data))
        try:
            taken = os.write(descriptor, data)
            self._size += taken
            self._is_whole = taken == len(data)
            self._newest = last
            if self._is_whole:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        return taken

    def tidy(self) -> None:
        """Remove what is too old, and count the bytes of the files. Raises `OSError`."""
        now, elapsed = self._clocks.wall(), self._clocks.elapsed()
        others, too_old = 0, {}
        for path in sorted(self._directory.glob(NAMES)):
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            if path == self._current:
                self._size = found.st_size
                continue
            others += found.st_size
            if now - found.st_mtime > self._keep:
                too_old[path.name] = self._too_old.get(path.name, elapsed)
                if elapsed - too_old[path.name] >= _CERTAIN:
                    path.unlink(missing_ok=True)
                    others -= found.st_size
                    _log.info("%s: removed, its last line is older than %g days", path, self._keep / 86_400)
        self._others, self._too_old = others, too_old

    def _open(self, first: str, size: int) -> int:
        """The descriptor of the current file, or of a new one where a line may not be added to that."""
        if self._current is not None and (not self._is_whole or self._continues(first, size)):
            try:
                return os.open(self._current, _APPEND)
            except FileNotFoundError:
                pass
        self._directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        stamp = first[:19].replace("-", "").replace(":", "")
        self._number += 1
        path = self._directory / f"refused-{stamp}-{self._process}-{self._number:06d}.jsonl"
        descriptor = os.open(path, _APPEND | os.O_CREAT | os.O_EXCL, _MODE)
        self._others += self._size
        self._current, self._size = path, 0
        return descriptor

    def _continues(self, first: str, size: int) -> bool:
        is_later = first >= self._newest and first[:_DAY] == self._newest[:_DAY]
        return is_later and self._size + size <= FILE_BYTES

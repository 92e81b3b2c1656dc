"""Syncs files, and the directories that hold their names, to disk by fsync."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import NamedTuple

from lance_core.storage.file_bytes import open_regular
from lance_core.storage.overlap import Overlap

_SETTLED_NS = 1_000_000_000
_REMEMBERED = 32_768


class _State(NamedTuple):
    inode: int
    modified: int
    changed: int


class Durability:
    """Runs fsync below one root directory, without repeating it for unchanged directories.

    A directory is skipped only if its inode, mtime and ctime are those before its last fsync, and were at least one
    second old then: file times advance in ticks, and two changes may get the same time.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._synced: dict[str, _State] = {}
        self._overlap = Overlap(8, "fsync")

    def sync_way(self, directory: str) -> None:
        """Sync `directory` and every directory above it, up to the root."""
        for step in self._way(directory):
            self._sync_directory(step)

    def sync_files(self, files: Iterable[str]) -> None:
        """Sync files and all directories above them, up to the root: each directory once, in parallel."""
        wanted = dict.fromkeys(files)
        directories: dict[str, None] = {}
        for file in wanted:
            directory = os.path.dirname(file)
            if directory not in directories:
                directories.update(dict.fromkeys(self._way(directory)))
        changed = [directory for directory in directories if self._synced.get(directory) != _state_of(directory)]
        self._overlap.map(self._sync_one, [(file, False) for file in wanted] + [(path, True) for path in changed])

    def close(self) -> None:
        """Stop the threads."""
        self._overlap.close()

    def _sync_one(self, item: tuple[str, bool]) -> None:
        path, is_directory = item
        if is_directory:
            self._sync_directory(path)
        else:
            sync_file(path)

    def _way(self, directory: str) -> list[str]:
        way = [directory]
        while len(directory) > len(self._root):
            directory = os.path.dirname(directory)
            way.append(directory)
        return way

    def _sync_directory(self, directory: str) -> None:
        state = _state_of(directory)
        if self._synced.get(directory) == state:
            return
        sync_directory(directory)
        if time.time_ns() - state.changed > _SETTLED_NS:
            if len(self._synced) >= _REMEMBERED:
                self._synced.clear()
            self._synced[directory] = state


def sync_file(path: str) -> None:
    """Sync one file. Raises `OSError`; `FileNotFoundError` also for a path that is not a regular file."""
    descriptor, _ = open_regular(path)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: str) -> None:
    """Sync one directory. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _state_of(directory: str) -> _State:
    found = os.stat(directory)
    return _State(found.st_ino, found.st_mtime_ns, found.st_ctime_ns)

"""Making files and the directories that name them survive a power loss."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable
from typing import NamedTuple

from lance_core.storage.overlap import Overlap

_SETTLED_NS = 1_000_000_000
_REMEMBERED = 32_768


class _State(NamedTuple):
    inode: int
    modified: int
    changed: int


class Durability:
    """fsyncs below one root directory, and remembers which directories have not changed since.

    A directory is skipped only when inode, mtime and ctime are what they were before its last fsync, and that state was
    already a second old then: file times advance in ticks, and two changes may share one.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._synced: dict[str, _State] = {}
        self._overlap = Overlap(8, "fsync")

    def sync_way(self, directory: str) -> None:
        """Make every name on the way from the root to `directory`, and the names in it, durable."""
        for step in self._way(directory):
            self._sync_directory(step)

    def sync_files(self, files: Iterable[str]) -> None:
        """Make files and all names on the way to them durable, each directory once, in parallel when several."""
        wanted = dict.fromkeys(files)
        directories: dict[str, None] = {}
        for file in wanted:
            directory = os.path.dirname(file)
            if directory not in directories:
                directories.update(dict.fromkeys(self._way(directory)))
        changed = [directory for directory in directories if self._synced.get(directory) != _state_of(directory)]
        self._overlap.map(self._sync_one, [(file, False) for file in wanted] + [(path, True) for path in changed])

    def close(self) -> None:
        """End the threads."""
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
    """Make the bytes of one file durable. Raises `OSError`; a path that is not a file is as good as missing."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a file", path)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: str) -> None:
    """Make the names in one directory durable. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _state_of(directory: str) -> _State:
    found = os.stat(directory)
    return _State(found.st_ino, found.st_mtime_ns, found.st_ctime_ns)

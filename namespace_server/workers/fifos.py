"""Ends the waits of jobs for a FIFO that stands where a file of a table was.

Who opens a FIFO waits until another process opens it to write, without a bound, and pylance opens the files of a table
by their names. So where a job takes long, the directory of its table is looked through, and a FIFO in it is opened to
write and closed: what waits for it finds an empty file, which is damage like any other.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import unquote

_LONG: Final = 1.0
"""Seconds after which a job is a long one, and at least between two looks."""
_PAUSE: Final = 50
"""How many times as long as a look the pause after it is."""


class FifoWatch:
    """Looks after one job at a time, from a thread of its own."""

    def __init__(self) -> None:
        self._job: tuple[str] | None = None
        self._began = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def job(self, uri: str) -> Iterator[None]:
        """A job of the table at a URI is done within. One that is in no local directory needs no look."""
        directory = _local_path(uri)
        if directory is not None:
            self._job = (directory,)
            self._began.set()
        try:
            yield
        finally:
            self._job = None

    def _watch(self) -> None:
        while True:
            self._began.wait()
            self._began.clear()
            pause = _LONG
            while (job := self._job) is not None:
                time.sleep(pause)
                if self._job is job:
                    began = time.monotonic()
                    release_fifos(job[0])
                    pause = max(_LONG, _PAUSE * (time.monotonic() - began))


def release_fifos(directory: str) -> None:
    """Let those go on that wait for a FIFO below a directory, or for one to which a symbolic link below it leads."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                release_fifos(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # nothing waits for it, or a link leads nowhere
                    if stat.S_ISFIFO(entry.stat().st_mode):
                        os.close(os.open(entry.path, os.O_WRONLY | os.O_NONBLOCK))


def _local_path(uri: str) -> str | None:
    if uri.startswith("file://"):
        return unquote(uri.removeprefix("file://"))
    return None if "://" in uri else uri

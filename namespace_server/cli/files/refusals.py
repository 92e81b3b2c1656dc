"""Refusals of files, with name and line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class FileRefused(ValueError):
    """A file, or a value in it, that is not taken. The text names the file, the line where there is one, and why."""


@contextmanager
def refused_as(text: str) -> Iterator[None]:
    """Raise refusals of the file system in the block as `FileRefused`, with a text before the reason."""
    try:
        yield
    except OSError as error:
        raise FileRefused(f"{text}: {error.strerror or error}") from error

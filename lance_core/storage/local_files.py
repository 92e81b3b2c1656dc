"""Object metadata from directory entries."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import TypeVar

from lance_core.storage.port import ObjectMeta, SizeAndDate

T = TypeVar("T")
_name_of = itemgetter(0)


def e_tag_of(found: os.stat_result) -> str:
    """The e_tag as the Rust object_store crate builds it for local files, so that e_tags of stock clients are equal."""
    return f'"{found.st_ino:x}-{found.st_mtime_ns // 1000:x}-{found.st_size:x}"'


def meta_of(path: str, found: os.stat_result) -> ObjectMeta:
    """The metadata of the object in a file."""
    return ObjectMeta(path, found.st_size, e_tag_of(found), datetime.fromtimestamp(found.st_mtime, UTC))


def size_and_date_of(found: os.stat_result) -> SizeAndDate:
    """Size of a file, and the second in which it was written."""
    return SizeAndDate(found.st_size, int(found.st_mtime))


def sort_key(entry: os.DirEntry[str]) -> str:
    """The sort key of an entry: a directory sorts by its name and a slash, so that `a-b` comes before `a/b`.

    Text is ordered like its UTF-8 bytes, which is the order of listings.
    """
    return entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name


def in_order(entries: Sequence[tuple[str, T]]) -> Iterator[tuple[str, T]]:
    """The entries by name. The first is yielded before the others are sorted: often only the newest is needed."""
    if entries:
        yield min(entries, key=_name_of)
        yield from sorted(entries, key=_name_of)[1:]

"""Answers of the newest snapshot that are kept, because the same question will have the same answer."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from namespace_server.directory.snapshot import CatalogSnapshot

Body = dict[str, Any]

KEPT_BYTES: Final = 32 << 20
KEPT_ANSWERS: Final = 8192


class Answer:
    """A JSON-ready body with the wire's names, and the catalog version that it was answered at."""

    __slots__ = ("_json", "body", "catalog_version")

    def __init__(self, body: Body, catalog_version: int) -> None:
        self.body = body
        self.catalog_version = catalog_version
        self._json: bytes | None = None

    @property
    def json(self) -> bytes:
        """The body as JSON; made once."""
        if self._json is None:
            self._json = orjson.dumps(self.body)
        return self._json


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that is kept. `above` is a key: where anything stands under it, the answer holds no more (P5)."""

    answer: Answer
    above: str | None = None


@dataclass(slots=True)
class _Shelf:
    snapshot: CatalogSnapshot | None
    answers: dict[Hashable, Kept] = field(default_factory=dict)
    size: int = 0


class KeptAnswers:
    """Lasting answers (see `View`) of one snapshot at a time, by question. Thread-safe.

    Nothing here says that a snapshot is the newest: who asks has found that out before, on storage. A newer snapshot
    takes the place of the one before it with all its answers. `limit` bounds what is kept, in bytes of JSON, and
    `count` how many; when full, it begins anew.
    """

    def __init__(self, *, limit: int = KEPT_BYTES, count: int = KEPT_ANSWERS) -> None:
        self._limit = limit
        self._count = count
        self._lock = threading.Lock()
        self._shelf = _Shelf(None)

    def find(self, snapshot: CatalogSnapshot, question: Hashable) -> Kept | None:
        """What was answered to a question in this very snapshot."""
        shelf = self._shelf
        return shelf.answers.get(question) if shelf.snapshot is snapshot else None

    def keep(self, snapshot: CatalogSnapshot, question: Hashable, kept: Kept) -> None:
        """Keep an answer, unless it is too long or a newer snapshot has been answered from meanwhile."""
        size = len(kept.answer.json)
        if size > self._limit:
            return
        with self._lock:
            shelf = self._shelf
            if shelf.snapshot is not None and shelf.snapshot.version > snapshot.version:
                return
            full = shelf.size + size > self._limit or len(shelf.answers) >= self._count
            if shelf.snapshot is not snapshot or full:
                shelf = self._shelf = _Shelf(snapshot)
            shelf.answers[question] = kept
            shelf.size += size

"""Answers that are kept, because the same question will have the same answer."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, Final

import orjson

from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot

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

    def at(self, catalog_version: int) -> Answer:
        """The same answer at another catalog version."""
        other = Answer(self.body, catalog_version)
        other._json = self.json
        return other

    @property
    def json(self) -> bytes:
        """The body as JSON; made once."""
        if self._json is None:
            self._json = orjson.dumps(self.body)
        return self._json


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that is kept.

    `above` is a key: where anything stands under it, the answer holds no more (P5). If nothing was looked at but the
    `facts` of one `subject`, it is the answer in every snapshot that says the same of it.
    """

    answer: Answer
    above: str | None = None
    subject: ObjectId | None = None
    facts: tuple[object, ...] = ()

    def carried_to(self, snapshot: CatalogSnapshot) -> Kept | None:
        """The same for another snapshot; None where it may be answered otherwise."""
        if self.subject is None or not all(map(is_, self.facts, snapshot.facts(self.subject))):
            return None
        return replace(self, answer=self.answer.at(snapshot.version))


class KeptAnswers:
    """Lasting answers (see `View`) by question, each of the snapshot that it was last given from. Thread-safe.

    Nothing here says that a snapshot is the newest: who asks has found that out before, on storage. `limit` bounds what
    is kept, in bytes of JSON, and `count` how many answers; when full, it begins anew.
    """

    def __init__(self, *, limit: int = KEPT_BYTES, count: int = KEPT_ANSWERS) -> None:
        self._limit = limit
        self._count = count
        self._lock = threading.Lock()
        self._answers: dict[Hashable, Kept] = {}
        self._size = 0

    def find(self, snapshot: CatalogSnapshot, question: Hashable) -> Kept | None:
        """What is answered to a question in this snapshot, if that is known."""
        kept = self._answers.get(question)
        if kept is None or kept.answer.catalog_version == snapshot.version:
            return kept
        carried = kept.carried_to(snapshot)
        if carried is not None:
            self.keep(question, carried)
        return carried

    def keep(self, question: Hashable, kept: Kept) -> None:
        """Keep an answer, unless it is too long or one from a newer snapshot is there."""
        size = len(kept.answer.json)
        if size > self._limit:
            return
        with self._lock:
            before = self._answers.get(question)
            if before is not None:
                if before.answer.catalog_version > kept.answer.catalog_version:
                    return
                self._size -= len(before.answer.json)
            elif len(self._answers) >= self._count:
                self._begin_anew()
            if self._size + size > self._limit:
                self._begin_anew()
            self._answers[question] = kept
            self._size += size

    def _begin_anew(self) -> None:
        self._answers = {}
        self._size = 0

"""Short-lived credentials for tables: kept while they are valid for long enough, and renewed before they expire."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, Protocol

from lance_namespace.errors import ServiceUnavailableError

_log = logging.getLogger(__name__)

MAX_KEPT: Final = 10_000
"""Tables whose credentials are kept: some 20 MB."""
_STILL_USEFUL: Final = 120.0
"""Seconds of validity with which credentials are handed out while no new ones can be had."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Options of Lance that give access to one table, and the times of their issue and end, in seconds since 1970."""

    options: Mapping[str, str] = field(repr=False)
    issued_at: float
    expires_at: float


class Issuer(Protocol):
    """Makes credentials. Blocking; thread-safe."""

    def issue(self, path: str) -> Credentials:
        """New credentials for the objects below a path of the bucket. Raises ServiceUnavailableError (17)."""
        ...


class TemporaryCredentials:
    """The credentials of tables, by their paths. Thread-safe.

    New ones are issued when half of the time of the old ones is over. Calls for one path share one request. While none
    can be issued, valid ones are handed out. Of more than `limit` paths, those asked for least recently are forgotten.
    """

    def __init__(self, issuer: Issuer, *, limit: int = MAX_KEPT, clock: Callable[[], float] = time.time) -> None:
        self._issuer = issuer
        self._limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Credentials] = OrderedDict()
        self._under_way: dict[str, Future[Credentials]] = {}

    def get(self, path: str) -> Credentials:
        """Credentials for a path. Raises ServiceUnavailableError (17)."""
        with self._lock:
            found = self._kept.get(path)
            if found is not None and self._clock() < (found.issued_at + found.expires_at) / 2:
                self._kept.move_to_end(path)
                return found
            pending = self._under_way.get(path)
            if pending is None:
                mine: Future[Credentials] = Future()
                self._under_way[path] = mine
        if pending is not None:
            return pending.result()
        try:
            issued = self._issue(path, found)
        except BaseException as error:
            self._finish(path, None)
            mine.set_exception(error)
            raise
        self._finish(path, issued)
        mine.set_result(issued)
        return issued

    def _issue(self, path: str, old: Credentials | None) -> Credentials:
        try:
            return self._issuer.issue(path)
        except ServiceUnavailableError as error:
            if old is None or self._clock() + _STILL_USEFUL > old.expires_at:
                raise
            _log.warning("credentials are not renewed, the old ones are handed out: %s", error)
            return old

    def _finish(self, path: str, issued: Credentials | None) -> None:
        with self._lock:
            del self._under_way[path]
            if issued is not None:
                self._kept[path] = issued
                self._kept.move_to_end(path)
                if len(self._kept) > self._limit:
                    self._kept.popitem(last=False)

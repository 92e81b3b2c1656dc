"""Servers that share a root take turns.

The server that won a slot knows the newest version at once, and can claim the next slot before the others have read
that version: without turns it would win nearly always, and batches of the others would wait for seconds. A server that
loses again and again asks for a turn, by an object that the winner finds. Turns decide about nothing but time: the
compare-and-set on `__manifest` stays the only authority.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Final
from uuid import uuid4

from lance_core.errors import StorageError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.root_layout import TURN_REQUESTS

logger = logging.getLogger(__name__)

_PATIENCE: Final = 2
"""How many times as long as its own last flip took a server waits for the flip of another one."""
_LOOKS: Final = 16
"""How often it looks meanwhile, at most."""
_ASKED_AGAIN: Final = 2.0
"""Seconds after which it asks once more, if it still loses."""
_MOST: Final = 16
"""So many others are waited for, at most: names that no server made have no more weight."""
_INTERVAL: Final = 0.5
"""Seconds between two looks of a busy server for such requests."""


class WriteFairness:
    """Lets another server flip between two flips of this one, while others are seen to. Used under the flip lock."""

    def __init__(self, store: ObjectStore, table: ManifestTable) -> None:
        self._store = store
        self._table = table
        self._own = 0
        self._seconds = 0.0
        self._shared = False
        self._has_lost = False
        self._request: str | None = None  # that of this server, which is there, or may be
        self._requested_at = 0.0
        self._requests: Collection[str] = ()  # those of others
        self._expired: Collection[str] = ()  # those that were granted, and are to be removed
        self._looked_at = time.monotonic()

    @property
    def are_taken(self) -> bool:
        """Whether other servers were seen to flip between flips of this one, or asked for a turn."""
        return self._shared

    def flipped(self, version: int, seconds: float) -> None:
        """Note a flip of this process: the version that it made, and how long writing and committing it took."""
        if self._own and version != self._own + 1:
            self._shared = True
        self._own, self._seconds, self._has_lost = version, seconds, False

    def lost(self, versions: int = 1) -> None:
        """Note that an attempt of this process was overtaken by so many versions of others, if by any."""
        self._has_lost = self._has_lost or versions > 0

    def requests(self) -> list[Callable[[], None]]:
        """The requests to make beside writing the next attempt; none of them raises.

        A server that loses asks for a turn, and once it has flipped it withdraws that. One that flips looks from time
        to time whether others ask, and removes a request that it granted in vain: a server that is there asks again.
        """
        now = time.monotonic()
        calls: list[Callable[[], None]] = [partial(self._remove, name) for name in self._expired]
        self._expired = ()
        if self._has_lost:
            if self._request is None or now - self._requested_at >= _ASKED_AGAIN:
                if self._request is not None:
                    calls.append(partial(self._remove, self._request))
                self._request, self._requested_at = str(uuid4()), now
                calls.append(partial(self._ask, self._request))
        elif self._request is not None:
            calls.append(partial(self._remove, self._request))
            self._request = None
        elif self._own == self._table.current.version and now - self._looked_at >= _INTERVAL:
            self._looked_at = now
            calls.append(self._look)
        return calls

    def wait(self) -> None:
        """Wait for a flip of each other server, if this one made the last flip and another the one before, or asks.

        Returns when they are seen, or when none came for twice the time that the last flip of this server took. If none
        came at all, the others are taken to be idle, until one of them flips again, or asks again. So they are if they
        handed changes to this server since its last flip. Raises as `ManifestTable.refresh` does.
        """
        if not self._shared or self._table.current.version != self._own:
            return
        seen, until = self._own, time.monotonic() + _PATIENCE * self._seconds
        while (version := self._table.refresh().version) < self._own + self._others():
            now = time.monotonic()
            if version > seen:
                seen, until = version, now + _PATIENCE * self._seconds
            elif now >= until or self._table.peers.hand_over_since_flip:
                if version == self._own:
                    self._shared = False
                    self._expired, self._requests = self._requests, ()
                return
            time.sleep(self._seconds / _LOOKS)

    def _others(self) -> int:
        """How many servers are to flip before this one does again: those that flipped lately, or ask."""
        return min(max(1, len(self._table.peers.lately()), len(self._requests)), _MOST)

    def _ask(self, name: str) -> None:
        try:
            self._store.put(f"{TURN_REQUESTS}/{name}", b"", durable=False)
        except StorageError as error:
            logger.warning("a turn cannot be asked for: %s", error)

    def _remove(self, name: str) -> None:
        try:
            self._store.delete(f"{TURN_REQUESTS}/{name}")
        except StorageError as error:
            logger.warning("a request for a turn is left: %s", error)

    def _look(self) -> None:
        try:
            self._requests = self._store.names(TURN_REQUESTS)[:_MOST]
        except StorageError as error:
            logger.warning("requests for a turn cannot be listed: %s", error)
        else:
            self._shared = self._shared or bool(self._requests)

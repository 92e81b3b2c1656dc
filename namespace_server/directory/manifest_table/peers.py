"""Which servers committed to a root lately, by what their flips say of themselves, and which commits for all.

Servers that all commit take slots from each other, and each lost slot costs several requests to storage. So those that
know each other hand their changes to one of them, whose groups they join.

A flip names the process that made it and the URL at which that takes changes. That is a hint: the compare-and-set on
`__manifest` decides, whatever a hint says.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

PEER_PROPERTY: Final = "lance-namespace-server.committed-by"
LATELY: Final = 2.0
"""Seconds for which a server is taken to go on after a flip of it was seen."""
AVOIDED: Final = 5.0
"""Seconds for which a server that failed is not asked again."""

_MAX_LENGTH: Final = 512


@dataclass(frozen=True, slots=True)
class Peer:
    """A process that commits to the root: `instance` is a name that no other process has, `url` where it listens."""

    instance: str
    url: str

    def __str__(self) -> str:
        """As a flip tells it."""
        return f"{self.instance} {self.url}"

    @classmethod
    def parse(cls, told: str) -> Peer | None:
        """What a flip tells; None if that names no process."""
        instance, _, url = told.partition(" ")
        return cls(instance, url) if instance and url and len(told) <= _MAX_LENGTH and told.isprintable() else None


class Peers:
    """The processes that commit to the root, and which of them is to commit the changes of all. Thread-safe.

    A process counts for `LATELY` seconds after its last flip of batches. Each one sees the flips of all, its own too,
    so all choose alike: the one with the lowest URL.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._allowed: frozenset[str] = frozenset()
        self._seen: dict[Peer, float] = {}
        self._avoided: dict[str, float] = {}
        self._flipped = -math.inf
        self._was_handed = False
        self.this: Peer | None = None

    def join(self, this: Peer, allowed: frozenset[str]) -> None:
        """Tell others from now on who flips, and choose among the processes at the URLs that are `allowed`."""
        self.this = this
        self._allowed = allowed - {this.url}

    def flipped(self) -> None:
        """Note a flip of batches of this process."""
        self._flipped = self._clock()
        self._was_handed = False

    def was_handed(self) -> None:
        """Note that another process handed a change to this one."""
        self._was_handed = True

    @property
    def hand_over_since_flip(self) -> bool:
        """Whether another process handed a change to this one since its last flip of batches."""
        return self._was_handed

    def saw(self, peer: Peer) -> None:
        """Note that another process commits."""
        now = self._clock()
        with self._lock:
            self._seen = {known: at for known, at in self._seen.items() if now - at < LATELY}
            self._seen[peer] = now

    def saw_flip(self, told: str) -> None:
        """Note what a flip tells of the process that made it, if it tells that."""
        if (peer := Peer.parse(told)) is not None:
            self.saw(peer)

    def forget(self, peer: Peer) -> None:
        """Do not choose a process until it is seen to commit again."""
        with self._lock:
            self._seen.pop(peer, None)

    def avoid(self, peer: Peer) -> bool:
        """Do not choose what listens at the URL of a process for `AVOIDED` seconds. False if that is so already."""
        now = self._clock()
        with self._lock:
            self._seen.pop(peer, None)
            known = self._avoided.get(peer.url, now) > now
            self._avoided[peer.url] = now + AVOIDED
        return not known

    def lately(self) -> list[Peer]:
        """The other processes, in no particular order."""
        now = self._clock()
        with self._lock:
            return [peer for peer, at in self._seen.items() if now - at < LATELY]

    def committing(self) -> Peer | None:
        """The process that is to commit the changes of this one; None if that is this one itself."""
        this, now = self.this, self._clock()
        if this is None:
            return None
        able = [
            peer
            for peer in self.lately()
            if peer.url in self._allowed
            and self._avoided.get(peer.url, now) <= now
            and (peer.url < this.url or now - self._flipped >= LATELY)
        ]
        return min(able, key=lambda peer: peer.url, default=None)

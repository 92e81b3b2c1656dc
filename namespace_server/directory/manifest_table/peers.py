"""Which servers committed to a root lately, by what their flips say of themselves.

A flip names the process that made it and the URL at which that takes changes. That is a hint: the compare-and-set on
`__manifest` decides, whatever a hint says.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

PEER_PROPERTY: Final = "lance-namespace-server.committed-by"
LATELY: Final = 2.0
"""Seconds for which a server is taken to go on after a flip of it was seen."""

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
    """The processes whose flips were seen in the last `LATELY` seconds. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[Peer, float] = {}

    def saw(self, peer: Peer) -> None:
        """Note that a process commits."""
        now = self._clock()
        with self._lock:
            self._seen = {known: at for known, at in self._seen.items() if now - at < LATELY}
            self._seen[peer] = now

    def saw_flip(self, told: str) -> None:
        """Note what a flip tells of the process that made it, if it tells that."""
        if (peer := Peer.parse(told)) is not None:
            self.saw(peer)

    def forget(self, peer: Peer) -> None:
        """Take a process to be gone, until a flip of it is seen."""
        with self._lock:
            self._seen.pop(peer, None)

    def lately(self) -> list[Peer]:
        """The processes, in no particular order."""
        now = self._clock()
        with self._lock:
            return [peer for peer, at in self._seen.items() if now - at < LATELY]

"""The servers that committed to a root lately, by their flips, and the one that commits for all.

Servers that all commit take slots from each other, and each lost slot costs several requests to storage. So those that
share a secret hand their changes to one of them, whose groups they join. They find each other in the catalog.

A flip names the process that made it, the URL at which that takes changes, and a proof that it has the secret. That is
a hint: the compare-and-set on `__manifest` decides, whatever a hint says.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from namespace_server.directory.manifest_table.peer_secret import PeerSecret

PEER_PROPERTY: Final = "lance-namespace-server.committed-by"
LATELY: Final = 2.0
"""Seconds for which a server is taken to go on after a flip of it was seen."""
AVOIDED: Final = 5.0
"""Seconds for which a server that failed is not asked again."""
NO_URL: Final = "~"
"""In place of the URL of a process that takes no changes. Of all URLs the highest: such a process commits for none."""

_MAX_LENGTH: Final = 512
_MOST_NAMED: Final = 64

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Peer:
    """A process that commits to the root: `instance` is a name that no other process has, `url` where it listens."""

    instance: str
    url: str = NO_URL


def read_introduction(text: str) -> tuple[Peer, str] | None:
    """The process that a flip names, and its proof, which may be ''; None if it names none."""
    instance, _, rest = text.partition(" ")
    url, _, proof = rest.partition(" ")
    if not instance or not url or len(text) > _MAX_LENGTH or not text.isprintable():
        return None
    return Peer(instance, url), proof


class Peers:
    """The processes that commit to the root, and which of them is to commit the changes of all. Thread-safe.

    A process counts for `LATELY` seconds after its last flip of batches. Each one sees the flips of all, its own too,
    so all choose alike: the one with the lowest URL. Only one with a proof of the secret is chosen.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._secret: PeerSecret | None = None
        self._seen: dict[Peer, float] = {}
        self._proved: frozenset[Peer] = frozenset()
        self._named: set[str] = set()
        self._avoided: dict[str, float] = {}
        self._flipped = -math.inf
        self._was_handed = False
        self.this: Peer | None = None

    def join(self, this: Peer, secret: PeerSecret | None) -> None:
        """Introduce this process in its flips from now on. Without a secret no change is forwarded or taken."""
        self.this = this
        self._secret = secret

    def introduction(self, identity: str) -> str | None:
        """The introduction of this process in flips of the catalog with this identity; None if it did not join."""
        this, secret = self.this, self._secret
        if this is None:
            return None
        if secret is None or this.url == NO_URL:
            return f"{this.instance} {NO_URL}"
        return f"{this.instance} {this.url} {secret.proof(this.instance, this.url, identity)}"

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

    def saw(self, peer: Peer, *, proved: bool = True) -> None:
        """Note that another process commits, and whether it has the secret."""
        now = self._clock()
        with self._lock:
            self._seen = {known: at for known, at in self._seen.items() if now - at < LATELY}
            self._seen[peer] = now
            self._proved = self._proved & self._seen.keys() | ({peer} if proved else set())

    def saw_flip(self, text: str, identity: str) -> None:
        """Note the process that an introduction names, which a flip of the catalog with this identity has.

        A flip of this process is none of another one: a thread that reads may see it before its committer takes it. Nor
        is one of a process that had this address before.
        """
        found, this = read_introduction(text), self.this
        if found is None:
            return
        peer, proof = found
        if this is not None and (peer.instance == this.instance or peer.url == this.url != NO_URL):
            return
        proved = self._secret is not None and self._secret.is_proof(proof, peer.instance, peer.url, identity)
        self.saw(peer, proved=proved)
        if this is not None and peer.instance not in self._named and len(self._named) < _MOST_NAMED:
            self._named.add(peer.instance)
            _log.info(
                "another server commits to this root: %s at %s; %s",
                peer.instance,
                "an unknown address" if peer.url == NO_URL else peer.url,
                "one of them commits for both" if proved else "without a common peer_secret they take turns",
            )

    def forget(self, peer: Peer) -> None:
        """Do not choose a process until it is seen to commit again."""
        with self._lock:
            self._seen.pop(peer, None)

    def avoid(self, peer: Peer) -> bool:
        """Do not choose the process at this URL for `AVOIDED` seconds. False if that is so already."""
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

    def count(self) -> tuple[int, int]:
        """How many of the other processes have the secret of this one, and how many have not."""
        found = self.lately()
        proved = sum(peer in self._proved for peer in found)
        return proved, len(found) - proved

    def committing(self) -> Peer | None:
        """The process that is to commit the changes of this one; None if that is this one itself."""
        this, now = self.this, self._clock()
        if this is None:
            return None
        able = [
            peer
            for peer in self.lately()
            if peer in self._proved
            and peer.url != this.url
            and self._avoided.get(peer.url, now) <= now
            and (peer.url < this.url or now - self._flipped >= LATELY)
        ]
        return min(able, key=lambda peer: peer.url, default=None)

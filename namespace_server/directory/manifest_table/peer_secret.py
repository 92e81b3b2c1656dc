"""Proofs between the servers of a root, keyed by the secret that they share.

A catalog can be written by others than its servers. Only a server that has the secret can name an address there to
which changes go, with the credentials of their clients.
"""

from __future__ import annotations

import hmac
import platform
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from lance_core.own_machine import may_be_loopback

MIN_SECRET_LENGTH = 16
"""Characters that a secret has at least: proofs of it can be read where the catalog can, and be used to guess it."""


@lru_cache
def this_machine() -> str:
    """A text that is equal for two processes that reach each other at a loopback address, as far as it can be found."""
    found = [platform.node()]
    with suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        found.append(str(Path("/proc/self/ns/net").readlink()))
    return " ".join(found)


class PeerSecret:
    """Proofs of a secret, by HMAC with SHA-256. `machine` names this one, for addresses that others cannot reach."""

    def __init__(self, secret: str, machine: Callable[[], str] = this_machine) -> None:
        self._key = secret.encode()
        self._machine = machine

    def proof(self, instance: str, url: str, identity: str) -> str:
        """The proof that a process with this secret takes changes of the catalog with this identity at a URL.

        A loopback address is proved to processes of this machine only.
        """
        return self._digest("introduction", instance, url, identity, self._machine() if _may_be_local(url) else "")

    def is_proof(self, text: str, instance: str, url: str, identity: str) -> bool:
        """Whether `text` is such a proof, made on this machine if the URL is that of a loopback address."""
        return hmac.compare_digest(text.encode(), self.proof(instance, url, identity).encode())

    def response(self, instance: str, challenge: str) -> str:
        """The proof that this process has the secret now: the answer to a challenge, which is never used twice."""
        return self._digest("response", instance, challenge)

    def origin_proof(self, instance: str, text: str) -> str:
        """The proof that a process with this secret tells the process `instance` where a change came from."""
        return self._digest("origin", instance, text)

    def is_origin_proof(self, proof: str, instance: str, text: str) -> bool:
        """Whether `proof` is such a proof."""
        return hmac.compare_digest(proof.encode(), self.origin_proof(instance, text).encode())

    def _digest(self, *parts: str) -> str:
        return hmac.new(self._key, "\n".join(parts).encode(), "sha256").hexdigest()


def _may_be_local(url: str) -> bool:
    """Whether a URL can name another process on each machine; so does one that is none."""
    try:
        return may_be_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return True

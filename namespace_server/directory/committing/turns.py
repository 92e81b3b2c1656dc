"""Servers that share a root take turns.

The server that won a slot knows the newest version at once, and can claim the next slot before the others have read
that version: without turns it would win nearly always, and batches of the others would wait for seconds. Turns decide
about nothing but time: the compare-and-set on `__manifest` stays the only authority.
"""

from __future__ import annotations

import time
from typing import Final

from namespace_server.directory.manifest_table.table import ManifestTable

_PATIENCE: Final = 2
"""How many times as long as its own last flip took a server waits for the flip of another one."""
_LOOKS: Final = 16
"""How often it looks meanwhile, at most."""


class Turns:
    """Lets another server flip between two flips of this one, while others are seen to. Used under the flip lock."""

    def __init__(self, table: ManifestTable) -> None:
        self._table = table
        self._own = 0
        self._seconds = 0.0
        self._shared = False

    @property
    def are_taken(self) -> bool:
        """Whether other servers were seen to flip between flips of this one."""
        return self._shared

    def flipped(self, version: int, seconds: float) -> None:
        """Note a flip of this process: the version that it made, and how long writing and committing it took."""
        if self._own and version != self._own + 1:
            self._shared = True
        self._own, self._seconds = version, seconds

    def wait(self) -> None:
        """Wait for a flip of another server, if this one made the last flip and another one the flip before.

        Returns when that is seen, or after twice the time that the last flip of this server took: then the others are
        taken to be idle, until one of them flips again. So they are if they handed changes to this server since its
        last flip. Raises as `ManifestTable.refresh` does.
        """
        if not self._shared or self._table.current.version != self._own:
            return
        until = time.monotonic() + _PATIENCE * self._seconds
        while self._table.refresh().version == self._own:
            if time.monotonic() >= until or self._table.peers.hand_over_since_flip:
                self._shared = False
                return
            time.sleep(self._seconds / _LOOKS)

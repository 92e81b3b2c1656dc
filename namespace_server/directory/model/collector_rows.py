"""The rows of a catalog that say what may be removed from it: the collector's own, and pins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from namespace_server.directory.model.object_ids import RECORD_PREFIX

COLLECTOR_ID: Final = f"{RECORD_PREFIX}gc"
"""The object id of the collector's row."""
PIN_PREFIX: Final = f"{RECORD_PREFIX}pin$"
"""What the object ids of pins begin with."""
FIRST_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class CollectorEntry:
    """What the last fence decided (rules G1 to G6). A catalog without the row was never collected.

    `horizon` is in seconds since the epoch, by the store's clock: a file that was written before it, and that no kept
    version names, can not be committed any more. `oldest` is the lowest catalog version that is kept. Neither ever goes
    back. `run` is the uuid of the run that decided it, at `timestamp_ms` since the epoch. `settings` are those of the
    catalog that were set, by name. `grace` is the least time, in seconds, that a horizon was ever behind its fence.
    """

    horizon: int = 0
    oldest: int = FIRST_VERSION
    run: str = ""
    timestamp_ms: int = 0
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    grace: int = 0

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return COLLECTOR_ID


NEVER_COLLECTED: Final = CollectorEntry()


@dataclass(frozen=True, slots=True)
class PinEntry:
    """A catalog version that is kept with all rows and files, whatever the settings (G10).

    `name` is what it is called. It ends at the first fence after `until_ms`, in milliseconds since the epoch; never if
    that is 0. `timestamp_ms` is when it was set, by `principal`.
    """

    name: str
    version: int
    until_ms: int = 0
    reason: str | None = None
    principal: str | None = None
    timestamp_ms: int = 0

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return PIN_PREFIX + self.name

"""The rows of a catalog that say what may be removed from it: so far one, the collector's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from namespace_server.directory.model.object_ids import RECORD_PREFIX

COLLECTOR_ID: Final = f"{RECORD_PREFIX}gc"
"""The object id of the collector's row."""
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

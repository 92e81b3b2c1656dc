"""The rows of a catalog by which garbage collection decides: its own, pins, intents, and cursors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from namespace_server.directory.model.object_ids import RECORD_PREFIX

COLLECTOR_ID: Final = f"{RECORD_PREFIX}gc"
"""The object id of the collector's row."""
PIN_PREFIX: Final = f"{RECORD_PREFIX}pin$"
"""The prefix of the object ids of pins."""
INTENT_PREFIX: Final = f"{RECORD_PREFIX}intent$"
"""The prefix of the object ids of intents."""
CURSOR_PREFIX: Final = f"{RECORD_PREFIX}cursor$"
"""The prefix of the object ids of cursors."""
FIRST_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class CollectorEntry:
    """The decisions of the last run (rules G1 to G6). A catalog without the row was never collected.

    `horizon` is in seconds since the epoch, by the store's clock: a file that was written before it, and that no kept
    version names, can not be committed any more. `oldest` is the lowest catalog version that is kept. Neither ever goes
    back. `run` is the uuid of the run that decided it, at `timestamp_ms` since the epoch. `settings` are those of the
    catalog that were set, by name. `grace` is the least time, in seconds, between a run and its horizon, of all runs.
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

    `name` identifies it. It ends at the first run after `until_ms`, in milliseconds since the epoch; never if that
    is 0. `timestamp_ms` is when it was set, by `principal`. For `seconds` and `set_in` see `Lease`.
    """

    name: str
    version: int
    until_ms: int = 0
    reason: str | None = None
    principal: str | None = None
    timestamp_ms: int = 0
    seconds: int = 0
    set_in: int = 0

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return PIN_PREFIX + self.name


class IntendedChain(NamedTuple):
    """A chain of a table that a job writes or reads.

    A file at `location` that the store dates `since` or later, in seconds since the epoch, stays fresh. The versions of
    the branch (None is main) from `read_version` on are kept; 0: the job reads none.
    """

    location: str
    branch: str | None
    since: int
    read_version: int = 0


@dataclass(frozen=True, slots=True)
class IntentEntry:
    """A job that may commit later than a garbage collection allows (G11).

    `intent` is the uuid that the job chose. It ends by the job's batch, or at the first run after `until_ms`, in
    milliseconds since the epoch. `timestamp_ms` is when it was registered, by `principal`. For `seconds` and `set_in`
    see `Lease`.
    """

    intent: str
    chains: tuple[IntendedChain, ...]
    until_ms: int
    reason: str | None = None
    principal: str | None = None
    timestamp_ms: int = 0
    seconds: int = 0
    set_in: int = 0

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return INTENT_PREFIX + self.intent


@dataclass(frozen=True, slots=True)
class CursorEntry:
    """How far a consumer of events has come: it is done with all catalog versions up to `version`.

    The versions above stay in the history for it, within bounds (see `gc.cursors`). `timestamp_ms` is when it was moved
    there, since the epoch, by `principal`.
    """

    name: str
    version: int
    principal: str | None = None
    timestamp_ms: int = 0

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return CURSOR_PREFIX + self.name

    def is_expired(self, oldest: int) -> bool:
        """Whether the next version that it needs is below the oldest kept one: its consumer would miss some."""
        return self.version + 1 < oldest


OwnEntry = CollectorEntry | PinEntry | IntentEntry | CursorEntry
"""A row by which garbage collection decides."""

Lease = PinEntry | IntentEntry
"""A row that ends by a garbage collection run.

It was set, or renewed, for `seconds` by the catalog version `set_in`, and ends so much after the store's date of that
version: `until_ms` is what the clock of its writer said (G30). A run puts the time by the store in its place, and
`set_in` is 0 from then on. Releases that knew neither wrote 0 for both.
"""

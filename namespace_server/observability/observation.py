"""What a server reports of its work: as it happens, to an `Observer`, and as its state when it is asked for.

This module measures nothing and needs no library of metrics. `namespace_server.observability.metrics` does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeVar

from namespace_server.attempts import AttemptLogState

T = TypeVar("T")

Step = Literal["verify", "plan", "stage", "flip", "prove", "promote"]
"""A step on the way of a group of batches. Another process that wins has the steps from `plan` on taken again."""
BatchOutcome = Literal["committed", "rejected", "unknown", "failed"]
"""Of a batch. `failed`: nothing was done, because of the server or its storage and not because of the batch."""
FlipOutcome = Literal["committed", "lost", "superseded", "unknown", "failed"]
"""Of one commit step of the catalog's own dataset. `failed`: the store refused it."""

ForwardingOutcome = Literal["answered", "undecided", "unreachable"]
"""Of a change that was handed to another server. `undecided`: its answer said nothing about the change; `unreachable`:
there was no answer of the process that was asked. In both cases the change is committed here."""

GarbageReason = Literal[
    "unreferenced",
    "uncommitted",
    "of_uncommitted",
    "interrupted",
    "expired_version",
    "dropped_table",
    "catalog_version",
    "catalog_rows",
    "catalog_copy",
    "quarantined",
    "upload",
    "other",
]
"""Why a file was garbage. `other`: a reason of another release, whose plan a run finished."""

_NOTHING: Final = nullcontext()


def _ignore(_seconds: float) -> None:
    """Measure nothing."""


class GarbageCount(NamedTuple):
    """A number of files, and their bytes."""

    files: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class GcRun:
    """A garbage collection that a server started and saw to its end.

    Attributes:
        complete: Whether it dealt with all that it found; None if it failed.
        seconds: Its duration.
        removed: What it removed, by reason.
        young: The unreferenced files that were too young to be removed.
        left: The number of tables that it could not judge.
    """

    complete: bool | None
    seconds: float
    removed: Mapping[GarbageReason, GarbageCount] = field(default_factory=dict)
    young: GarbageCount = field(default_factory=GarbageCount)
    left: int = 0


class Observer:
    """Receives the events of one catalog, from any thread. This one ignores it; subclasses measure.

    No method raises, blocks, or learns names of tables or principals.
    """

    def storage_calls(self, kind: str, outcome: str) -> Callable[[float], None]:
        """The callback for the seconds of each call of the object store; see `lance_core.storage.wrappers.metered`."""
        del kind, outcome
        return _ignore

    def step(self, step: Step) -> AbstractContextManager[object]:
        """A context in which a step is taken for a group."""
        del step
        return _NOTHING

    def job(self, pool: str) -> AbstractContextManager[object]:
        """A context in which a worker process of a pool does a job, as its server sees it."""
        del pool
        return _NOTHING

    def group(self, batches: int) -> None:
        """So many batches are about to share a flip."""

    def flip(self, outcome: FlipOutcome, tries: int) -> None:
        """A commit step has ended, at this try of its group."""

    def batch(self, outcome: BatchOutcome, seconds: float) -> None:
        """A batch was decided, so many seconds after it was handed to the committer."""

    def conflict(self, operation: str, committed: str) -> None:
        """A batch was rejected because of a committed operation."""

    def forwarded(self, outcome: ForwardingOutcome, seconds: float) -> None:
        """A change was handed to another server, and this came of it after so many seconds."""

    def adopted(self, versions: int) -> None:
        """So many versions that were committed around the catalog are in it now."""

    def quarantined(self) -> None:
        """A file that was committed around the catalog was moved to quarantine."""

    def recommitted(self, *, there: bool) -> None:
        """A quarantined commit is in its table again; or it is not, and stays in quarantine with a report."""

    def garbage_collection(self, run: GcRun) -> None:
        """A garbage collection has ended."""


SILENT: Final = Observer()
"""Measures nothing."""


class LoggedRequest(NamedTuple):
    """One answered request.

    `route` is the path template, or the path where no route matched; `seconds` is the duration, `ended` the time of
    the end in seconds since the epoch. `client` is the address of the client, `key` the first characters of the SHA-256
    digest of a key that was refused. `code` and `error` are those of an answer that is an error; without the text where
    that may hold values of rows.
    """

    ended: float
    method: str
    route: str
    status: int
    seconds: float
    principal: str | None
    catalog_version: str | None
    request_id: str
    client: str | None = None
    key: str | None = None
    code: int | None = None
    error: str | None = None


class Progress(Protocol):
    """Receives the progress of long work on a catalog. Returns at once, and raises nothing."""

    def __call__(self, phase: str, done: int = 0, of: int = 0, unit: str = "tables") -> None:
        """`phase` is under way, and has dealt with `done` of so many; 0 of 0 where there is nothing to count."""
        ...


def no_progress(phase: str, done: int = 0, of: int = 0, unit: str = "tables") -> None:
    """A `Progress` that does nothing."""


@dataclass(frozen=True, slots=True)
class CacheState:
    """Hits and misses of a cache, and the bytes that it holds."""

    hits: int
    misses: int
    size: int


class HitCount:
    """Counts hits and misses of a cache. Thread-safe."""

    __slots__ = ("_counts", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0, 0]

    def add(self, *, hit: bool) -> None:
        """Count a hit, or a miss."""
        with self._lock:
            self._counts[hit] += 1

    def state(self, size: int) -> CacheState:
        """Hits and misses so far, for a cache that holds so many bytes."""
        misses, hits = self._counts
        return CacheState(hits, misses, size)


@dataclass(frozen=True, slots=True)
class CatalogFigures:
    """The newest catalog version that a process knows.

    Attributes:
        version: Its number; 0 before the first commit.
        committed_at: When it was committed, in seconds since the epoch; None before the first commit.
        age: Seconds since a listing of storage proved that it, or one that it continues, is the newest.
        clock_ahead: Seconds by which the machine's clock is ahead of the store's; None if this is not known.
        head_ahead: Seconds by which the time of that version is in the future.
        rows: The rows of the catalog's own dataset.
        entries: Namespaces, tables and records of batches, by these words.
        open_records: Batches whose versions are not all promoted, made durable and cleaned up after.
        unpromoted: Versions of these that are not known to have their canonical names.
        caches: By name.
        longest_call: Seconds since the storage call under way that began first; 0 if there is none.
        backed_up_at: When the last backup that is noted at the root began, in seconds since the epoch; None if there is
            none, or it is not known yet.
        cursors: How many cursors of consumers of events there are that are not expired, and that are.
        cursor_lag: How many catalog versions the one is behind that is furthest behind of those that are not expired.
        other_servers: How many other servers were seen to commit lately, that share the secret of this one, and others.
    """

    version: int
    committed_at: float | None
    age: float
    clock_ahead: float | None
    head_ahead: float
    rows: int
    entries: Mapping[str, int]
    open_records: int
    unpromoted: int
    caches: Mapping[str, CacheState]
    longest_call: float = 0.0
    backed_up_at: float | None = None
    other_servers: tuple[int, int] = (0, 0)
    cursors: tuple[int, int] = (0, 0)
    cursor_lag: int = 0


@dataclass(frozen=True, slots=True)
class PoolState:
    """The processes of a pool that are in a job, and those that wait for one; jobs that wait for a process.

    `lost` counts the processes that ended in a job since the start, or were ended. `held_back` are the jobs that wait
    because their principal holds its share of the processes.
    """

    busy: int
    free: int
    waiting: int
    lost: int
    held_back: int = 0


@dataclass(frozen=True, slots=True)
class JobState:
    """Runs of a job in the background since the start of the process. Times in seconds since the epoch.

    Attributes:
        runs: The runs that did something, with those that failed.
        failures: Those that failed.
        ended_at: When the last of them ended; None before the first.
        began_at: When the run that is under way began; None if there is none.
    """

    runs: int = 0
    failures: int = 0
    ended_at: float | None = None
    began_at: float | None = None


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of a server at one moment. `queued` are changes accepted and not yet answered.

    While it takes no changes it is `read_only`.

    `catalog` is None while no version of the catalog was read. `event_streams` are the streams of events and long polls
    that are open, `events_sent` the events that were sent since the start. `principals` are those that sent changes
    within the last minute, `held_back` the changes that wait because of what their principal has had already, and
    `over_limits` the requests that were refused since the start because of what their principal had under way, by
    setting. `attempts` are those that were refused.
    """

    catalog: CatalogFigures | None = None
    queued: int = 0
    queue_capacity: int = 0
    principals: int = 0
    held_back: int = 0
    over_limits: Mapping[str, int] = field(default_factory=dict)
    read_only: bool = False
    pools: Mapping[str, PoolState] = field(default_factory=dict)
    jobs: Mapping[str, JobState] = field(default_factory=dict)
    event_streams: int = 0
    events_sent: int = 0
    attempts: AttemptLogState = field(default_factory=AttemptLogState)

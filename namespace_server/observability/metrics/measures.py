"""Counts and times the work of one server."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Final, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from namespace_server.observability.metrics.distributions import Distributions, Observe
from namespace_server.observability.metrics.state import StateCollector
from namespace_server.observability.observation import (
    BatchOutcome,
    FlipOutcome,
    ForwardingOutcome,
    GarbageReason,
    GcRun,
    Observer,
    ServerState,
    Step,
)

PREFIX: Final = "lance_namespace_"
"""The prefix of the names of all metrics but those of the process."""
REQUEST_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
STEP_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
STORAGE_BUCKETS: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
GROUP_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64)
TRY_BUCKETS: Final = (1, 2, 3, 5, 10, 20)

disable_created_metrics()  # type: ignore[no-untyped-call] # this format has no place for them but a time series each


class ServerMetrics(Observer):
    """The metrics of a server since its start. Thread-safe.

    Labels are words of this project: operations, kinds, outcomes. None is made of what clients send.
    """

    content_type = CONTENT_TYPE_PLAIN_0_0_4
    """Of `exposition`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(support_collectors_without_names=True)
        ProcessCollector(registry=self.registry)
        self._state = StateCollector(PREFIX)
        self.registry.register(self._state)
        self._define_requests()
        self._define_commits()
        self._define_collections()
        self._requests: dict[tuple[str, int], Observe] = {}

    def _define_requests(self) -> None:
        self._request_seconds = self._histogram(
            "request_seconds",
            "Requests by operation and class of status, from the head of the request to the end of the answer.",
            ("operation", "status"),
            REQUEST_BUCKETS,
        )
        self._storage_seconds = self._histogram(
            "storage_seconds",
            "Calls of the object store by kind and outcome, with the retries within them; without those of workers.",
            ("kind", "outcome"),
            STORAGE_BUCKETS,
        )
        self._job_seconds = self._histogram(
            "job_seconds",
            "Jobs on rows by pool, from the hand-over to a worker to its answer.",
            ("pool",),
            REQUEST_BUCKETS,
        )
        self._refused_tokens = self._counter("refused_tokens", "Bearer tokens that were not valid.", ("reason",))
        build = self._gauge("build_info", "1, with the release of the server as its label.", ("version",))
        build.labels(version("lance-namespace-server")).set(1)

    def _define_commits(self) -> None:
        seconds = self._histogram(
            "batch_seconds",
            "Batches by outcome, from the hand-over to the committer to the verdict.",
            ("outcome",),
            REQUEST_BUCKETS,
        )
        self._batches = {outcome: seconds.of(outcome) for outcome in get_args(BatchOutcome)}
        self._conflicts = self._counter(
            "conflicts", "Batches rejected for a conflict: their operation, and the committed one.", _PAIR
        )
        self._group_batches = self._histogram(
            "group_batches", "Batches that shared a round of the commit loop.", (), GROUP_BUCKETS
        ).of()
        flips = self._counter("flips", "Commit steps of the catalog's own dataset by outcome.", ("outcome",))
        self._flips = {outcome: flips.labels(outcome) for outcome in get_args(FlipOutcome)}
        self._tries = self._histogram(
            "flip_tries",
            "Tries of a commit until its flip was won, with those that ended before the commit step.",
            (),
            TRY_BUCKETS,
        ).of()
        seconds = self._histogram("step_seconds", "Steps of the commit of a group of batches.", ("step",), STEP_BUCKETS)
        self._steps = {step: seconds.of(step) for step in get_args(Step)}
        seconds = self._histogram(
            "forwarded_seconds",
            "Changes handed to another server, by what came of it. Without an answer they are committed here.",
            ("outcome",),
            REQUEST_BUCKETS,
        )
        self._forwarded = {outcome: seconds.of(outcome) for outcome in get_args(ForwardingOutcome)}
        self._adopted = self._counter(
            "adopted_versions", "Versions that were committed around the catalog, and taken into it."
        )
        self._quarantined = self._counter(
            "quarantined_files", "Files that were committed around the catalog, and moved to quarantine."
        )
        recommits = self._counter(
            "recommits",
            "Quarantined commits that are in their tables again (committed), or stay in quarantine (aside).",
            ("outcome",),
        )
        self._recommits = {there: recommits.labels("committed" if there else "aside") for there in (True, False)}

    def _define_collections(self) -> None:
        self._collections = self._counter(
            "collections", "Garbage collections that this server has run, by outcome.", ("outcome",)
        )
        files = self._counter("collected_files", "Files that garbage collections removed, by reason.", ("reason",))
        size = self._counter(
            "collected_bytes", "Bytes of the files that garbage collections removed, by reason.", ("reason",)
        )
        self._collected = {each: (files.labels(each), size.labels(each)) for each in get_args(GarbageReason)}
        self._collection_end = self._gauge(
            "collection_end_timestamp_seconds",
            "End of the last garbage collection that this server has run; 0 before the first.",
        )
        self._collection_seconds = self._gauge("collection_seconds", "Duration of the last garbage collection.")
        self._collection_left = self._gauge(
            "collection_left_tables", "Tables that the last garbage collection could not judge."
        )
        self._young_files = self._gauge(
            "collection_young_files", "Unreferenced files that were too young for the last garbage collection."
        )
        self._young_bytes = self._gauge(
            "collection_young_bytes", "Bytes of the unreferenced files that were too young for it."
        )

    def watch(self, state: Callable[[], ServerState]) -> None:
        """Take the rest from this state, each time the metrics are asked for. It must not wait for anything."""
        self._state.watch(state)

    def exposition(self, names: Collection[str] = ()) -> bytes:
        """The time series of these names, all without names: which takes milliseconds."""
        return generate_latest(self.registry.restricted_registry(names) if names else self.registry)

    def request(self, operation: str, status: int, seconds: float) -> None:
        """A request was answered with this HTTP status; 0: the connection was closed without an answer."""
        key = (operation, status // 100)
        observe = self._requests.get(key)
        if observe is None:
            shown = f"{key[1]}xx" if key[1] else "none"
            observe = self._requests[key] = self._request_seconds.of(operation, shown)
        observe(seconds)

    def token_refused(self, reason: str) -> None:
        """A bearer token was not valid, for a reason of `rest.principals.Refusal`."""
        self._refused_tokens.labels(reason).inc()

    def storage_calls(self, kind: str, outcome: str) -> Observe:
        """See `Observer`."""
        return self._storage_seconds.of(kind, outcome)

    def step(self, step: Step) -> AbstractContextManager[object]:
        """See `Observer`."""
        return _Timer(self._steps[step])

    def job(self, pool: str) -> AbstractContextManager[object]:
        """See `Observer`."""
        return _Timer(self._job_seconds.of(pool))

    def group(self, batches: int) -> None:
        """See `Observer`."""
        self._group_batches(batches)

    def flip(self, outcome: FlipOutcome, tries: int) -> None:
        """See `Observer`."""
        self._flips[outcome].inc()
        if outcome == "committed":
            self._tries(tries)

    def batch(self, outcome: BatchOutcome, seconds: float) -> None:
        """See `Observer`."""
        self._batches[outcome](seconds)

    def conflict(self, operation: str, committed: str) -> None:
        """See `Observer`."""
        self._conflicts.labels(operation, committed).inc()

    def forwarded(self, outcome: ForwardingOutcome, seconds: float) -> None:
        """See `Observer`."""
        self._forwarded[outcome](seconds)

    def adopted(self, versions: int) -> None:
        """See `Observer`."""
        self._adopted.inc(versions)

    def quarantined(self) -> None:
        """See `Observer`."""
        self._quarantined.inc()

    def recommitted(self, *, there: bool) -> None:
        """See `Observer`."""
        self._recommits[there].inc()

    def garbage_collection(self, run: GcRun) -> None:
        """See `Observer`."""
        self._collections.labels(_COLLECTION_OUTCOMES[run.complete]).inc()
        for reason, removed in run.removed.items():
            files, size = self._collected[reason]
            files.inc(removed.files)
            size.inc(removed.size)
        self._collection_end.set_to_current_time()
        self._collection_seconds.set(run.seconds)
        self._collection_left.set(run.left)
        self._young_files.set(run.young.files)
        self._young_bytes.set(run.young.size)

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(PREFIX + name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: tuple[str, ...], bounds: tuple[float, ...]) -> Distributions:
        made = Distributions(PREFIX + name, text, labels, bounds)
        self.registry.register(made)
        return made


_PAIR: Final = ("operation", "committed")
_COLLECTION_OUTCOMES: Final[Mapping[bool | None, str]] = {True: "complete", False: "partial", None: "failed"}


class _Timer:
    """Measures the time of a `with` block; for one block. A generator would take three times as long."""

    __slots__ = ("_began", "_observe")

    def __init__(self, observe: Observe) -> None:
        self._observe = observe
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._observe(time.perf_counter() - self._began)

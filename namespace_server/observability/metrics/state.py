"""Metrics that are read from the state of a server when they are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from namespace_server.attempts import AttemptLogState, Decision
from namespace_server.observability.observation import CatalogFigures, JobState, PoolState, ServerState

_Values = float | None | Mapping[str, float | None] | Mapping[tuple[str, str], float | None]
"""The value of a metric, or its values by label or by two labels. None is absent."""


class StateCollector(Collector):
    """The state of a server as metrics whose names begin with `prefix`; of an idle one while there is none to watch."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._read: Callable[[], ServerState] = ServerState

    def watch(self, read: Callable[[], ServerState]) -> None:
        """Read this state from now on."""
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The metrics now."""
        state = self._read()
        yield self._gauge("queued_changes", "Changes accepted and not yet answered.", state.queued)
        yield self._gauge(
            "queue_capacity", "Most changes that may be accepted and not yet answered.", state.queue_capacity
        )
        yield from self._fairness(state)
        yield self._gauge(
            "event_streams", "Streams of events, and long polls for events, that are open.", state.event_streams
        )
        yield self._counter("events_sent", "Events of catalog versions that were sent to clients.", state.events_sent)
        yield from self._attempts(state.attempts)
        yield self._gauge("read_only", "1 while the server takes no changes, else 0.", int(state.read_only))
        yield from self._pools(state.pools)
        yield from self._jobs(state.jobs)
        if state.catalog is not None:
            yield from self._catalog(state.catalog)

    def _fairness(self, state: ServerState) -> Iterable[Metric]:
        yield self._gauge(
            "committing_principals", "Principals that sent changes within the last minute.", state.principals
        )
        yield self._gauge(
            "held_back_changes",
            "Changes that wait because their principal has its share of the flips, while others commit.",
            state.held_back,
        )
        yield self._counter(
            "over_limit_requests",
            "Requests that were refused because of what their principal had under way, by the setting that bounds it.",
            state.over_limits,
            "limit",
        )

    def _attempts(self, log: AttemptLogState) -> Iterable[Metric]:
        yield self._counter(
            "refused_attempts",
            "Attempts that were refused or whose outcome is unknown, by decision (denied, rejected, failed, unknown).",
            {decision: log.attempts.get(decision, 0) for decision in get_args(Decision)},
            "decision",
        )
        yield self._counter(
            "audit_lines",
            "Of these, those that have a line in the log of refused attempts (written), are counted in one (folded), "
            "or have none (dropped).",
            {"written": log.written, "folded": log.folded, "dropped": log.dropped},
            "outcome",
        )
        yield self._gauge("audit_lines_waiting", "Lines of refused attempts that wait to be written.", log.waiting)

    def _pools(self, pools: Mapping[str, PoolState]) -> Iterable[Metric]:
        busy = {(name, "busy"): pool.busy for name, pool in pools.items()}
        free = {(name, "free"): pool.free for name, pool in pools.items()}
        yield self._gauge("workers", "Worker processes by pool and state.", busy | free, "pool", "state")
        waiting = {name: pool.waiting for name, pool in pools.items()}
        yield self._gauge("waiting_jobs", "Jobs on rows that wait for a worker process.", waiting, "pool")
        yield self._gauge(
            "held_back_jobs",
            "Jobs on rows that wait because their principal holds its share of the processes.",
            {name: pool.held_back for name, pool in pools.items()},
            "pool",
        )
        yield self._counter(
            "lost_workers",
            "Worker processes that ended in a job: by an error, at a bound of time or memory, or with their client.",
            {name: pool.lost for name, pool in pools.items()},
            "pool",
        )

    def _jobs(self, jobs: Mapping[str, JobState]) -> Iterable[Metric]:
        done = {(name, "done"): job.runs - job.failures for name, job in jobs.items()}
        failed = {(name, "failed"): job.failures for name, job in jobs.items()}
        yield self._counter(
            "background_runs",
            "Runs of jobs in the background that did something, by outcome (done, failed).",
            done | failed,
            "task",
            "outcome",
        )
        yield self._gauge(
            "background_end_timestamp_seconds",
            "End of the last run of a job; absent before the first.",
            {name: job.ended_at for name, job in jobs.items()},
            "task",
        )
        now = time.time()
        yield self._gauge(
            "background_running_seconds",
            "Seconds since the run of a job that is under way began, else 0.",
            {name: 0.0 if job.began_at is None else max(0.0, now - job.began_at) for name, job in jobs.items()},
            "task",
        )

    def _catalog(self, catalog: CatalogFigures) -> Iterable[Metric]:
        yield self._gauge("catalog_version", "The newest catalog version that this server knows.", catalog.version)
        yield self._gauge(
            "catalog_commit_timestamp_seconds", "Time of the last flip that this server knows.", catalog.committed_at
        )
        yield self._gauge(
            "snapshot_age_seconds", "Seconds since a listing proved the snapshot in memory the newest.", catalog.age
        )
        yield self._gauge(
            "clock_ahead_seconds",
            "Seconds by which the server's clock is ahead of the store's; negative if behind.",
            catalog.clock_ahead,
        )
        yield self._gauge(
            "catalog_dated_ahead_seconds",
            "Seconds by which the newest version is dated in the future.",
            catalog.head_ahead,
        )
        yield self._gauge("catalog_rows", "Rows of the catalog's own dataset.", catalog.rows)
        yield self._gauge(
            "catalog_entries", "Namespaces, tables and records of batches in the catalog.", catalog.entries, "kind"
        )
        yield self._gauge(
            "promotion_backlog",
            "Committed versions that are not known to have their canonical names.",
            catalog.unpromoted,
        )
        yield self._gauge(
            "storage_longest_call_seconds",
            "Seconds since the call to storage under way that began first, copies and listings left out.",
            catalog.longest_call,
        )
        yield self._gauge(
            "cursors",
            "Cursors of consumers of events, by whether what they have not seen is kept.",
            dict(zip(("live", "expired"), catalog.cursors, strict=True)),
            "state",
        )
        yield self._gauge(
            "cursor_lag_versions",
            "Catalog versions by which the live cursor is behind that is furthest behind.",
            catalog.cursor_lag,
        )
        yield self._gauge(
            "other_servers",
            "Other servers that committed to the root in the last two seconds; whether they share the `peer_secret`.",
            dict(zip(("shared", "none"), catalog.other_servers, strict=True)),
            "secret",
        )
        yield self._gauge(
            "backup_timestamp_seconds",
            "When the last backup of the root began; absent if there was none.",
            catalog.backed_up_at,
        )
        yield self._gauge("open_records", "Batches that are committed and not cleaned up after.", catalog.open_records)
        hits = {(cache, "hit"): used.hits for cache, used in catalog.caches.items()}
        misses = {(cache, "miss"): used.misses for cache, used in catalog.caches.items()}
        yield self._counter("cache_lookups", "Lookups in caches by result.", hits | misses, "cache", "result")
        sizes = {cache: used.size for cache, used in catalog.caches.items()}
        yield self._gauge("cache_bytes", "Bytes that count against the limit of a cache.", sizes, "cache")

    def _gauge(self, name: str, text: str, values: _Values, *labels: str) -> Metric:
        return _filled(GaugeMetricFamily(self._prefix + name, text, labels=labels), values)

    def _counter(self, name: str, text: str, values: _Values, *labels: str) -> Metric:
        return _filled(CounterMetricFamily(self._prefix + name, text, labels=labels), values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: _Values) -> Metric:
    samples = values if isinstance(values, Mapping) else {(): values}
    for labels, value in samples.items():
        if value is not None:
            family.add_metric([labels] if isinstance(labels, str) else labels, value)
    return family

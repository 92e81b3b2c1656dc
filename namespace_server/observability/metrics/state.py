"""Metrics that are read from the state of a server when they are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from namespace_server.attempts import AttemptLogState, Decision
from namespace_server.observability.observation import CatalogFigures, JobState, PoolState, ServerState


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
        yield CounterMetricFamily(
            f"{self._prefix}events_sent",
            "Events of catalog versions that were sent to clients.",
            value=state.events_sent,
        )
        yield from self._attempts(state.attempts)
        yield self._gauge("read_only", "1 while the server takes no changes, else 0.", int(state.read_only))
        yield from self._pools(state)
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
        refused = CounterMetricFamily(
            f"{self._prefix}over_limit_requests",
            "Requests that were refused because of what their principal had under way, by the setting that bounds it.",
            labels=["limit"],
        )
        for setting, number in state.over_limits.items():
            refused.add_metric([setting], number)
        yield refused

    def _attempts(self, log: AttemptLogState) -> Iterable[Metric]:
        attempts = CounterMetricFamily(
            f"{self._prefix}refused_attempts",
            "Attempts that were refused or whose outcome is unknown, by decision (denied, rejected, failed, unknown).",
            labels=["decision"],
        )
        for decision in get_args(Decision):
            attempts.add_metric([decision], log.attempts.get(decision, 0))
        lines = CounterMetricFamily(
            f"{self._prefix}audit_lines",
            "Of these, those that have a line in the log of refused attempts (written), are counted in one (folded), "
            "or have none (dropped).",
            labels=["outcome"],
        )
        for outcome, number in (("written", log.written), ("folded", log.folded), ("dropped", log.dropped)):
            lines.add_metric([outcome], number)
        waiting = self._gauge("audit_lines_waiting", "Lines of refused attempts that wait to be written.", log.waiting)
        yield from (attempts, lines, waiting)

    def _pools(self, state: ServerState) -> Iterable[Metric]:
        workers = self._family("workers", "Worker processes by pool and state.", "pool", "state")
        waiting = self._family("waiting_jobs", "Jobs on rows that wait for a worker process.", "pool")
        held_back = self._family(
            "held_back_jobs", "Jobs on rows that wait because their principal holds its share of the processes.", "pool"
        )
        lost = CounterMetricFamily(
            f"{self._prefix}lost_workers",
            "Worker processes that ended in a job: by an error, at a bound of time or memory, or with their client.",
            labels=["pool"],
        )
        for name, pool in state.pools.items():
            _add_pool(name, pool, workers, waiting, lost)
            held_back.add_metric([name], pool.held_back)
        yield from (workers, waiting, held_back, lost)

    def _jobs(self, jobs: Mapping[str, JobState]) -> Iterable[Metric]:
        runs = CounterMetricFamily(
            f"{self._prefix}background_runs",
            "Runs of jobs in the background that did something, by outcome (done, failed).",
            labels=["task", "outcome"],
        )
        ended = self._family(
            "background_end_timestamp_seconds", "End of the last run of a job; absent before the first.", "task"
        )
        running = self._family(
            "background_running_seconds",
            "Seconds since the run of a job that is under way began, else 0.",
            "task",
        )
        for name, job in jobs.items():
            runs.add_metric([name, "done"], job.runs - job.failures)
            runs.add_metric([name, "failed"], job.failures)
            if job.ended_at is not None:
                ended.add_metric([name], job.ended_at)
            running.add_metric([name], 0.0 if job.began_at is None else max(0.0, time.time() - job.began_at))
        yield from (runs, ended, running)

    def _catalog(self, catalog: CatalogFigures) -> Iterable[Metric]:
        yield self._gauge("catalog_version", "The newest catalog version that this server knows.", catalog.version)
        committed = self._family("catalog_commit_timestamp_seconds", "Time of the last flip that this server knows.")
        if catalog.committed_at is not None:
            committed.add_metric([], catalog.committed_at)
        yield committed
        yield self._gauge(
            "snapshot_age_seconds", "Seconds since a listing proved the snapshot in memory the newest.", catalog.age
        )
        clock = self._family(
            "clock_ahead_seconds", "Seconds by which the server's clock is ahead of the store's; negative if behind."
        )
        if catalog.clock_ahead is not None:
            clock.add_metric([], catalog.clock_ahead)
        yield clock
        yield self._gauge(
            "catalog_dated_ahead_seconds",
            "Seconds by which the newest version is dated in the future.",
            catalog.head_ahead,
        )
        yield self._gauge("catalog_rows", "Rows of the catalog's own dataset.", catalog.rows)
        entries = self._family("catalog_entries", "Namespaces, tables and records of batches in the catalog.", "kind")
        for kind, count in catalog.entries.items():
            entries.add_metric([kind], count)
        yield entries
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
        cursors = self._family(
            "cursors", "Cursors of consumers of events, by whether what they have not seen is kept.", "state"
        )
        for word, number in zip(("live", "expired"), catalog.cursors, strict=True):
            cursors.add_metric([word], number)
        yield cursors
        yield self._gauge(
            "cursor_lag_versions",
            "Catalog versions by which the live cursor is behind that is furthest behind.",
            catalog.cursor_lag,
        )
        servers = self._family(
            "other_servers",
            "Other servers that committed to the root in the last two seconds; whether they share the `peer_secret`.",
            "secret",
        )
        for secret, number in zip(("shared", "none"), catalog.other_servers, strict=True):
            servers.add_metric([secret], number)
        yield servers
        backup = self._family(
            "backup_timestamp_seconds", "When the last backup of the root began; absent if there was none."
        )
        if catalog.backed_up_at is not None:
            backup.add_metric([], catalog.backed_up_at)
        yield backup
        yield self._gauge("open_records", "Batches that are committed and not cleaned up after.", catalog.open_records)
        yield from self._caches(catalog)

    def _caches(self, catalog: CatalogFigures) -> Iterable[Metric]:
        name = f"{self._prefix}cache_lookups"
        lookups = CounterMetricFamily(name, "Lookups in caches by result.", labels=["cache", "result"])
        size = self._family("cache_bytes", "Bytes that count against the limit of a cache.", "cache")
        for cache, used in catalog.caches.items():
            lookups.add_metric([cache, "hit"], used.hits)
            lookups.add_metric([cache, "miss"], used.misses)
            size.add_metric([cache], used.size)
        yield from (lookups, size)

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        return GaugeMetricFamily(self._prefix + name, text, value=value)

    def _family(self, name: str, text: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(self._prefix + name, text, labels=labels)


def _add_pool(
    name: str, pool: PoolState, workers: GaugeMetricFamily, waiting: GaugeMetricFamily, lost: CounterMetricFamily
) -> None:
    workers.add_metric([name, "busy"], pool.busy)
    workers.add_metric([name, "free"], pool.free)
    waiting.add_metric([name], pool.waiting)
    lost.add_metric([name], pool.lost)

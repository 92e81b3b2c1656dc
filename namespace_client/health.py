"""How a server is, from its metrics: what the catalog holds, how fast it commits, what is behind, and what to do.

The metrics are those that Prometheus reads, of one server since its start.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from lance_core.amounts import counted, size
from namespace_client.display import ShownAsTable, ago, number, when

_SAMPLE: Final = re.compile(r"^lance_namespace_(\w+)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_DAY: Final = 86_400.0
_BACKLOG: Final = 100
_OLD_SNAPSHOT: Final = 300.0
_OLD_BACKUP: Final = 7 * _DAY
_CLOCK: Final = 60.0
_MEDIAN: Final = 0.5
_TAIL: Final = 0.99
_REASONS: Final = {
    "unreferenced": "named by no manifest",
    "uncommitted": "staged, and not committed",
    "of_uncommitted": "named by what was not committed",
    "interrupted": "left by an interrupted compaction",
    "expired_version": "versions of tables that were deleted",
    "dropped_table": "of dropped tables",
    "catalog_version": "earlier versions of the catalog",
    "catalog_rows": "rows of earlier versions of the catalog",
    "catalog_copy": "copies of catalog versions",
    "quarantined": "quarantined, and of no version",
    "upload": "of uploads that have ended",
}

_PREFIX: Final = "lance_namespace_"
_READ: Final = (
    "audit_lines_total",
    "background_runs_total",
    "backup_timestamp_seconds",
    "batch_seconds_bucket",
    "batch_seconds_count",
    "catalog_entries",
    "clock_ahead_seconds",
    "collected_bytes_total",
    "collected_files_total",
    "collection_end_timestamp_seconds",
    "collection_left_tables",
    "collection_young_bytes",
    "collection_young_files",
    "cursors",
    "open_records",
    "promotion_backlog",
    "quarantined_files_total",
    "queued_changes",
    "read_only",
    "snapshot_age_seconds",
    "step_seconds_bucket",
)
SERIES: Final = tuple(_PREFIX + name for name in _READ)
"""The time series that health is read from."""

Samples = Mapping[str, Sequence[tuple[Mapping[str, str], float]]]
"""Values of the series, each with its labels, by the names in `_READ`."""


@dataclass(frozen=True, slots=True)
class HealthWarning:
    """Something that wants attention.

    Attributes:
        text: What it is, in a sentence.
        command: The command that mends it or tells more, None where there is none.
    """

    text: str
    command: str | None = None

    def __str__(self) -> str:
        return self.text if self.command is None else f"{self.text} {self.command}"


@dataclass(frozen=True, slots=True)
class Garbage:
    """Files that garbage collections removed for one reason.

    Attributes:
        reason: The reason in words.
        files: How many.
        size: Their bytes.
    """

    reason: str
    files: int
    size: int


@dataclass(frozen=True, slots=True, repr=False)
class ServerHealth(ShownAsTable):
    """How a server is.

    Attributes:
        namespaces: How many there are.
        tables: How many there are.
        batches: Batches by outcome, since the start.
        commit_median: Seconds of a committed batch: half of them took less, by the bounds of the buckets. None before
            the first, infinite beyond the last bound.
        commit_tail: Seconds that one in a hundred took longer than.
        flip_median: Seconds of the flip of a catalog version, in the same way.
        flip_tail: Seconds that one flip in a hundred took longer than.
        backlog: Committed table versions that have no canonical name yet.
        open_records: Batches that are not cleaned up after yet.
        queued: Changes that are accepted and not yet answered.
        removed: What garbage collections of this server removed, by reason, the most bytes first.
        young_files: Unreferenced files that were too young to be removed by the last of them.
        young_bytes: Their bytes.
        collected: End of the last garbage collection of this server; None before the first.
        backed_up: Time of the last backup, None if none is noted.
        warnings: What wants attention.
    """

    namespaces: int
    tables: int
    batches: Mapping[str, int]
    commit_median: float | None
    commit_tail: float | None
    flip_median: float | None
    flip_tail: float | None
    backlog: int
    open_records: int
    queued: int
    removed: tuple[Garbage, ...]
    young_files: int
    young_bytes: int
    collected: datetime | None
    backed_up: float | None
    warnings: tuple[HealthWarning, ...]

    @property
    def removed_files(self) -> int:
        """How many files garbage collections of this server removed."""
        return sum(each.files for each in self.removed)

    @property
    def removed_bytes(self) -> int:
        """The bytes of these."""
        return sum(each.size for each in self.removed)

    def _headers(self) -> Sequence[str]:
        return "", ""

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "namespaces", number(self.namespaces)
        yield "tables", number(self.tables)
        yield "batch, median and 99 %", f"{seconds(self.commit_median)}, {seconds(self.commit_tail)}"
        yield "flip, median and 99 %", f"{seconds(self.flip_median)}, {seconds(self.flip_tail)}"
        yield "promotion backlog", number(self.backlog)
        for garbage in self.removed:
            yield "garbage removed", f"{garbage.reason}: {of_files(garbage.files, garbage.size)}"
        if self.collected is not None:
            yield "too young to be removed", of_files(self.young_files, self.young_bytes)
            yield "last garbage collection", when(self.collected)
        for each in self.warnings:
            yield "warning", str(each)


def seconds(value: float | None) -> str:
    """A duration as a bucket tells it: `< 25 ms`; empty for None."""
    if value is None:
        return ""
    if value == float("inf"):
        return "very long"
    return f"< {value * 1000:g} ms" if value < 1 else f"< {value:g} s"


def read_health(exposition: str, now: float | None = None) -> ServerHealth:
    """The health that a text of metrics tells. What it lacks counts as nothing."""
    samples = _samples(exposition)
    batches = {labels["outcome"]: int(value) for labels, value in samples["batch_seconds_count"]}
    entries = {labels["kind"]: int(value) for labels, value in samples["catalog_entries"]}
    committed = _buckets(samples, "batch_seconds_bucket", {"outcome": "committed"})
    ended = _sum(samples, "collection_end_timestamp_seconds")
    flips = _buckets(samples, "step_seconds_bucket", {"step": "flip"})
    return ServerHealth(
        entries.get("namespace", 0),
        entries.get("table", 0),
        batches,
        _quantile(committed, _MEDIAN),
        _quantile(committed, _TAIL),
        _quantile(flips, _MEDIAN),
        _quantile(flips, _TAIL),
        int(_sum(samples, "promotion_backlog")),
        int(_sum(samples, "open_records")),
        int(_sum(samples, "queued_changes")),
        tuple(_removed(samples)),
        int(_sum(samples, "collection_young_files")),
        int(_sum(samples, "collection_young_bytes")),
        datetime.fromtimestamp(ended, UTC) if ended else None,
        _sum(samples, "backup_timestamp_seconds") or None,
        tuple(_warnings(samples, time.time() if now is None else now)),
    )


def of_files(files: int, count: int) -> str:
    """A number of files with their bytes: `3 files, 12.5 kB`."""
    return f"{counted(files, 'file')}, {size(count)}"


def _removed(samples: Samples) -> list[Garbage]:
    """What was removed, by reason. A server of an earlier release tells no reasons."""
    found = [
        Garbage(
            _REASONS.get(labels.get("reason", ""), "for other reasons"),
            int(files),
            int(_sum(samples, "collected_bytes_total", labels)),
        )
        for labels, files in samples["collected_files_total"]
        if files
    ]
    return sorted(found, key=lambda each: -each.size)


def _warnings(samples: Samples, now: float) -> Iterator[HealthWarning]:
    """What wants attention. The bounds are those of the alert rules that come with the server."""
    if (backlog := _sum(samples, "promotion_backlog")) > _BACKLOG:
        yield HealthWarning(
            f"{number(int(backlog))} committed table versions have no canonical names yet: promotion is behind.",
            "lance-namespace doctor",
        )
    if (age := _sum(samples, "snapshot_age_seconds")) > _OLD_SNAPSHOT:
        yield HealthWarning(f"The newest catalog version was proved {ago(age)} ago: storage does not answer.")
    if unknown := _sum(samples, "batch_seconds_count", {"outcome": "unknown"}):
        yield HealthWarning(
            f"The outcome of {number(int(unknown))} batches is unknown: storage did not say whether they were "
            "committed.",
            "lance-namespace log --refused --decision unknown",
        )
    for task, _ in _failed(samples):
        yield HealthWarning(f"A run of the job {task} in the background met a problem, which is in the server's log.")
    if left := _sum(samples, "collection_left_tables"):
        yield HealthWarning(
            f"The last garbage collection could not judge {number(int(left))} tables.", "lance-namespace gc --dry-run"
        )
    if gone := _sum(samples, "cursors", {"state": "expired"}):
        yield HealthWarning(
            f"{number(int(gone))} consumers of events have not seen what is not kept any more.",
            "lance-namespace cursors",
        )
    backup = _sum(samples, "backup_timestamp_seconds")
    if backup and now - backup > _OLD_BACKUP:
        yield HealthWarning(f"The last backup began {ago(now - backup)} ago.", "lance-namespace backup DESTINATION")
    if abs(ahead := _sum(samples, "clock_ahead_seconds")) > _CLOCK:
        yield HealthWarning(f"The clocks of the server and of its storage are {ago(abs(ahead))} apart.")
    if quarantined := _sum(samples, "quarantined_files_total"):
        yield HealthWarning(
            f"{number(int(quarantined))} files that were committed around the catalog are in quarantine.",
            "lance-namespace doctor",
        )
    if dropped := _sum(samples, "audit_lines_total", {"outcome": "dropped"}):
        yield HealthWarning(f"{number(int(dropped))} refused attempts have no line in the audit log.")
    if _sum(samples, "read_only"):
        yield HealthWarning("The server takes no changes: it is read-only.")


def _failed(samples: Samples) -> Iterator[tuple[str, float]]:
    for labels, value in samples["background_runs_total"]:
        if labels.get("outcome") == "failed" and value:
            yield labels["task"], value


def _samples(exposition: str) -> Samples:
    found: dict[str, list[tuple[Mapping[str, str], float]]] = {name: [] for name in _READ}
    for name, labels, value in _SAMPLE.findall(exposition):
        if name in found:
            found[name].append((dict(_LABEL.findall(labels)), float(value)))
    return found


def _sum(samples: Samples, name: str, wanted: Mapping[str, str] | None = None) -> float:
    return sum(value for labels, value in samples[name] if (wanted or {}).items() <= labels.items())


def _buckets(samples: Samples, name: str, wanted: Mapping[str, str]) -> list[tuple[float, float]]:
    """The upper bounds of the buckets of a histogram, and how many values are up to each."""
    found = [(float(labels["le"]), value) for labels, value in samples[name] if wanted.items() <= labels.items()]
    return sorted(found)


def _quantile(buckets: Sequence[tuple[float, float]], part: float) -> float | None:
    """The bound that this part of all values does not exceed, None without values."""
    total = buckets[-1][1] if buckets else 0
    return next((bound for bound, count in buckets if count >= part * total), None) if total else None

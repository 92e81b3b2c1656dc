"""The report of a run of maintenance, or of its plan: values, JSON and text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum

from lance_core.amounts import counted


class TableStatus(StrEnum):
    """The outcome for a table. On the wire it has the name of the member, in small letters."""

    DONE = "done"
    NOTHING_TO_DO = "nothing to do"
    PLANNED = "to do"
    BUSY = "left to its writers"
    GIVEN_UP = "given up"
    FAILED = "failed"


@dataclass(slots=True)
class TableOutcome:
    """The work on one table.

    Attributes:
        table: The id of the table, joined by '$'.
        status: What became of it.
        version: The newest version that the run has seen or made.
        small: Fragments that were worth joining when the table was looked at first.
        deleted: Fragments that were worth rewriting then, because many of their rows are deleted.
        size: Bytes of their data files.
        commits: Commits of the work: Rewrites, and one for all indices.
        removed_fragments: Fragments that these replaced.
        added_fragments: Fragments that replaced them.
        rewritten_indices: Index segments that were rewritten for these fragments.
        indices: Names of the indices that were worth extending or merging.
        unindexed_rows: Rows that these did not cover.
        added_segments: Index segments over all rows that were committed.
        removed_segments: Index segments that these replaced.
        reason: Why the table was left, given up or failed.
    """

    table: str
    status: TableStatus
    version: int
    small: int = 0
    deleted: int = 0
    size: int = 0
    commits: int = 0
    removed_fragments: int = 0
    added_fragments: int = 0
    rewritten_indices: int = 0
    indices: tuple[str, ...] = ()
    unindexed_rows: int = 0
    added_segments: int = 0
    removed_segments: int = 0
    reason: str | None = None

    def line(self) -> str:
        """The work in one line."""
        work = self._done() if self.commits else self._worth()
        return ": ".join(part for part in (self.table, self.status, ", ".join(work), self.reason) if part)

    def _worth(self) -> Iterator[str]:
        if self.small or self.deleted:
            small = counted(self.small, "small fragment")
            yield f"{small}, {self.deleted} with deleted rows, {counted(self.size, 'byte')}"
        if self.indices:
            indices = counted(len(self.indices), "index", "indices")
            yield f"{indices} to extend ({counted(self.unindexed_rows, 'row')} not covered)"

    def _done(self) -> Iterator[str]:
        if self.removed_fragments:
            yield f"{counted(self.removed_fragments, 'fragment')} became {self.added_fragments}"
            yield f"{counted(self.rewritten_indices, 'index segment')} rewritten"
        if self.added_segments:
            indices = counted(self.added_segments, "index", "indices")
            yield f"{indices} extended, in place of {counted(self.removed_segments, 'segment')}"
        yield f"{self.commits} commits, version {self.version}"


@dataclass(frozen=True, slots=True)
class TableWork:
    """What of a version of a table is worth work.

    Attributes:
        small_fragments: Fragments that a compaction joins with neighbours.
        fragments_with_deletions: Fragments that it rewrites because many of their rows are deleted.
        bytes: Bytes of the data files of both, as far as the manifest states them.
        indices: Names of the indices that are extended or merged.
        unindexed_rows: Rows that these do not cover. What several do not cover counts several times.
    """

    small_fragments: int
    fragments_with_deletions: int
    bytes: int
    indices: tuple[str, ...]
    unindexed_rows: int


@dataclass(frozen=True, slots=True)
class TableRun:
    """Maintenance of one table, or the plan of it.

    Attributes:
        outcome: What became of it; its version is the newest one after the run.
        catalog_version: The catalog version that was looked at last.
        version_before: The newest version when the run began.
        fragments_before: The number of its fragments.
        found: What of that version was worth work.
        fragments: The number of fragments after the run; None if the table could not be looked at then.
        left: What is worth work after the run; None as before.
    """

    outcome: TableOutcome
    catalog_version: int
    version_before: int
    fragments_before: int
    found: TableWork
    fragments: int | None
    left: TableWork | None

    def as_json(self) -> dict[str, object]:
        """The response on the wire; what is not known is absent."""
        outcome = self.outcome
        told: dict[str, object] = {
            "status": outcome.status.name.lower(),
            "reason": outcome.reason,
            "catalog_version": self.catalog_version,
            "version_before": self.version_before,
            "version": outcome.version,
            "fragments_before": self.fragments_before,
            "fragments": self.fragments,
            "commits": outcome.commits,
            "removed_fragments": outcome.removed_fragments,
            "added_fragments": outcome.added_fragments,
            "rewritten_indices": outcome.rewritten_indices,
            "added_segments": outcome.added_segments,
            "removed_segments": outcome.removed_segments,
            "found": asdict(self.found),
            "left": None if self.left is None else asdict(self.left),
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """The report of a run, or of its plan.

    Attributes:
        root: The URI of the root of the catalog.
        catalog_version: The catalog version whose tables were looked at.
        tables: The number of tables that were looked at.
        left: The number of tables that were not, because the time was over.
        outcomes: The tables that are worth work, and those that cannot be looked at.
    """

    root: str
    catalog_version: int
    tables: int
    left: int
    outcomes: tuple[TableOutcome, ...]

    @property
    def failed(self) -> bool:
        """Whether work on a table failed for another reason than a concurrent commit."""
        return any(outcome.status is TableStatus.FAILED for outcome in self.outcomes)

    def as_json(self) -> dict[str, object]:
        """All of it as JSON values."""
        return {
            "root": self.root,
            "catalog_version": self.catalog_version,
            "tables": self.tables,
            "left": self.left,
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
        }

    def lines(self) -> Iterator[str]:
        """A line for each table that is worth work, and one for all."""
        for outcome in self.outcomes:
            yield outcome.line()
        left = f", {self.left:,} not looked at: the time was over" if self.left else ""
        counts = [f"{sum(each.status is status for each in self.outcomes)} {status}" for status in TableStatus]
        shown = [count for count in counts if not count.startswith("0 ")] or ["nothing to do"]
        yield f"{self.root}: catalog version {self.catalog_version}, {self.tables:,} tables: {', '.join(shown)}{left}"

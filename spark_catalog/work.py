"""What a write has under way, and what it tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from namespace_client.wire import TableState
from spark_catalog.checks import Change
from spark_catalog.graph import Edge, Node
from spark_catalog.staging import StagedDeletes, StagedFragments, StagedUpsert, StageTarget, fragment_files

Staged = StagedFragments | StagedUpsert | StagedDeletes


@dataclass(frozen=True, slots=True)
class TableResult:
    """What became of one table. `rows` were appended, overwritten, upserted or deleted by this write.

    `version` is None only for a table that got nothing and has no version; `rebased` tells that others had committed
    to it since this write began.
    """

    name: str
    change: Change
    version: int | None
    rows: int
    rebased: bool
    new: bool


@dataclass(frozen=True, slots=True)
class GraphWriteResult:
    """A published write. `milliseconds` has the phases "stage", "check" and "publish"."""

    transaction_id: str | None
    catalog_version: int | None
    tables: Mapping[str, TableResult]
    milliseconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Told to `progress` when a staging job has finished; nothing is visible yet."""

    name: str
    change: Change
    rows: int
    files: int
    seconds: float


@dataclass(slots=True)
class TableWork:
    """One table of a write. The jobs fill `staged`; files of whatever is in it are ours to delete."""

    target: StageTarget
    state: TableState
    change: Change
    declared: Node | Edge | None
    on: tuple[str, ...] = ()
    predicate: str = ""
    new: bool = False
    jobs: list[Future[Staged]] = field(default_factory=list)

    @property
    def staged(self) -> list[Staged]:
        """What the jobs that succeeded have staged."""
        done = [job for job in self.jobs if job.done() and not job.cancelled() and job.exception() is None]
        return [job.result() for job in done]

    @property
    def new_files(self) -> tuple[str, ...]:
        """The data files that hold staged rows."""
        files: list[str] = []
        for staged in self.staged:
            if isinstance(staged, StagedFragments):
                files += fragment_files(staged.fragments)
            elif isinstance(staged, StagedUpsert):
                files += staged.new_files
        return tuple(files)

    @property
    def rows(self) -> int:
        """Rows that the write appends, replaces or deletes."""
        return sum(staged.rows for staged in self.staged)

"""State of one table in a graph write: its staging jobs, and the operations that they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from lance_core.transaction.operations import Operation
from spark_catalog.checks import Change
from spark_catalog.graph import Edge, Node
from spark_catalog.staging import StagedDeletes, StagedFragments, StagedUpsert, StageTarget, fragment_files
from table_data.batch_operations import TableState
from table_data.descriptions import append_operation, delete_operation, overwrite_operation, update_operation

Staged = StagedFragments | StagedUpsert | StagedDeletes


@dataclass(slots=True)
class TableWrite:
    """One table of a graph write.

    Attributes:
        target: Where and how rows are staged.
        state: The table as of the begin of the write, or with the location reserved for it.
        change: The first call on the table. Only appends may follow an append or an overwrite.
        declared: Declaration of the table in the graph.
        new: Whether the write creates the table.
        on: Key columns of an upsert.
        predicate: Filter expression of a delete.
        jobs: One staging job for each call, in order.
    """

    target: StageTarget
    state: TableState
    change: Change
    declared: Node | Edge | None
    new: bool = False
    on: tuple[str, ...] = ()
    predicate: str = ""
    jobs: list[Future[Staged]] = field(default_factory=list)

    @property
    def staged(self) -> list[Staged]:
        """Results of the jobs that succeeded, in order."""
        succeeded = [job for job in self.jobs if job.done() and not job.cancelled() and job.exception() is None]
        return [job.result() for job in succeeded]

    @property
    def files(self) -> tuple[str, ...]:
        """All files that the succeeded jobs wrote, relative to the table."""
        return tuple(file for staged in self.staged for file in staged.files)

    @property
    def new_files(self) -> tuple[str, ...]:
        """The data files with staged rows, relative to the table."""
        files: list[str] = []
        for staged in self.staged:
            if isinstance(staged, StagedFragments):
                files += fragment_files(staged.fragments)
            elif isinstance(staged, StagedUpsert):
                files += staged.new_files
        return tuple(files)

    @property
    def rows(self) -> int:
        """Number of rows that are appended, overwritten, upserted or deleted."""
        return sum(staged.rows for staged in self.staged)

    def operations(self) -> Iterator[tuple[str, Operation]]:
        """The calls and their operations, in order. Jobs without rows give none, unless they make a first version."""
        replaces = self.change == "overwrite" or self.target.read_version is None
        for position, staged in enumerate(self.staged):
            match staged:
                case StagedFragments() if replaces and position == 0:
                    yield self._call, overwrite_operation(self.target.schema, staged.fragments)
                case StagedFragments() if staged.fragments:
                    yield "append", append_operation(staged.fragments)
                case StagedUpsert():
                    yield self._call, update_operation(staged.operation)
                case StagedDeletes() if staged.rows:
                    yield self._call, delete_operation(staged.updated, staged.removed, self.predicate)

    @property
    def _call(self) -> str:
        if self.on:
            return f"{self.change} on {', '.join(self.on)}"
        return f"{self.change} where {self.predicate}" if self.predicate else self.change

"""State of one table in a graph write: its calls, their staging jobs, and the operations that they lead to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lance_core.format.deletion import live_row_count
from lance_core.format.manifest import serialized_manifest
from lance_core.transaction.operations import Operation, Overwrite
from lance_core.transaction.reachable import reachable_files
from spark_catalog.graph import Edge, Node
from spark_catalog.graph_writes.calls.deletes import StagedDeletes
from spark_catalog.graph_writes.calls.merges import StagedMerge
from spark_catalog.graph_writes.results import Change
from spark_catalog.graph_writes.version_rows import VersionRows, fragment_ids, published_rows, staged_rows
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tasks.staging import StagedFragments, StageTarget
from table_data.descriptions import append_operation, delete_operation, overwrite_operation
from table_data.table_changes import TableChanges

Staged = StagedFragments | StagedDeletes | StagedMerge
Job = Callable[[StageTarget], tuple[Staged, ...]]
Take = Callable[[TableChanges, Operation, str], None]
"""Applies an operation of a call to the table in the transaction."""


@dataclass(slots=True)
class TableCall:
    """One call on a table.

    Attributes:
        change: Change that it makes.
        text: The call, for results and conflicts.
        job: The staging job.
        schema: Schema of the table after the call.
        loses_rows: Whether keys of the table may go.
    """

    change: Change
    text: str
    job: Future[tuple[Staged, ...]]
    schema: pa.Schema
    loses_rows: bool = False

    @property
    def staged(self) -> tuple[Staged, ...]:
        """The operations that the job staged, in order; none unless it succeeded."""
        if not self.job.done() or self.job.cancelled() or self.job.exception() is not None:
            return ()
        return self.job.result()

    @property
    def rows(self) -> int:
        """Number of rows appended, overwritten, upserted or deleted."""
        return self.staged[-1].rows if self.staged else 0

    @property
    def had_failing_tasks(self) -> bool:
        """Whether a task is known to have failed: the job failed, or a partition was staged at a later attempt."""
        if self.job.done() and not self.job.cancelled() and self.job.exception() is not None:
            return True
        staged = (part for part in self.staged if isinstance(part, StagedFragments))
        return any(report.attempt for part in staged for report in part.reports)


@dataclass(slots=True)
class TableCalls:
    """One table of a graph write.

    Calls are applied in order. A call that reads the table waits for the jobs of the calls before it.

    Attributes:
        target: Where and how rows are staged, for the first call.
        changes: The table in the transaction.
        declared: Declaration of the table in the graph.
        take: Applies an operation of a call.
        new: Whether the write creates the table.
        calls: The calls so far.
        append_target: Where and how rows are staged that are added after all calls so far; None if that is known only
            when these calls are staged.
    """

    target: StageTarget
    changes: TableChanges
    declared: Node | Edge | None
    take: Take
    new: bool = False
    calls: list[TableCall] = field(default_factory=list)
    append_target: StageTarget | None = field(init=False)
    _taken: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.append_target = self.target

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.target.name

    @property
    def schema(self) -> pa.Schema:
        """Schema of the table after all calls so far."""
        return self.calls[-1].schema if self.calls else self.target.schema

    @property
    def files(self) -> tuple[str, ...]:
        """All files that the succeeded jobs wrote, relative to the table."""
        return tuple(file for call in self.calls for staged in call.staged for file in staged.files)

    @property
    def rows(self) -> int:
        """Number of rows that are appended, overwritten, upserted or deleted."""
        return sum(call.rows for call in self.calls)

    @property
    def row_count(self) -> int:
        """Number of rows after all calls that are applied."""
        head = self.changes.head
        return 0 if head is None else sum(map(live_row_count, head.manifest.fragments))

    @property
    def had_failing_tasks(self) -> bool:
        """Whether a task of the calls is known to have failed."""
        return any(call.had_failing_tasks for call in self.calls)

    @property
    def seconds(self) -> float:
        """Duration of all jobs."""
        return sum(staged.seconds for call in self.calls for staged in call.staged)

    def head_target(self, schema: pa.Schema) -> StageTarget:
        """The target for rows on the head that all calls before have led to."""
        head = self.changes.head
        if head is None:
            return replace(self.target, schema=schema, version=None)
        base = PinnedTable.published(self.target.uri, head, self.target.storage_options)
        if self.changes.steps:
            base = replace(base, committed_ms=None, manifest=serialized_manifest(head))
        return replace(self.target, schema=schema, version=base)

    def apply(self, count: int | None = None) -> None:
        """Apply the first `count` calls, or all of them, to the table. Waits for their jobs; raises as they do."""
        calls = self.calls[:count]
        for call in calls:
            call.job.result()
        with self._lock:
            for call in calls[self._taken :]:
                for operation in self._operations(call):
                    self.take(self.changes, operation, call.text)
                self._taken += 1

    def _operations(self, call: TableCall) -> Iterator[Operation]:
        """Calls without rows lead to no operation, unless they make a first version."""
        for staged in call.staged:
            match staged:
                case StagedFragments() if self.changes.head is None or call.text == "overwrite":
                    yield overwrite_operation(call.schema, staged.fragments)
                case StagedFragments() if staged.fragments:
                    yield append_operation(staged.fragments)
                case StagedDeletes() if staged.rows:
                    yield delete_operation(staged.updated, staged.removed, staged.predicate or call.text)
                case StagedMerge() if staged.operation is not None:
                    yield staged.operation

    # -- the rows before and after, for checks

    def rows_before(self) -> VersionRows | None:
        """The rows at the begin of the write, None if there is no version."""
        base = self.changes.base
        return None if base is None else published_rows(self.target.uri, base, self.changes.options)

    def rows_after(self, *, added: bool | None = None) -> VersionRows | None:
        """The rows after all calls: all of them, only the added ones, or only those that were there before."""
        head = self.changes.head
        if head is None or not self.changes.steps:
            return None if added else self.rows_before()
        replaced = any(isinstance(step.operation, Overwrite) for step in self.changes.steps)
        before: frozenset[int] = frozenset() if replaced else fragment_ids(self.changes.base)
        now = fragment_ids(head)
        only = None if added is None else now - before if added else now & before
        if only is not None and not only:
            return None
        return staged_rows(self.target.uri, head, self.changes.options, only)

    def superseded_files(self) -> tuple[str, ...]:
        """Files that the calls wrote and that no transaction of the write names."""
        sent = {
            file
            for transaction in self.changes.compose(None).transactions
            for file in reachable_files(transaction, "", self.changes.base)
        }
        return tuple(dict.fromkeys(file for file in self.files if file not in sent))

"""A change under way, in the process that does the work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from table_data.arrow.body import ArrowBody
from table_data.arrow.claims import RowLimits
from table_data.batch_operations import StagedOperation, TableState, TransactionCommit
from table_data.jobs.discarding import remove_staged_files
from table_data.jobs.job import Job, Staged
from table_data.jobs.reading import OpenVersions
from table_data.open_datasets import OpenDatasets
from table_data.operations import CHANGES
from table_data.pylance_errors import explained
from table_data.table_changes import TableChanges, find_damage


class ChangeSession:
    """One change of one table: staged, and staged again where its batch conflicts. Not thread-safe.

    `rows` is an Arrow IPC stream or file within `limits`. Files of a change whose outcome is unknown stay, like those
    of a worker that was killed; `lance-namespace gc --dry-run` lists the unreferenced ones.
    """

    def __init__(
        self,
        job: Job,
        rows: pa.Buffer | None = None,
        layouts: OpenDatasets | None = None,
        versions: OpenVersions | None = None,
        limits: RowLimits | None = None,
    ) -> None:
        self._job = job
        self._change = CHANGES[job.operation]
        self._layouts = layouts
        self._versions = versions
        self._rows = None if rows is None else ArrowBody(rows, limits)
        self._staged: tuple[TableChanges, Sequence[StagedOperation]] | None = None

    def stage(self, table: TableState) -> Staged:
        """Compute the change on a version of the table, and write its files.

        Raises `InvalidCall` and its kinds if the call is wrong, `WorkFailed`.
        """
        self._staged = None
        opened = None if self._versions is None else self._versions.take(table, self._job.options)
        changes = TableChanges(
            table, self._job.options, new=self._job.new, checked=False, layouts=self._layouts, opened=opened
        )
        with explained(f"{self._job.operation} of {changes.name}", partial(find_damage, table, self._job.options)):
            try:
                result = self._change.stage(changes, self._job.request, self._rows)
            except Exception:
                if self._rows is not None:
                    self._rows.explain()
                raise
            checks, operations = changes.operations(self._job.message, serializable=False)
        self._staged = changes, operations
        batch = (*checks, *operations)
        appends = bool(operations) and all(_is_append(operation) for operation in batch)
        return Staged(batch, result, self._change.repeatable, self._change.independent, appends)

    def discard(self) -> None:
        """Remove the files that were staged last. Only after their batch was rejected."""
        if self._staged is not None:
            changes, operations = self._staged
            self._staged = None
            remove_staged_files(changes, operations)


def _is_append(operation: StagedOperation) -> bool:
    return isinstance(operation, TransactionCommit) and operation.transaction.HasField("append")

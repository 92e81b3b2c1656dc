"""A change under way, in the process that does the work."""

from __future__ import annotations

from table_data.arrow_body import ArrowBody
from table_data.batch_operations import TableState, operation_json
from table_data.jobs import Job, Staged
from table_data.operations import CHANGES
from table_data.pylance_errors import explained
from table_data.table_changes import TableChanges


class ChangeSession:
    """One change of one table: staged, and staged again where its batch conflicts. Not thread-safe.

    Files of a change that is not committed are left to the collector, like those of a client that went away.
    """

    def __init__(self, job: Job, rows: ArrowBody | None = None) -> None:
        self._job = job
        self._rows = rows
        self._change = CHANGES[job.operation]

    def stage(self, table: TableState) -> Staged:
        """Compute the change on a version of the table, and write its files.

        Raises `InvalidCall` and its kinds if the call is wrong, `WorkFailed`.
        """
        changes = TableChanges(table, self._job.options, new=self._job.new)
        with explained(f"{self._job.operation} of {changes.name}"):
            try:
                result = self._change.stage(changes, self._job.request, self._rows)
            except Exception:
                if self._rows is not None:
                    self._rows.check()
                raise
            checks, operations = changes.operations(self._job.message, serializable=False)
        encoded = tuple(operation_json(operation) for operation in (*checks, *operations))
        return Staged(encoded, result, self._change.repeatable, self._change.independent)

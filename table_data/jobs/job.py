"""A job on one table, and its result. Values that go between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from table_data.batch_operations import Result, StagedOperation

if TYPE_CHECKING:
    from table_data.requests.table_requests import TableRequest

CHANGES_OF_ROWS: Final = "read_table_changes"
"""The one read that opens several versions, and answers a stream of rows."""
DIFF_OF_BRANCH: Final = "diff_table_branch"
"""The one read that opens a version of main and one of a branch."""
PICK_OF_BRANCH: Final = "cherry_pick_table_branch"
"""The one change that reads a branch beside the line that it changes."""


@dataclass(frozen=True, slots=True)
class Job:
    """An operation of the namespace specification on one table, or one of maintenance.

    Attributes:
        operation: Name of the operation, as the methods of `LanceNamespace` are named.
        request: Its request, of the type that the operation has.
        options: Options of Lance for the object store.
        message: Text that is stored in the transaction.
        new: Whether the table is declared in the batch that commits the change.
    """

    operation: str
    request: TableRequest
    options: Mapping[str, str] = field(default_factory=dict)
    message: str | None = None
    new: bool = False


@dataclass(frozen=True, slots=True)
class Staged:
    """A change whose files are written.

    `operations` are those of a batch that commits it, none if nothing changes; `result` holds what the operation
    answers beside the version, such as row counts. A change that is `repeatable` may be staged again on a newer
    version, if the batch conflicts with another commit; one that is `independent`, also if it conflicts irreconcilably.
    One that only `appends` rows conflicts with no other of its kind.
    """

    operations: tuple[StagedOperation, ...]
    result: Result
    repeatable: bool
    independent: bool = False
    appends: bool = False

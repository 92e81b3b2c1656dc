"""Exceptions of `spark_catalog`, grouped by what a handler would do.

`GraphError`, `InvalidWrite`, `WriteRejected`, `GraphConflict`, `WriteUnknown` and `ServerUnreachable` are other names
of exceptions of `namespace_client`: `ClientError`, `InvalidCall`, `CommitRejected`, `CommitConflict`, `CommitUnknown`
and `CatalogUnreachable`.

GraphError
├── InvalidWrite        the calls contradict each other, the table or the declared graph; nothing was staged for them
├── StagingFailed       a Spark job of the write failed; the staged files of the other jobs were deleted
├── GraphCheckFailed    keys or end points are wrong; the staged files were deleted
├── WriteRejected       the server refused the batch: nothing is visible, the staged files were deleted
│   └── GraphConflict   ... because of a concurrent commit: run the block again
├── WriteUnknown        the batch may or may not have committed, or may commit later; nothing was deleted
├── EpochTaken          another driver of a streaming query has committed the epoch: nothing of this one is visible
└── ServerUnreachable   no response from the server; a write that ends so was never sent
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from namespace_client.errors import (
    CatalogUnreachable,
    ClientError,
    CommitConflict,
    CommitRejected,
    CommitUnknown,
    InvalidCall,
)

GraphError = ClientError
InvalidWrite = InvalidCall
WriteRejected = CommitRejected
GraphConflict = CommitConflict
WriteUnknown = CommitUnknown
ServerUnreachable = CatalogUnreachable

__all__ = [
    "EpochTaken",
    "GraphCheckFailed",
    "GraphConflict",
    "GraphError",
    "InvalidWrite",
    "ServerUnreachable",
    "StagingFailed",
    "WriteRejected",
    "WriteUnknown",
    "last_line",
]


class StagingFailed(GraphError):
    """At least one staging job failed. `failures` maps table names to the exceptions of the jobs."""

    def __init__(self, failures: Mapping[str, BaseException]) -> None:
        self.failures = dict(failures)
        lines = [f"{name}: {last_line(error)}" for name, error in self.failures.items()]
        super().__init__(f"{len(lines)} staging job(s) failed, nothing was published: " + "; ".join(lines))


class GraphCheckFailed(GraphError):
    """Rows break a rule of the graph.

    Attributes:
        table: Name of the table.
        rule: The rule and its columns.
        count: Number of distinct keys that break the rule.
        samples: Some of these keys.
    """

    def __init__(self, table: str, rule: str, count: int, samples: Sequence[object]) -> None:
        self.table = table
        self.rule = rule
        self.count = count
        self.samples = tuple(samples)
        shown = ", ".join(str(sample) for sample in self.samples)
        super().__init__(f"{table}: {rule}: {count} distinct, for example {shown}")


class EpochTaken(GraphError):
    """Another driver of the same streaming query has committed the epoch. Nothing of this driver's batch is visible.

    Attributes:
        mark: Table with the mark of the query.
        epoch: The epoch that was to be committed.
        committed: The last committed epoch.
    """

    def __init__(self, mark: str, epoch: int, committed: int) -> None:
        self.mark = mark
        self.epoch = epoch
        self.committed = committed
        super().__init__(f"{mark}: epoch {epoch}: another driver has committed epoch {committed}; expected one driver")


def last_line(error: BaseException) -> str:
    """The line of an error with the message, which is the last line of a traceback of a Spark worker."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = [line for line in lines if not line.startswith(("at ", "File ", "~", "^"))]
    return (python or lines or [type(error).__name__])[-1]

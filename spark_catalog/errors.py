"""Everything that `spark_catalog` raises, grouped by what a handler would do.

What the catalog answers is raised as by `namespace_client`, under the names that fit a graph.

GraphError
├── InvalidWrite        the calls contradict each other, the table or the declared graph; nothing was staged for them
├── StagingFailed       a Spark job of the write failed; everything that the others staged was deleted
├── GraphCheckFailed    keys or end points are wrong; everything staged was deleted
├── WriteRejected       the server refused the batch: nothing is visible, everything staged was deleted
│   └── GraphConflict   ... because of a concurrent commit: run the block again
├── WriteUnknown        the batch may or may not have committed, now or later; nothing was deleted
└── ServerUnreachable   the server could not be asked; a write that ends so was never sent
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from namespace_client.errors import CatalogUnreachable, ClientError, CommitConflict, CommitRejected, CommitUnknown

GraphError = ClientError
WriteRejected = CommitRejected
GraphConflict = CommitConflict
WriteUnknown = CommitUnknown
ServerUnreachable = CatalogUnreachable

__all__ = [
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


class InvalidWrite(GraphError, ValueError):
    """The calls contradict each other, the table or the declared graph."""


class StagingFailed(GraphError):
    """At least one staging job failed. `failures` maps the table's name to what its job raised."""

    def __init__(self, failures: Mapping[str, BaseException]) -> None:
        self.failures = dict(failures)
        lines = [f"{name}: {last_line(error)}" for name, error in self.failures.items()]
        super().__init__(f"{len(lines)} staging job(s) failed, nothing was published: " + "; ".join(lines))


class GraphCheckFailed(GraphError):
    """Rows that break the graph's rules.

    `table` and `rule` name them, `count` is how many distinct keys are affected, `samples` a few of these.
    """

    def __init__(self, table: str, rule: str, count: int, samples: Sequence[object]) -> None:
        self.table = table
        self.rule = rule
        self.count = count
        self.samples = tuple(samples)
        shown = ", ".join(str(sample) for sample in self.samples)
        super().__init__(f"{table}: {rule}: {count} distinct, for example {shown}")


def last_line(error: BaseException) -> str:
    """The line of an error that says what happened: a worker's traceback ends with it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = [line for line in lines if not line.startswith(("at ", "File ", "~", "^"))]
    return (python or lines or [type(error).__name__])[-1]

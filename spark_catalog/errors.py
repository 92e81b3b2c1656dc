"""Everything that `spark_catalog` raises, grouped by what a handler would do.

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
from typing import Any


class GraphError(Exception):
    """Root of the tree."""


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


class WriteRejected(GraphError):
    """The server refused the batch, so nothing of it is visible.

    `code` is the namespace specification's error code, `failures` the explained conflicts of the answer.
    """

    def __init__(self, message: str, *, status: int, code: int | None, failures: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.failures = tuple(dict(failure) for failure in failures)


class GraphConflict(WriteRejected):
    """A concurrent commit stands in the way. Running the block again reads the newer versions and can succeed."""


class WriteUnknown(GraphError):
    """The answer was lost: the batch may have committed, or may still. Its files are kept for that case.

    `batch` is the batch's transaction id if the server told it, `idempotency_key` the key that was sent. `resend`
    of the write repeats the same request under the same key, which cannot apply it twice.
    """

    def __init__(self, message: str, *, batch: str | None, idempotency_key: str) -> None:
        super().__init__(message)
        self.batch = batch
        self.idempotency_key = idempotency_key


class ServerUnreachable(GraphError):
    """No connection to the server, or an answer that is none, while reading from the catalog."""


def last_line(error: BaseException) -> str:
    """The line of an error that says what happened: a worker's traceback ends with it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = [line for line in lines if not line.startswith(("at ", "File ", "~", "^"))]
    return (python or lines or [type(error).__name__])[-1]

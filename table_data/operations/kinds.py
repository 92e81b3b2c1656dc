"""What an operation is: a function that stages a change, or one that reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Json
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    import lance


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """`stage` applies the request to the table and returns what the operation answers beside the version.

    It is `repeatable` if it may be staged again on a newer version. It is `independent` if it may be staged again after
    an irreconcilable conflict too: it means the same whatever the table was.
    """

    stage: Callable[[TableChanges, Json, ArrowBody | None], Json]
    repeatable: bool
    independent: bool = False


Read = Callable[["lance.LanceDataset", Json], Any | pa.RecordBatchReader]
"""Answers a request from one version of a table: a JSON value, or rows."""

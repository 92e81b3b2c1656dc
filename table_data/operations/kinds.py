"""Kinds of operations: a function that stages a change, or one that reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result
from table_data.table_changes import TableChanges

R_contra = TypeVar("R_contra", contravariant=True)

if TYPE_CHECKING:
    import lance


@dataclass(frozen=True, slots=True)
class ChangeKind(Generic[R_contra]):
    """`stage` applies the request to the table and returns what the operation answers beside the version.

    It is `repeatable` if it may be staged again on a newer version. It is `independent` if it may be staged again after
    an irreconcilable conflict too: it means the same whatever the table was.
    """

    stage: Callable[[TableChanges, R_contra, ArrowBody | None], Result]
    repeatable: bool
    independent: bool = False


Changes = Mapping[str, ChangeKind[Any]]
"""Changes by name. What the request of each is, `table_data.requests` says."""
Reads = Mapping[str, Callable[["lance.LanceDataset", Any], object | pa.RecordBatchReader]]
"""Reads by name: each answers a request from one version of a table, with a JSON value or rows."""

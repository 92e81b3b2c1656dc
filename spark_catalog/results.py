"""Results and progress of a graph write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_catalog.checks import Change


@dataclass(frozen=True, slots=True)
class GraphTableResult:
    """Result for one table of a graph write.

    Attributes:
        name: Name of the table.
        change: Change that the write made: "append", "overwrite", "upsert" or "delete".
        version: Version that holds the rows. None only for a table that got no rows and has no version.
        rows: Number of rows appended, overwritten, upserted or deleted.
        rebased: Whether the server rebased the change over other commits.
        new: Whether the write created the table.
    """

    name: str
    change: Change
    version: int | None
    rows: int
    rebased: bool
    new: bool


@dataclass(frozen=True, slots=True)
class GraphWriteResult:
    """A committed graph write.

    Attributes:
        transaction_id: Id of the batch, None if no table was changed.
        catalog_version: Catalog version that holds the write.
        tables: Results by table name.
        milliseconds: Duration of the phases "stage", "check" and "publish".
    """

    transaction_id: str | None
    catalog_version: int | None
    tables: Mapping[str, GraphTableResult]
    milliseconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Progress report of one finished staging job. Its rows are not visible yet.

    Attributes:
        name: Name of the table.
        change: Change that the rows are for.
        rows: Number of rows appended, overwritten, upserted or deleted.
        files: Number of files written.
        seconds: Duration of the job.
    """

    name: str
    change: Change
    rows: int
    files: int
    seconds: float

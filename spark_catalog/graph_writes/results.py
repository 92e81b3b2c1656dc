"""Results, previews and progress of a graph write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Change = Literal["append", "overwrite", "upsert", "delete"]
Phase = Literal["stage", "check", "publish"]


@dataclass(frozen=True, slots=True)
class GraphTableResult:
    """Result for one table of a graph write.

    Attributes:
        name: Name of the table.
        change: First change that the write made: "append", "overwrite", "upsert" or "delete".
        version: Version that holds the rows. None only for a table that got no rows and has no version.
        rows: Number of rows appended, overwritten, upserted or deleted, by all calls.
        rebased: Whether the server rebased the change over other commits.
        new: Whether the write created the table.
        calls: The calls that changed the table, in order.
        files: Number of files that the calls wrote.
        milliseconds: Duration of the staging jobs of the table, added up.
    """

    name: str
    change: Change
    version: int | None
    rows: int
    rebased: bool
    new: bool
    calls: tuple[str, ...] = ()
    files: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class GraphWriteResult:
    """A committed graph write.

    Attributes:
        transaction_id: Id of the batch, None if no table was changed.
        catalog_version: Catalog version that holds the write.
        tables: Results by table name.
        milliseconds: Duration of the phases "stage", "check" and "publish".
        files_left: Superseded files of the write that could not be deleted, each with the reason.
            `lance-namespace gc --dry-run` lists them later.
    """

    transaction_id: str | None
    catalog_version: int | None
    tables: Mapping[str, GraphTableResult]
    milliseconds: Mapping[str, float]
    files_left: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True)
class PreviewedTable:
    """One table of a write that is not committed.

    Attributes:
        name: Name of the table.
        calls: The calls so far that change the table, in order.
        rows: Number of rows appended, overwritten, upserted or deleted.
        rows_after: Number of rows of the table after the write, without concurrent commits.
        files: Number of files written.
        version: Version that the write is built on, None for a table without versions.
    """

    name: str
    calls: tuple[str, ...]
    rows: int
    rows_after: int
    files: int
    version: int | None


@dataclass(frozen=True, slots=True)
class GraphPreview:
    """A write as it would be committed.

    Attributes:
        tables: Tables by name.
        checks: The checks that were made, as `table: rule`. All of them passed.
    """

    tables: Mapping[str, PreviewedTable]
    checks: tuple[str, ...]

"""Results of a transaction and of its calls."""

from __future__ import annotations

from dataclasses import dataclass

from namespace_client.display import html_table
from namespace_client.names import Name
from table_data.batch_operations import TableId


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """Rows that a merge inserted, updated and deleted."""

    inserted: int
    updated: int
    deleted: int


@dataclass(frozen=True, slots=True)
class CompactionCounts:
    """Fragments that a compaction replaced, and the fragments that hold their rows now."""

    removed_fragments: int
    added_fragments: int


@dataclass(frozen=True, slots=True)
class TableResult:
    """Changes of one table in a committed transaction.

    Attributes:
        id: Path of the table.
        branch: Name of the branch, None for the main branch.
        calls: Calls of the transaction on this table, in order.
        version: Version that holds the changes. None if the calls led to no change of a table without versions.
        rebased: Whether the catalog rebased the changes over other commits.
        new: Whether the transaction created the table.
    """

    id: TableId
    branch: str | None
    calls: tuple[str, ...]
    version: int | None
    rebased: bool
    new: bool

    def __str__(self) -> str:
        branch = "" if self.branch is None else f" (branch {self.branch})"
        version = "" if self.version is None else f" version {self.version}"
        note = " (new)" if self.new else " (rebased)" if self.rebased else ""
        return f"{Name(self.id)}{branch}{version}{note}: {', '.join(self.calls)}"


@dataclass(frozen=True, slots=True)
class TransactionResult:
    """A committed transaction.

    Attributes:
        transaction_id: Id of the batch, None if the transaction changed nothing.
        catalog_version: Catalog version that holds the changes. Transactions that the server commits together (group
            commit) have the same one. For a transaction without changes it is the version that its reads were of.
        tables: One entry for each table or branch that was changed.
    """

    transaction_id: str | None
    catalog_version: int | None
    tables: tuple[TableResult, ...]

    def __repr__(self) -> str:
        return "\n".join([self._title(), *(f"  {table}" for table in self.tables)])

    def _repr_html_(self) -> str:
        rows = [
            (
                Name(table.id),
                table.branch or "main",
                "" if table.version is None else table.version,
                ", ".join(table.calls),
                "new" if table.new else "rebased" if table.rebased else "",
            )
            for table in self.tables
        ]
        return html_table(("table", "branch", "version", "changes", ""), rows, self._title())

    def _title(self) -> str:
        what = "nothing to commit" if self.transaction_id is None else "committed"
        return f"{what}, catalog version {'unknown' if self.catalog_version is None else self.catalog_version}"

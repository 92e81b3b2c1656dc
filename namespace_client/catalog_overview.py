"""What is in a catalog: tables, rows and bytes as far as they are known, versions, and tables that want work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance_core.amounts import counted, size
from namespace_client.display import ShownAsTable, number
from namespace_client.health import HealthWarning
from namespace_client.names import Name
from table_data.batch_operations import Json

_BEYOND: Final = 100


@dataclass(frozen=True, slots=True)
class TableWorthMaintenance:
    """A table that is worth maintenance.

    Attributes:
        name: Its path.
        fragments: Fragments that a compaction would rewrite.
        indices: Indices that would be extended, or whose segments would be merged.
    """

    name: Name
    fragments: int
    indices: int

    def __str__(self) -> str:
        fragments = [f"{counted(self.fragments, 'fragment')} to rewrite"] if self.fragments else []
        indices = [f"{counted(self.indices, 'index', 'indices')} to extend"] if self.indices else []
        return f"{self.name}: {', '.join(fragments + indices)}"


@dataclass(frozen=True, slots=True, repr=False)
class CatalogOverview(ShownAsTable):
    """What is in a catalog. Rows, bytes and what follows them are of the tables that are known.

    Attributes:
        catalog_version: The catalog version that all of it is of: the newest, or in a catalog that changes all the time
            one of some seconds ago.
        namespaces: How many there are.
        tables: How many there are.
        known_tables: Of how many the newest versions are known. Each call looks at some more of them.
        rows: Rows of their newest versions.
        bytes: Bytes of the data files of these, also of those that a clone has from its source.
        files: How many data files these are.
        versions: Versions of the tables, of all branches.
        versions_beyond_policy: Those that the retention of their table keeps no longer, by their age and number alone.
        num_worth_maintenance: How many tables are worth maintenance.
        worth_maintenance: Some of them, those with the most fragments to be rewritten first.
    """

    catalog_version: int
    namespaces: int
    tables: int
    known_tables: int
    rows: int
    bytes: int
    files: int
    versions: int
    versions_beyond_policy: int
    num_worth_maintenance: int
    worth_maintenance: tuple[TableWorthMaintenance, ...]

    @classmethod
    def of(cls, answer: Json) -> CatalogOverview:
        """The answer of the catalog. Raises `KeyError` or `TypeError` if it is none."""
        told: dict[str, Any] = {name: answer[name] for name in cls.__slots__}
        told["worth_maintenance"] = tuple(
            TableWorthMaintenance(Name(each["id"]), each["num_fragments"], each["num_indices"])
            for each in answer["worth_maintenance"]
        )
        return cls(**told)

    @property
    def is_whole(self) -> bool:
        """Whether all tables are known."""
        return self.known_tables == self.tables

    @property
    def warnings(self) -> tuple[HealthWarning, ...]:
        """What wants attention."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[HealthWarning]:
        if self.versions_beyond_policy > _BEYOND:
            yield HealthWarning(
                f"{number(self.versions_beyond_policy)} versions of tables are beyond the retention of their tables: "
                "a garbage collection removes those that no tag names.",
                "lance-namespace gc",
            )
        if self.num_worth_maintenance:
            are = "table is" if self.num_worth_maintenance == 1 else "tables are"
            yield HealthWarning(
                f"{number(self.num_worth_maintenance)} {are} worth maintenance: small fragments, deleted rows, or rows "
                "that no index covers.",
                "lance-namespace maintain",
            )

    def _headers(self) -> Sequence[str]:
        return "", ""

    def _title(self) -> str:
        return f"catalog version {self.catalog_version}"

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "namespaces", number(self.namespaces)
        yield "tables", number(self.tables)
        if not self.is_whole:
            yield "known tables", number(self.known_tables)
        yield "rows", number(self.rows)
        yield "data", f"{size(self.bytes)} in {counted(self.files, 'file')}"
        yield "versions of tables", number(self.versions)
        yield "versions beyond policy", number(self.versions_beyond_policy)
        yield "tables worth maintenance", number(self.num_worth_maintenance)
        for table in self.worth_maintenance:
            yield "", str(table)
        for each in self.warnings:
            yield "warning", str(each)

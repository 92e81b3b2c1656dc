"""What a search for orphans found: values, JSON and text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

NO_TABLE: Final = "(no table)"
UNNAMED: Final = "named by no manifest"
UNPUBLISHED: Final = "staged, and not committed"
NAMED_BY_UNPUBLISHED: Final = "named only by a staged manifest that was not committed"
INTERRUPTED: Final = "left by an interrupted compaction"
EXPIRED: Final = "manifest of a version that was deleted"
OF_REMOVED: Final = "of a table that was dropped"

_SHOWN: Final = 10
"""Unknown files shown in the text; the JSON has all."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file that nothing names.

    Attributes:
        path: The key below the root of the catalog.
        size: The size in bytes.
        written: When it was written, by the store's clock.
        kind: What it is, in words.
        table: The id of its table, joined by '$'; None for a staged manifest whose table is not known.
        reason: Why nothing needs it, in words.
        judged_by: The date by which it is old or young, that of the youngest file which is needed together with it.
    """

    path: str
    size: int
    written: datetime
    kind: str
    table: str | None
    reason: str
    judged_by: datetime


@dataclass(frozen=True, slots=True)
class Total:
    """A number of files and their size in bytes."""

    files: int
    size: int


@dataclass(frozen=True, slots=True)
class OrphanReport:
    """What was found below a root.

    Attributes:
        root: The URI of the root.
        catalog_version: The catalog version whose rows were read last.
        written_before: Only files written before this were judged.
        tables: The ids of the tables whose files were judged.
        orphans: The files that nothing names, by table and key.
        young: Files that nothing names, and that were written later: a writer may still commit them.
        unknown: The keys of files whose names have no known form. They are never orphans.
        not_judged: By location: why the files of the table there were not judged.
        not_owned: By location: the tables that were left out because the catalog does not own their locations.
        removed: By location: `dropped` or `deregistered`. The files there belong to a table that is gone.
        unexplained: Directories at the root that belong to no table.
    """

    root: str
    catalog_version: int
    written_before: datetime
    tables: tuple[str, ...]
    orphans: tuple[Orphan, ...]
    young: tuple[Orphan, ...]
    unknown: tuple[str, ...]
    not_judged: Mapping[str, str]
    not_owned: Mapping[str, str]
    removed: Mapping[str, str]
    unexplained: tuple[str, ...]

    @property
    def by_reason(self) -> dict[str, Total]:
        """The orphans by reason."""
        return _totals((orphan.reason, orphan.size) for orphan in self.orphans)

    @property
    def young_by_table(self) -> dict[str, Total]:
        """The files that are too young, by table."""
        return _totals((file.table or NO_TABLE, file.size) for file in self.young)

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values. Times are RFC 3339 in UTC."""
        return {
            "root": self.root,
            "catalog_version": self.catalog_version,
            "written_before": self.written_before.isoformat(),
            "tables": list(self.tables),
            "orphans": [
                {
                    "path": orphan.path,
                    "size": orphan.size,
                    "written": orphan.written.isoformat(),
                    "kind": orphan.kind,
                    "table": orphan.table,
                    "reason": orphan.reason,
                }
                for orphan in self.orphans
            ],
            "by_reason": {reason: _total(total) for reason, total in self.by_reason.items()},
            "too_young": {table: _total(total) for table, total in self.young_by_table.items()},
            "unknown": list(self.unknown),
            "not_judged": dict(self.not_judged),
            "not_owned": dict(self.not_owned),
            "removed": dict(self.removed),
            "unexplained": list(self.unexplained),
        }

    def lines(self) -> Iterator[str]:
        """The report as text: a line for each orphan, the totals, and what was not judged."""
        for orphan in self.orphans:
            written = f"{orphan.written:%Y-%m-%dT%H:%M:%SZ}"
            yield (
                f"{orphan.table or NO_TABLE}  {orphan.path}  {orphan.size:,} bytes  {written}  "
                f"{orphan.kind}: {orphan.reason}"
            )
        for reason, total in self.by_reason.items():
            yield f"{reason}: {_words(total)}"
        before = f"{self.written_before:%Y-%m-%dT%H:%M:%SZ}"
        for table, total in self.young_by_table.items():
            yield f"too young to tell, written after {before}: {table}: {_words(total)}"
        for path in self.unknown[:_SHOWN]:
            yield f"unknown file: {path}"
        if len(self.unknown) > _SHOWN:
            yield f"unknown files: {len(self.unknown) - _SHOWN} more, all are in the JSON"
        for location, problem in self.not_judged.items():
            yield f"not judged: {location}: {problem}"
        for location, table in self.not_owned.items():
            yield f"not owned by the catalog, judged only with --table: {table} at {location}"
        for location, state in self.removed.items():
            yield f"table {state}: {location}"
        for directory in self.unexplained:
            yield f"belongs to no table: {directory}"
        tables = f"{len(self.tables)} table{'' if len(self.tables) == 1 else 's'}"
        orphans = _words(Total(len(self.orphans), sum(orphan.size for orphan in self.orphans)))
        yield f"{self.root}: catalog version {self.catalog_version}, {tables}: {orphans} that nothing names"


def _totals(files: Iterable[tuple[str, int]]) -> dict[str, Total]:
    found: dict[str, Total] = {}
    for name, size in files:
        before = found.get(name, Total(0, 0))
        found[name] = Total(before.files + 1, before.size + size)
    return dict(sorted(found.items()))


def _total(total: Total) -> dict[str, int]:
    return {"files": total.files, "size": total.size}


def _words(total: Total) -> str:
    return f"{total.files:,} file{'' if total.files == 1 else 's'}, {total.size:,} bytes"

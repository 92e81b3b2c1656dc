"""The report of a run or of a dry run: values, JSON and text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from lance_core.amounts import counted
from namespace_server.observability.observation import GarbageReason

NO_TABLE: Final = "(no table)"
UNNAMED: Final = "named by no manifest"
UNPUBLISHED: Final = "staged, and not committed"
NAMED_BY_UNPUBLISHED: Final = "named only by a staged manifest that was not committed"
INTERRUPTED: Final = "left by an interrupted compaction"
EXPIRED: Final = "manifest of a version that was deleted"
OF_REMOVED: Final = "of a table that was dropped"
SUPERSEDED: Final = "earlier version of the catalog"
UNNAMED_ROWS: Final = "rows of earlier versions of the catalog"
ENDED: Final = "copy of a catalog version that is not needed any more"
QUARANTINED: Final = "quarantined, and of no version"
UPLOADED: Final = "of an upload in parts that has ended"
REASONS: Final[Mapping[str, GarbageReason]] = {
    UNNAMED: "unreferenced",
    UNPUBLISHED: "uncommitted",
    NAMED_BY_UNPUBLISHED: "of_uncommitted",
    INTERRUPTED: "interrupted",
    EXPIRED: "expired_version",
    OF_REMOVED: "dropped_table",
    SUPERSEDED: "catalog_version",
    UNNAMED_ROWS: "catalog_rows",
    ENDED: "catalog_copy",
    QUARANTINED: "quarantined",
    UPLOADED: "upload",
}
"""The words of metrics for these reasons. Plans of other releases may have others."""

_SHOWN: Final = 10
"""Keys of one kind shown in the text; the JSON has all."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """An unreferenced file.

    Attributes:
        path: The key below the root of the catalog.
        size: The size in bytes.
        written: When it was written, by the store's clock.
        kind: What it is, in words.
        table: The id of its table, joined by '$'; None for a staged manifest whose table is not known.
        reason: Why it is not needed, in words.
        judged_by: The date by which it is old or young, that of the youngest file which is needed together with it.
        is_owned: Whether the catalog chose the location of its table. At others nothing is deleted.
    """

    path: str
    size: int
    written: datetime
    kind: str
    table: str | None
    reason: str
    judged_by: datetime
    is_owned: bool

    def as_json(self) -> dict[str, object]:
        """All of it as JSON values. Times are RFC 3339 in UTC."""
        return {
            "path": self.path,
            "size": self.size,
            "written": self.written.isoformat(),
            "kind": self.kind,
            "table": self.table,
            "reason": self.reason,
            "owned": self.is_owned,
        }

    def __str__(self) -> str:
        written = f"{self.written:%Y-%m-%dT%H:%M:%SZ}"
        size = counted(self.size, "byte")
        return f"{self.table or NO_TABLE}  {self.path}  {size}  {written}  {self.kind}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Total:
    """A number of files and their size in bytes."""

    files: int
    size: int

    def __str__(self) -> str:
        return f"{counted(self.files, 'file')}, {counted(self.size, 'byte')}"

    def as_json(self) -> dict[str, int]:
        """Its fields."""
        return {"files": self.files, "size": self.size}


@dataclass(frozen=True, slots=True)
class MarkResult:
    """The findings of the mark phase.

    Attributes:
        catalog_version: The catalog version whose rows were read last.
        tables: The ids of the tables whose files were judged.
        orphans: The unreferenced files, by table and key.
        young: Unreferenced files that were written at or after the horizon: a writer may still commit them.
        unknown: The keys of files whose names have no known form. They are never orphans.
        not_judged: By location: why the files of the table there were not judged.
        not_owned: By location: the tables that were left out because the catalog does not own their locations.
        removed: By location: `dropped` or `deregistered`. The files there belong to a table that is gone.
        unexplained: Directories at the root that belong to no table.
    """

    catalog_version: int
    tables: tuple[str, ...]
    orphans: tuple[Orphan, ...]
    young: tuple[Orphan, ...]
    unknown: tuple[str, ...]
    not_judged: Mapping[str, str]
    not_owned: Mapping[str, str]
    removed: Mapping[str, str]
    unexplained: tuple[str, ...]

    @property
    def young_by_table(self) -> dict[str, Total]:
        """The files that are too young, by table."""
        return totals((file.table or NO_TABLE, file.size) for file in self.young)

    def as_json(self) -> dict[str, object]:
        """The part of a dry run about single files and directories, as JSON values."""
        return {
            "tables": list(self.tables),
            "orphans": [orphan.as_json() for orphan in self.orphans],
            "too_young_by_table": {table: total.as_json() for table, total in self.young_by_table.items()},
            "unknown_files": list(self.unknown),
            "not_owned": dict(self.not_owned),
            "without_table": dict(self.removed),
            "unexplained": list(self.unexplained),
        }

    def lines(self) -> Iterator[str]:
        """The same as text: a line for each orphan and each directory."""
        for orphan in self.orphans:
            kept = "" if orphan.is_owned else ", kept: the catalog did not choose the location of its table"
            yield f"orphan{kept}: {orphan}"
        for table, total in self.young_by_table.items():
            yield f"too young to judge: {table}: {total}"
        for path in self.unknown[:_SHOWN]:
            yield f"unknown file: {path}"
        if len(self.unknown) > _SHOWN:
            yield f"unknown files: {len(self.unknown) - _SHOWN} more, all are in the JSON"
        for location, table in self.not_owned.items():
            yield f"not owned by the catalog, judged only with --table: {table} at {location}"
        for location, state in self.removed.items():
            yield f"table {state}: {location}"
        for directory in self.unexplained:
            yield f"belongs to no table: {directory}"


@dataclass(frozen=True, slots=True)
class GcReport:
    """The result of one run.

    Attributes:
        root: The URI of the root.
        run: The uuid of the run; empty for a dry run.
        catalog_version: The catalog version whose rows were read last.
        horizon: Only files written before this may go; by the store's clock.
        oldest: The lowest catalog version that is kept.
        settings: The settings of the catalog, by name.
        removed: What was removed, by reason; in a dry run what would be.
        kept: The keys of objects that were to be removed and have changed since.
        refused: By key, why the store did not remove an object. Later runs try again.
        purged: The locations of dropped tables whose files are gone; in a dry run those that would be purged.
        too_young: The number and size of unreferenced files that were written at or after the horizon.
        held: By location, the number and size of unreferenced files that an intent keeps.
        purges_held: The locations of dropped tables whose time is over, and that an intent keeps.
        not_judged: By location, why the files there were not judged; the rows of the catalog are at `__manifest`.
        expired: The number of versions of tables whose rows went; their files follow with the history of the catalog.
        left_out: The number of locations at which the run did not look, as nothing changed there.
        left_behind: By the location of a table that is purged, the number and size of files there that are none of its
            own, and the keys of symbolic links to directories. They are never removed, and each run reports them.
        unknown: The number of files whose names have no known form. They are never removed.
        complete: Whether everything that was found was dealt with; a later run goes on with the rest.
        marked: The single files, in a dry run.
    """

    root: str
    run: str
    catalog_version: int
    horizon: datetime
    oldest: int
    settings: Mapping[str, str]
    removed: Mapping[str, Total]
    kept: tuple[str, ...]
    refused: Mapping[str, str]
    purged: tuple[str, ...]
    too_young: Total
    held: Mapping[str, Total]
    purges_held: tuple[str, ...]
    not_judged: Mapping[str, str]
    expired: int
    left_out: int
    left_behind: Mapping[str, tuple[Total, tuple[str, ...]]]
    unknown: int
    complete: bool
    marked: MarkResult | None

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing was removed."""
        return not self.run

    @property
    def total(self) -> Total:
        """All that was removed."""
        removed = self.removed.values()
        return Total(sum(each.files for each in removed), sum(each.size for each in removed))

    def as_json(self) -> dict[str, object]:
        """All of it as JSON values. Times are RFC 3339 in UTC."""
        return {
            "root": self.root,
            "run": self.run or None,
            "dry_run": self.is_dry_run,
            "catalog_version": self.catalog_version,
            "horizon": self.horizon.isoformat(),
            "oldest_catalog_version": self.oldest,
            "settings": dict(self.settings),
            "removed": {reason: each.as_json() for reason, each in self.removed.items()},
            "changed_since": list(self.kept),
            "refused": dict(self.refused),
            "purged": list(self.purged),
            "too_young": self.too_young.as_json(),
            "held": {location: each.as_json() for location, each in self.held.items()},
            "purges_held": list(self.purges_held),
            "not_judged": dict(self.not_judged),
            "expired_versions": self.expired,
            "left_out": self.left_out,
            "left_behind": {
                location: {**each.as_json(), "links": list(links)}
                for location, (each, links) in self.left_behind.items()
            },
            "unknown": self.unknown,
            "complete": self.complete,
            **({} if self.marked is None else self.marked.as_json()),
        }

    def lines(self) -> Iterator[str]:
        """The report as text: in a dry run a line for each file; a line for each reason, and what was kept."""
        verb = "would go" if self.is_dry_run else "removed"
        if self.marked is not None:
            yield from self.marked.lines()
        for reason, each in self.removed.items():
            yield f"{verb}: {each} {reason}"
        if self.expired:
            yield f"{'would expire' if self.is_dry_run else 'expired'}: {counted(self.expired, 'version')} of tables"
        for location in self.purged:
            yield f"{'would be purged' if self.is_dry_run else 'purged'}: {location}"
        yield from self._kept_lines()
        if not self.complete:
            yield "the rest is left to the next run"
        yield (
            f"{self.root}: catalog version {self.catalog_version}, versions from {self.oldest} on are kept: "
            f"{self.total} {verb}"
        )

    def _kept_lines(self) -> Iterator[str]:
        if self.too_young.files:
            before = f"{self.horizon:%Y-%m-%dT%H:%M:%SZ}"
            yield f"kept: {self.too_young} not referenced yet, written since {before}"
        for location, each in self.held.items():
            yield f"kept: {each} at {location} that a job may still commit, by an intent"
        for location in self.purges_held:
            yield f"kept: the dropped table at {location} that a job may still read, by an intent"
        for path in self.kept[:_SHOWN]:
            yield f"kept: {path} has changed"
        for path, problem in islice(self.refused.items(), _SHOWN):
            yield f"not removed: {path}: {problem}"
        for location, problem in self.not_judged.items():
            yield f"not judged: {location}: {problem}"
        if self.left_out:
            yield f"not looked at: {counted(self.left_out, 'location')} of tables that did not change"
        for location, (each, links) in self.left_behind.items():
            yield f"left behind by a table that is purged: {location}: {words_of(each, links)}"
        if self.unknown:
            yield f"kept: {counted(self.unknown, 'file')} of unknown names"


def words_of(total: Total, links: Collection[str]) -> str:
    """The number and size of the files left in a directory, in words."""
    linked = f"; what lies behind the symbolic links {', '.join(sorted(links))}" if links else ""
    return f"{total} of unknown names or of other datasets{linked}"


def totals(sizes: Iterable[tuple[str, int]]) -> dict[str, Total]:
    """Files and bytes by name, from the name and the size of each file; sorted."""
    found: dict[str, Total] = {}
    for name, size in sizes:
        before = found.get(name, Total(0, 0))
        found[name] = Total(before.files + 1, before.size + size)
    return dict(sorted(found.items()))

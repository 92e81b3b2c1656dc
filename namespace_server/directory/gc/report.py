"""What a collection did, or would do: values, JSON and text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from lance_core.amounts import counted
from namespace_server.directory.gc.mark_report import Orphan, Total

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class CollectionReport:
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
        too_young: The number and size of files that nothing names and that were written at or after the horizon.
        held: By location, the number and size of files that nothing names, and that an intent keeps.
        purges_held: The locations of dropped tables whose time is over, and that an intent keeps.
        not_judged: By location, why the files there were not judged; the rows of the catalog are at `__manifest`.
        expired: The number of versions of tables whose rows went; their files follow with the history of the catalog.
        left_out: The number of locations at which the run did not look, as nothing changed there.
        left_behind: By the location of a table that is purged, the number and size of files there that are none of its
            own, and the keys of symbolic links to directories. They are never removed, and each run tells them.
        unknown: The number of files whose names have no known form. They are never removed.
        complete: Whether everything that was found was dealt with; a later run goes on with the rest.
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

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing was removed."""
        return not self.run

    @property
    def total(self) -> Total:
        """All that was removed."""
        removed = self.removed.values()
        return Total(sum(each.files for each in removed), sum(each.size for each in removed))

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values. Times are RFC 3339 in UTC."""
        return {
            "root": self.root,
            "run": self.run or None,
            "dry_run": self.is_dry_run,
            "catalog_version": self.catalog_version,
            "horizon": self.horizon.isoformat(),
            "oldest_catalog_version": self.oldest,
            "settings": dict(self.settings),
            "removed": {reason: {"files": each.files, "size": each.size} for reason, each in self.removed.items()},
            "changed_since": list(self.kept),
            "refused": dict(self.refused),
            "purged": list(self.purged),
            "too_young": {"files": self.too_young.files, "size": self.too_young.size},
            "held": {location: {"files": each.files, "size": each.size} for location, each in self.held.items()},
            "purges_held": list(self.purges_held),
            "not_judged": dict(self.not_judged),
            "expired_versions": self.expired,
            "left_out": self.left_out,
            "left_behind": {
                location: {"files": each.files, "size": each.size, "links": list(links)}
                for location, (each, links) in self.left_behind.items()
            },
            "unknown": self.unknown,
            "complete": self.complete,
        }

    def lines(self) -> Iterator[str]:
        """The report as text: a line for each reason, and what was kept."""
        verb = "would go" if self.is_dry_run else "removed"
        for reason, each in self.removed.items():
            yield f"{verb}: {_words(each)} {reason}"
        if self.expired:
            yield f"{'would expire' if self.is_dry_run else 'expired'}: {counted(self.expired, 'version')} of tables"
        for location in self.purged:
            yield f"{'would be purged' if self.is_dry_run else 'purged'}: {location}"
        if self.too_young.files:
            before = f"{self.horizon:%Y-%m-%dT%H:%M:%SZ}"
            yield f"kept: {_words(self.too_young)} that nothing names yet, written since {before}"
        for location, each in self.held.items():
            yield f"kept: {_words(each)} at {location} that a job may still commit, by an intent"
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
        if not self.complete:
            yield "the rest is left to the next run"
        yield (
            f"{self.root}: catalog version {self.catalog_version}, versions from {self.oldest} on are kept: "
            f"{_words(self.total)} {verb}"
        )


def words_of(total: Total, links: Collection[str]) -> str:
    """What is left in a directory, in words."""
    linked = f"; what lies behind the symbolic links {', '.join(sorted(links))}" if links else ""
    return f"{_words(total)} of unknown names or of other datasets{linked}"


def by_location(orphans: Iterable[Orphan]) -> dict[str, Total]:
    """Files and bytes by the directory at the root."""
    found: dict[str, Total] = {}
    for orphan in orphans:
        location = orphan.path.partition("/")[0]
        before = found.get(location, Total(0, 0))
        found[location] = Total(before.files + 1, before.size + orphan.size)
    return dict(sorted(found.items()))


def _words(total: Total) -> str:
    return f"{counted(total.files, 'file')}, {counted(total.size, 'byte')}"

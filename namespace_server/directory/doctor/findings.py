"""Findings of an examination, and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Final

from lance_core.amounts import counted


class Severity(IntEnum):
    """How bad a finding is."""

    NOTE = 0
    """No fault: open work that the server or a garbage collection finishes, or information."""
    WARNING = 1
    """Not as it should be. No current data is lost; some of it can be repaired."""
    DAMAGE = 2
    """Data of a current or kept version is lost or cannot be read."""


@dataclass(frozen=True, slots=True)
class _Kind:
    severity: Severity
    advice: str
    repairable: bool = False


BRANCH_DELETED: Final = "branch-deleted"

KINDS: Final = {
    "no-catalog": _Kind(Severity.NOTE, "the first change of a server, or of a client at this root, makes one"),
    "no-catalog-of-tables": _Kind(
        Severity.WARNING,
        "restore the catalog from a backup if it is lost; to make one of tables of stock clients run "
        "`lance-namespace adopt`",
    ),
    "catalog-unreadable": _Kind(
        Severity.DAMAGE,
        "restore the named file of `__manifest` from a backup; without one, the version before it is the newest whole "
        "one: keep a copy of the root, then remove the damaged manifest",
    ),
    "catalog-went-back": _Kind(
        Severity.DAMAGE, "restore the missing files of `__manifest/_versions` from a backup before the next commit"
    ),
    "catalog-gap": _Kind(
        Severity.DAMAGE, "restore the missing files of `__manifest/_versions` from a backup, or read other versions"
    ),
    "catalog-version-unreadable": _Kind(
        Severity.DAMAGE, "restore the named file from a backup, or read other versions"
    ),
    "catalog-phantom": _Kind(Severity.DAMAGE, "this version was not built on the one before it: read other versions"),
    "catalog-rows-disagree": _Kind(
        Severity.DAMAGE,
        "stop all servers and keep a copy of the root: rows and the changes of the newest version differ",
    ),
    "horizon-in-future": _Kind(
        Severity.DAMAGE, "set the clocks of the machines that collect; writers are refused until this time has come"
    ),
    "dated-ahead": _Kind(
        Severity.WARNING,
        "the clock of a server was ahead, and later commits are dated after it: set its clock; times of history mean "
        "nothing until then",
    ),
    "servers-take-turns": _Kind(
        Severity.NOTE,
        "several servers commit, and lose versions to each other: with the same `peer_secret` for all, one commits "
        "for all",
    ),
    "writer-flag-missing": _Kind(
        Severity.WARNING, "run `lance-namespace gc`: it sets the flag, which shuts out releases that cannot collect"
    ),
    "grants-flag-missing": _Kind(
        Severity.WARNING, "make any change of the catalog: it sets the flag, which shuts out releases without grants"
    ),
    "grant-without-object": _Kind(
        Severity.WARNING, "it allows nothing, and goes when an object of this name is made; revoke it"
    ),
    "pin-without-version": _Kind(Severity.DAMAGE, "restore the copy from a backup, or remove the pin"),
    "tombstone-without-version": _Kind(Severity.WARNING, "the tables that it names cannot come back"),
    "dropped-table-lost": _Kind(
        Severity.DAMAGE,
        "restore the file from a backup; without it the table comes back with a version that is not whole",
    ),
    "kept-version-lost": _Kind(
        Severity.WARNING, "restore the file from a backup: a pin or a dropped table keeps a version that is not whole"
    ),
    "tombstone-of-table": _Kind(
        Severity.DAMAGE, "keep a copy of the location before gc runs: it is taken for that of a dropped table"
    ),
    "shared-location": _Kind(Severity.WARNING, "deregister one of the tables: each changes the files of the other"),
    "plan-unreadable": _Kind(
        Severity.WARNING, "run `lance-namespace gc`: it gives the plan up, and finds anew what goes"
    ),
    "unexplained-directory": _Kind(Severity.NOTE, "no row and no tombstone names it: register it, or remove it"),
    "left-behind": _Kind(
        Severity.NOTE, "gc does not remove what the table's clients did not write: look, and remove it"
    ),
    "quarantined-version": _Kind(
        Severity.WARNING, "run with --repair, or let a server run: the file is put back", repairable=True
    ),
    "quarantined-file": _Kind(Severity.NOTE, "a server commits it again; if it cannot, make the change again"),
    "head-lost": _Kind(
        Severity.DAMAGE,
        "restore the manifest from a backup; where a stock client committed above it and cleaned up "
        "(`unmanaged-version`), deregister the table and register it again, which takes what is there; if there is "
        "neither, drop the table, or delete all its versions",
    ),
    "version-lost": _Kind(
        Severity.WARNING,
        "a client may have removed it: restore the manifest from a backup; if there is none, run with --repair "
        "--remove-lost: the row of the version is removed for good, so that it is not listed",
    ),
    "version-damaged": _Kind(
        Severity.WARNING,
        "restore the manifest from a backup, where its SHA-256 is its name; its row is needed for that, and stays",
    ),
    "not-promoted": _Kind(
        Severity.WARNING, "run with --repair, or let a server run: the manifest gets its name", repairable=True
    ),
    "open-work": _Kind(Severity.NOTE, "a server finishes it within seconds", repairable=True),
    "taken-name": _Kind(
        Severity.WARNING, "run with --repair, or let a server run: the file is quarantined", repairable=True
    ),
    "unmanaged-version": _Kind(
        Severity.NOTE, "committed by path; adopted when the catalog is asked for the table", repairable=True
    ),
    "version-without-row": _Kind(Severity.NOTE, "gc removes it, unless a kept catalog version needs it"),
    "lineage-broken": _Kind(Severity.DAMAGE, "this version was not built on the one before it: compare them"),
    "manifest-unreadable": _Kind(Severity.DAMAGE, "restore the manifest from a backup"),
    "renamed-manifest": _Kind(
        Severity.WARNING,
        "renamed by path, as by `migrate_manifest_paths_v2`, so that the catalog cannot commit over it: run with "
        "--repair: it gets the name of its row",
        repairable=True,
    ),
    "mixed-names": _Kind(Severity.DAMAGE, "a table with manifests of both naming schemes is refused by clients"),
    "file-missing": _Kind(
        Severity.DAMAGE,
        "restore the file from a backup; for the newest version, restore an earlier version of the table",
    ),
    "file-size": _Kind(Severity.DAMAGE, "restore the file from a backup: it is not as long as the version says"),
    "file-unreadable": _Kind(Severity.DAMAGE, "restore the file from a backup: it is not what the version says"),
    "link-out-of-root": _Kind(
        Severity.WARNING,
        "readers get what lies behind the link, with the rights of the server: replace it by the files, unless it was "
        "made by the operator and `allowed_locations` permits it",
    ),
    "old-file-missing": _Kind(
        Severity.WARNING,
        "restore the file from a backup: an earlier version of the table cannot be read as a whole",
    ),
    "transaction-file-missing": _Kind(
        Severity.NOTE, "restore the file from a backup: clients that commit over this version cannot detect conflicts"
    ),
    "index-missing": _Kind(Severity.WARNING, "make the index again, or restore the file from a backup: queries fail"),
    "index-damaged": _Kind(Severity.WARNING, "make the index again, or restore the file from a backup: queries fail"),
    "reference-unreadable": _Kind(Severity.WARNING, "restore the file from a backup, or remove it and make it again"),
    "tag-without-version": _Kind(Severity.WARNING, "delete the tag, or let it name another version"),
    BRANCH_DELETED: _Kind(Severity.NOTE, "its rows go when the branch is next asked for, or with gc"),
    "branch-reference-missing": _Kind(
        Severity.WARNING, "run with --repair, or let a server run: the reference is written", repairable=True
    ),
    "branch-without-rows": _Kind(Severity.NOTE, "made by path, or left by a removal: ask the catalog for its versions"),
    "automatic-cleanup": _Kind(
        Severity.WARNING, "remove the keys `lance.auto_cleanup.*`: stock clients remove versions that the catalog keeps"
    ),
    "not-checked": _Kind(Severity.WARNING, "the store failed; examine the table again"),
}
"""The severity of each code, and the advice."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        code: A name of `KINDS`.
        place: The key of the file, or the name of the object.
        text: The expectation and the finding.
        table: The id of the table, joined by '$'; empty for the catalog.
    """

    code: str
    place: str
    text: str
    table: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return KINDS[self.code].severity

    @property
    def advice(self) -> str:
        """The action for the operator."""
        return KINDS[self.code].advice

    @property
    def repairable(self) -> bool:
        """Whether `--repair` mends it."""
        return KINDS[self.code].repairable


@dataclass(frozen=True, slots=True)
class ExaminationReport:
    """The result of an examination.

    Attributes:
        root: The URI of the root.
        catalog_version: The newest catalog version that could be read; 0 if none could.
        tables: The number of tables that were examined.
        versions: The number of versions that were examined.
        findings: In the order of the catalog, then of the tables.
        repaired: The findings that were repaired.
    """

    root: str
    catalog_version: int
    tables: int
    versions: int
    findings: tuple[Finding, ...]
    repaired: tuple[Finding, ...] = ()

    @property
    def worst(self) -> Severity:
        """The severity of the worst finding; `NOTE` if there is none."""
        return max((finding.severity for finding in self.findings), default=Severity.NOTE)

    def as_json(self) -> dict[str, object]:
        """All of it as JSON values."""
        return {
            "root": self.root,
            "catalog_version": self.catalog_version,
            "tables": self.tables,
            "versions": self.versions,
            "worst": self.worst.name.lower(),
            "findings": [_as_json(finding) for finding in self.findings],
            "repaired": [_as_json(finding) for finding in self.repaired],
        }

    def lines(self) -> Iterator[str]:
        """The report as text: each finding with its remedy, then the counts."""
        for finding in self.repaired:
            yield f"repaired: {finding.code}: {finding.place}"
        for finding in sorted(self.findings, key=lambda found: -found.severity):
            of = f" (table {finding.table})" if finding.table else ""
            yield f"{finding.severity.name.lower()}: {finding.code}: {finding.place}{of}: {finding.text}"
            yield f"    {finding.advice}"
        counts = Counter(finding.severity for finding in self.findings)
        found = ", ".join(f"{counts[each]} {each.name.lower()}" for each in reversed(Severity) if counts[each])
        yield (
            f"{self.root}: catalog version {self.catalog_version}, {counted(self.tables, 'table')}, "
            f"{counted(self.versions, 'version')}: "
            f"{found or 'sound'}"
        )


def _as_json(finding: Finding) -> dict[str, object]:
    return {
        **asdict(finding),
        "severity": finding.severity.name.lower(),
        "repairable": finding.repairable,
        "advice": finding.advice,
    }

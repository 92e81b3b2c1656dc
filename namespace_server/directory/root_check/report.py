"""Findings of a root check, and the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from namespace_server.directory.root_check.speed import BatchCost, Timing


@dataclass(frozen=True, slots=True)
class _RootFindingKind:
    fails: bool
    advice: str


def _fails(advice: str) -> _RootFindingKind:
    return _RootFindingKind(True, advice)


def _warns(advice: str) -> _RootFindingKind:
    return _RootFindingKind(False, advice)


ROOT_FINDINGS: Final = {
    "root-missing": _warns("if the path is right, make the directory and check again"),
    "root-unusable": _fails("name a directory, or a path whose parent is there and can be written"),
    "unreachable": _fails("see that the URI, the endpoint, the region and the credentials are right"),
    "write-refused": _fails("let the server write below the root (S3: s3:PutObject)"),
    "read-refused": _fails("let the server read below the root (S3: s3:GetObject)"),
    "absence-untold": _fails(
        "let the server list the bucket (S3: s3:ListBucket): without it a store does not answer that a key is vacant"
    ),
    "list-refused": _fails("let the server list the root (S3: s3:ListBucket)"),
    "delete-refused": _fails("let the server delete below the root (S3: s3:DeleteObject)"),
    "not-exclusive": _fails(
        "commits would overwrite each other: let a database decide (`--manifest-store`), or take another store"
    ),
    "no-exclusive-write": _fails(
        "nothing can be committed: let a database decide (`--manifest-store`), or take another store"
    ),
    "replace-not-exclusive": _fails("concurrent changes of tags and branches would be lost: take another store"),
    "read-differs": _fails("a reader would miss commits: go around caches and replicas that answer old data"),
    "listing-differs": _fails("a server would miss commits: go around caches and replicas that answer old data"),
    "listing-order": _fails("the newest version is found by the order of keys: take another store"),
    "check-failed": _fails("check again; if it happens again, the store cannot be relied on"),
    "catalog-damaged": _fails("run `lance-namespace doctor`"),
    "catalog-unsupported": _fails("use the release that wrote it, or a later one"),
    "catalog-unmanaged": _warns("take it over with `lance-namespace adopt`"),
    "no-replace": _warns(
        "tags and references of branches cannot be changed, and a manifest whose name is taken cannot be repaired"
    ),
    "no-conditional-delete": _warns(
        "a removal looks and then deletes: do not use the root around the catalog while it is repaired"
    ),
    "copy-refused": _warns("tables cannot be copied by the store"),
    "no-answer": _warns("see why connections break: each such write has to be looked up"),
    "slow": _warns("run the server near the store: the time of a batch is that of a few requests in sequence"),
    "clock-off": _warns(
        "set the clock of this machine by NTP: beyond 15 minutes S3 refuses requests, beyond an hour gc stops, "
        "and staged versions get a wrong age"
    ),
    "left-behind": _warns("the next runs of gc remove it, or remove the directory yourself"),
}
"""Whether the root must not be used, and the advice, for each code. The codes do not change."""


def told_by(error: Exception | None) -> str:
    """The text of a store's error, on one line."""
    return " ".join(str(error).split())


@dataclass(frozen=True, slots=True)
class RootFinding:
    """One finding.

    Attributes:
        code: A name of `ROOT_FINDINGS`.
        text: The expectation and the finding.
    """

    code: str
    text: str

    @property
    def fails(self) -> bool:
        """Whether the root must not be used."""
        return ROOT_FINDINGS[self.code].fails

    @property
    def severity(self) -> str:
        """`error` or `warning`."""
        return "error" if self.fails else "warning"

    @property
    def advice(self) -> str:
        """The action for the operator."""
        return ROOT_FINDINGS[self.code].advice


@dataclass(frozen=True, slots=True)
class FoundCatalog:
    """The catalog that is at a root.

    Attributes:
        version: Its newest version.
        written_by: The library that wrote it, and its release.
        managed: Whether it keeps the versions of its tables.
    """

    version: int
    written_by: str
    managed: bool


@dataclass(frozen=True, slots=True)
class RootReport:
    """The result of a check.

    Attributes:
        root: The URI of the root.
        checked: Whether all probes were made.
        findings: In the order of the probes.
        timings: The times of requests by their name, if they were measured.
        clock_offset: Seconds by which the store's clock is ahead of this machine's, as far as that is certain; None if
            it is not known.
        catalog: The catalog that is there, None if there is none or it is not known.
    """

    root: str
    checked: bool
    findings: tuple[RootFinding, ...]
    timings: Mapping[str, Timing] = field(default_factory=dict)
    clock_offset: float | None = None
    catalog: FoundCatalog | None = None

    @property
    def unreachable(self) -> bool:
        """Whether the store did not answer: nothing is known of the root then."""
        return any(finding.code == "unreachable" for finding in self.findings)

    @property
    def usable(self) -> bool | None:
        """Whether the root can be used; None if it is not known."""
        if self.unreachable:
            return None
        if any(finding.fails for finding in self.findings):
            return False
        return True if self.checked else None

    @property
    def cost(self) -> BatchCost | None:
        """The expected cost of a batch, if it was measured."""
        return BatchCost.of(self.timings) if self.timings else None

    def as_json(self) -> dict[str, object]:
        """All of it as JSON values; times in seconds."""
        return {
            "root": self.root,
            "usable": self.usable,
            "findings": [
                {"code": each.code, "severity": each.severity, "text": each.text, "advice": each.advice}
                for each in self.findings
            ],
            "catalog": None
            if self.catalog is None
            else {
                "version": self.catalog.version,
                "written_by": self.catalog.written_by,
                "managed": self.catalog.managed,
            },
            "clock_offset": self.clock_offset,
            "requests": {
                name: {"median": timing.median, "slowest": timing.slowest} for name, timing in self.timings.items()
            },
            "batch": None if self.cost is None else self.cost.as_json(),
        }

    def lines(self) -> Iterator[str]:
        """The report as text: each finding with its advice, the catalog, the cost of a batch, and the verdict."""
        for finding in sorted(self.findings, key=lambda found: not found.fails):
            yield f"{finding.severity}: {finding.code}: {finding.text}"
            yield f"    {finding.advice}"
        if self.catalog is not None:
            yield f"catalog: version {self.catalog.version}, written by {self.catalog.written_by}"
        elif self.usable:
            yield "catalog: none yet; the first commit makes one"
        if self.cost is not None:
            shown = ", ".join(f"{name} {timing}" for name, timing in self.timings.items())
            yield f"requests, median (slowest): {shown}"
            yield self.cost.text()
        if self.clock_offset is not None:
            yield f"clock: {_apart(self.clock_offset)}"
        verdict = {True: "can be used", False: "must not be used", None: "was not checked"}[self.usable]
        counts = [sum(finding.severity == each for finding in self.findings) for each in ("error", "warning")]
        found = ", ".join(
            f"{count} {name}{'s' if count > 1 else ''}"
            for count, name in zip(counts, ("error", "warning"), strict=True)
            if count
        )
        yield f"{self.root}: {verdict}{f': {found}' if found else ''}"


def _apart(offset: float) -> str:
    if abs(offset) < 0.05:
        return "that of the store and of this machine agree"
    return f"the store is {abs(offset):.1f} s {'ahead of' if offset > 0 else 'behind'} this machine"

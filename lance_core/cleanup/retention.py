"""Retention: which versions may be removed, by age, count and references. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Retention:
    """Which versions are kept. A version may be removed if neither rule keeps it; without rules all are kept.

    Attributes:
        older_than: Keep versions that were superseded less than this ago.
        keep: Keep the newest versions, as many as this.
        min_age: Keep every version for this time after it was superseded: while it exists its number is taken, and
            delayed writers must not be able to claim it.
    """

    older_than: timedelta | None = None
    keep: int | None = None
    min_age: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 1:
            raise ValueError(f"keep {self.keep}: expected at least 1, because the newest version is never removed")
        if self.older_than is not None and self.older_than < timedelta(0):
            raise ValueError(f"older than {self.older_than}: expected a duration of at least 0")


@dataclass(frozen=True, slots=True)
class DatedVersion:
    """A version and the time when its manifest was written, by the store's clock."""

    version: int
    written: datetime


@dataclass(frozen=True, slots=True)
class RetentionDecision:
    """The versions that may be removed, ascending, and why each other version is kept."""

    expired: tuple[int, ...]
    kept: Mapping[int, str]


def judge_versions(
    versions: Sequence[DatedVersion], retention: Retention, now: datetime, pinned: Mapping[int, str]
) -> RetentionDecision:
    """Apply a retention to the versions of one branch.

    The age of a version counts from when it was superseded by the next version. The newest version is always kept.

    Args:
        versions: The versions, ascending.
        retention: The rules.
        now: The time by the store's clock.
        pinned: By version, why it must be kept regardless of the rules.
    """
    kept: dict[int, str] = {}
    expired: list[int] = []
    for place, version in enumerate(versions):
        younger = len(versions) - 1 - place
        superseded = versions[place + 1].written if younger else None
        reason = _keep(version.version, retention, now, superseded, younger, pinned)
        if reason is None:
            expired.append(version.version)
        else:
            kept[version.version] = reason
    return RetentionDecision(tuple(expired), kept)


def _keep(
    version: int,
    retention: Retention,
    now: datetime,
    superseded: datetime | None,
    younger: int,
    pinned: Mapping[int, str],
) -> str | None:
    if superseded is None:
        return "the newest version"
    if version in pinned:
        return pinned[version]
    if retention.keep is None and retention.older_than is None:
        return "no retention was given"
    if retention.keep is not None and younger < retention.keep:
        return f"one of the newest {retention.keep}"
    wanted = max(retention.min_age, retention.older_than or timedelta(0))
    if now - superseded < wanted:
        return f"superseded at {superseded:%Y-%m-%dT%H:%M:%SZ}, less than {wanted} ago"
    return None

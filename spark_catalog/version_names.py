"""How Spark names a version of a table in a catalog: by number, tag, branch, time or catalog version.

`VERSION AS OF`, `TIMESTAMP AS OF`, the bounds of `CHANGES`, the options of the data source and `read_table` name
versions this way. Every version is looked up as of one catalog version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from lance_core.format.naming import MAIN_BRANCH
from namespace_client.access import CatalogAccess
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import CommitRejected
from namespace_client.read_point import MovingReadPoint
from spark_catalog.errors import InvalidWrite
from table_data.batch_operations import DELIMITER, Json, TableId, TableState

_CATALOG: Final = re.compile(r"catalog:(\d+)")
_MICROSECONDS: Final = 1000
_NO_VERSION: Final = frozenset({ErrorCode.TABLE_VERSION_NOT_FOUND, ErrorCode.TABLE_BRANCH_NOT_FOUND})


class MissingTable(InvalidWrite):
    """The table does not exist at a catalog version, or has no version there."""


class MissingVersion(InvalidWrite):
    """The table has no version of a name."""


@dataclass(frozen=True, slots=True)
class VersionOfCatalog:
    """Name of a version: the newest one at a catalog version."""

    number: int


@dataclass(frozen=True, slots=True)
class CommitTime:
    """Name of a version: the newest one that was committed by a time, in microseconds since the epoch."""

    microseconds: int


@dataclass(frozen=True, slots=True)
class Tag:
    """A tagged version. `branch` is None for the main branch."""

    version: int
    branch: str | None

    @classmethod
    def of(cls, tag: Json) -> Self:
        """The tag that the catalog lists."""
        branch = tag.get("branch")
        return cls(int(tag["version"]), None if branch == MAIN_BRANCH else branch)


VersionName = int | str | VersionOfCatalog | CommitTime
"""A number, the name of a tag or a branch, a catalog version, or a time."""


def parse_version(text: str) -> int | str | VersionOfCatalog:
    """The name in `VERSION AS OF` and in a bound of `CHANGES`: `catalog:` and a number is a catalog version."""
    of_catalog = _CATALOG.fullmatch(text)
    if of_catalog is not None:
        return VersionOfCatalog(int(of_catalog[1]))
    return int(text) if text.isdecimal() else text


def newest_by(versions: Sequence[Json], time: CommitTime, *, is_before: bool = False) -> int | None:
    """The newest of listed versions that was committed by a time, with `is_before` before it; None if there is none.

    Args:
        versions: Versions as `CatalogAccess.versions` lists them, newest first.
        time: The time.
        is_before: Whether a version that was committed at that very time is left out.
    """
    for version in versions:
        committed = int(version["timestamp_millis"]) * _MICROSECONDS
        if committed < time.microseconds or (committed == time.microseconds and not is_before):
            return int(version["version"])
    return None


def _shown(microseconds: int) -> str:
    """A time as text. It may be one that `datetime` does not have."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)).isoformat()
    except OverflowError:
        return f"{microseconds} microseconds after 1970"


class NamedVersions:
    """Versions of one table by their names, as of one catalog version.

    Its methods raise `CatalogUnreachable` without a response, and `CommitRejected` for another error of the catalog.

    Args:
        access: The catalog.
        table: Path of the table.
        at: Catalog version in which names are looked up; the newest one if None, and then also one that adopts what
            was committed to the table around the catalog.
    """

    def __init__(self, access: CatalogAccess, table: TableId, at: int | None) -> None:
        self._access = access
        self._table = table
        self._point = MovingReadPoint(access, access.state().version if at is None else at, fixed=at is not None)
        self._name = DELIMITER.join(table)

    @property
    def _at(self) -> int:
        return self._point.version

    def find(self, name: VersionName | None = None, *, branch: str | None = None) -> TableState:
        """The table at a version.

        Args:
            name: Name of the version, the newest one if None. A tag is preferred to a branch of the same name.
            branch: Branch on which a number or a time is looked up, the main branch if None.

        Raises:
            MissingTable: There is no such table, or it is only declared.
            MissingVersion: There is no such version, tag or branch.
        """
        match name:
            case VersionOfCatalog():
                at = self.check_catalog_version(name)
                return NamedVersions(self._access, self._table, at).find(branch=branch)
            case CommitTime():
                return self._describe(self._newest_by(name, branch), branch)
            case str():
                tag = self.tag(name)
                if tag is not None:
                    return self._describe(tag.version, tag.branch)
                with self._listing():
                    is_branch = name in self._access.branches(self._table)
                if is_branch:
                    return self._describe(None, name)
                raise MissingVersion(
                    f"{self._name}: version {name!r}: expected a number, a tag, a branch, or catalog: and a catalog "
                    "version"
                )
            case _:
                return self._describe(name, branch)

    def tagged(self, name: str) -> TableState:
        """The table at a tagged version. Raises `MissingTable` and `MissingVersion`."""
        tag = self.tag(name)
        if tag is None:
            raise MissingVersion(f"{self._name}: tag {name!r}: there is no such tag")
        return self._describe(tag.version, tag.branch)

    def tag(self, name: str) -> Tag | None:
        """The tag of a name, None if there is none. Raises `MissingTable`."""
        with self._listing():
            found = self._access.tags(self._table).get(name)
        return None if found is None else Tag.of(found)

    def check_catalog_version(self, name: VersionOfCatalog) -> int:
        """The number of a catalog version up to the one in which names are looked up. Raises `MissingVersion`."""
        if not 0 < name.number <= self._at:
            raise MissingVersion(f"{self._name}: catalog version {name.number}: expected a number from 1 to {self._at}")
        return name.number

    def _newest_by(self, time: CommitTime, branch: str | None) -> int:
        with self._listing():
            listed = self._access.versions(self._table, branch=branch, at=self._at)
        number = newest_by(listed, time)
        if number is None:
            oldest = _shown(int(listed[-1]["timestamp_millis"]) * _MICROSECONDS) if listed else None
            raise MissingVersion(f"{self._name}: no version at {_shown(time.microseconds)}; the oldest is of {oldest}")
        return number

    def _describe(self, version: int | None, branch: str | None) -> TableState:
        if not self._at:  # no catalog version has been made
            raise self._missing_table()
        line = None if branch == MAIN_BRANCH else branch
        try:
            if version is None:
                state = self._point.table(self._table, branch=line)
            else:
                state = self._access.table(self._table, at=self._at, branch=line, version=version)
        except CommitRejected as error:
            if error.code not in _NO_VERSION:
                raise
            place = "" if branch is None else f" of branch {branch}"
            shown = "any version" if version is None else f"version {version}"
            raise MissingVersion(
                f"{self._name}: {shown}{place}: expected one that its metadata table versions lists"
            ) from error
        if state is None or state.version is None:
            raise self._missing_table()
        return state

    @contextmanager
    def _listing(self) -> Iterator[None]:
        try:
            yield
        except CommitRejected as error:
            if error.code == ErrorCode.TABLE_NOT_FOUND:
                raise self._missing_table() from error
            raise

    def _missing_table(self) -> MissingTable:
        return MissingTable(f"{self._name}: no such table at catalog version {self._at}")

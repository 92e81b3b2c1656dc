"""Earlier versions: by number, tag, branch, timestamp or catalog version. They are read-only."""

from __future__ import annotations

import re

from lance_core.format.naming import MAIN_BRANCH
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import CommitRejected
from spark_catalog.sql.access import Access
from spark_catalog.sql.errors import InvalidStatement, NoSuchTable
from spark_catalog.sql.tables import describe
from spark_catalog.sql.transactions import SqlTransaction
from table_data.batch_operations import DELIMITER, Json, TableId, TableState

_CATALOG = re.compile(r"catalog:(\d+)")
_MICROSECONDS = 1000


def load(
    access: Access,
    transaction: SqlTransaction | None,
    path: TableId,
    version: str | None,
    timestamp: int | None,
) -> Json:
    """A table at an earlier version.

    Args:
        access: The catalog.
        transaction: Transaction of the statement, for the catalog version at which the table is looked up.
        path: Path of the table.
        version: A number, `catalog:` and a catalog version, or the name of a tag or a branch.
        timestamp: Microseconds since the epoch: the newest version of that time.

    Returns:
        The table as Java gets it.

    Raises:
        NoSuchTable: There is no such table at that catalog version.
        InvalidStatement: There is no such version.
    """
    head = access.server.state().version if transaction is None else transaction.catalog_version
    name = DELIMITER.join(path)
    of_catalog = None if version is None else _CATALOG.fullmatch(version)
    if of_catalog is not None:
        wanted = int(of_catalog[1])
        if not 0 < wanted <= head:
            raise InvalidStatement(f"{name}: catalog version {wanted}: expected at most {head}")
        return _described(access, _table(access, path, wanted), wanted)
    if timestamp is not None:
        number = _at_time(access, path, head, timestamp)
        return _described(access, _table(access, path, head, number), head)
    assert version is not None
    if version.isdigit():
        return _described(access, _table(access, path, head, int(version)), head)
    tag = access.requests.tags(path).get(version)
    if tag is not None:
        tagged = _table(access, path, head, int(tag["version"]), tag.get("branch"))
        return _described(access, tagged, head)
    if version in access.requests.branches(path):
        return _described(access, _table(access, path, head, branch=version), head)
    raise InvalidStatement(
        f"{name}: version {version!r}: expected a number, a tag, a branch, or catalog: and a catalog version"
    )


def _table(access: Access, path: TableId, at: int, version: int | None = None, branch: str | None = None) -> TableState:
    name = DELIMITER.join(path)
    try:
        state = access.server.table(path, at=at, branch=None if branch == MAIN_BRANCH else branch, version=version)
    except CommitRejected as error:
        if error.code not in {ErrorCode.TABLE_VERSION_NOT_FOUND, ErrorCode.TABLE_BRANCH_NOT_FOUND}:
            raise
        place = "" if branch is None else f" of branch {branch}"
        shown = "any version" if version is None else f"version {version}"
        raise InvalidStatement(
            f"{name}: {shown}{place}: expected one that its metadata table versions lists"
        ) from error
    if state is None or state.version is None:
        raise NoSuchTable(f"{name}: no such table at catalog version {at}")
    return state


def _at_time(access: Access, path: TableId, head: int, timestamp: int) -> int:
    listed = access.requests.versions(path, at=head)
    for version in listed:
        if int(version["timestamp_millis"]) * _MICROSECONDS <= timestamp:
            return int(version["version"])
    oldest = listed[-1]["timestamp_millis"] if listed else None
    raise InvalidStatement(
        f"{DELIMITER.join(path)}: no version at {timestamp // _MICROSECONDS} ms; the oldest is of {oldest} ms"
    )


def _described(access: Access, state: TableState, at: int) -> Json:
    try:
        file = access.versions.manifest(state)
    except (OSError, ValueError, LookupError, CommitRejected) as error:
        raise InvalidStatement(f"{DELIMITER.join(state.id)}: version {state.version}: {error}") from error
    return describe(state, file, at=at, steps=0, properties=state.properties, read_only=True)

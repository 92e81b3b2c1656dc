"""Earlier versions: by number, tag, branch, timestamp or catalog version. They are read-only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from namespace_client.errors import CommitRejected
from spark_catalog.sql.errors import InvalidStatement, NoSuchTable
from spark_catalog.sql.tables import describe
from spark_catalog.sql.transactions import SqlTransaction
from table_data.batch_operations import DELIMITER, Json, TableId, TableState

if TYPE_CHECKING:
    from spark_catalog.sql.service import CatalogService

_CATALOG = re.compile(r"catalog:(\d+)")
_MICROSECONDS = 1000


def load(
    service: CatalogService,
    transaction: SqlTransaction | None,
    path: TableId,
    version: str | None,
    timestamp: int | None,
) -> Json:
    """A table at an earlier version.

    Args:
        service: The catalog.
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
    head = service.server.state().version if transaction is None else transaction.catalog_version
    name = DELIMITER.join(path)
    of_catalog = None if version is None else _CATALOG.fullmatch(version)
    if of_catalog is not None:
        wanted = int(of_catalog[1])
        if not 0 < wanted <= head:
            raise InvalidStatement(f"{name}: catalog version {wanted}: expected at most {head}")
        return _described(service, _table(service, path, wanted), wanted)
    state = _table(service, path, head)
    if timestamp is not None:
        number = _at_time(service, path, head, timestamp)
        return _described(service, _with(state, number, None), head)
    assert version is not None
    if version.isdigit():
        if not service.requests.has_version(path, int(version)):
            raise InvalidStatement(f"{name}: version {version}: expected one that its metadata table versions lists")
        return _described(service, _with(state, int(version), None), head)
    tag = service.requests.tags(path).get(version)
    if tag is not None:
        return _described(service, _with(state, int(tag["version"]), tag.get("branch")), head)
    if version in service.requests.branches(path):
        newest = service.requests.versions(path, branch=version)[0]
        return _described(service, _with(state, int(newest["version"]), version), head)
    raise InvalidStatement(
        f"{name}: version {version!r}: expected a number, a tag, a branch, or catalog: and a catalog version"
    )


def _table(service: CatalogService, path: TableId, at: int) -> TableState:
    state = service.server.table(path, at=at)
    if state is None or state.version is None:
        raise NoSuchTable(f"{DELIMITER.join(path)}: no such table at catalog version {at}")
    return state


def _with(state: TableState, version: int, branch: str | None) -> TableState:
    branch = None if branch == "main" else branch
    return TableState(state.id, state.uri, version, state.properties, branch)


def _at_time(service: CatalogService, path: TableId, head: int, timestamp: int) -> int:
    listed = service.requests.versions(path, at=head)
    for version in listed:
        if int(version["timestamp_millis"]) * _MICROSECONDS <= timestamp:
            return int(version["version"])
    oldest = listed[-1]["timestamp_millis"] if listed else None
    raise InvalidStatement(
        f"{DELIMITER.join(path)}: no version at {timestamp // _MICROSECONDS} ms; the oldest is of {oldest} ms"
    )


def _described(service: CatalogService, state: TableState, at: int) -> Json:
    assert state.version is not None
    try:
        file = service.versions.manifest(state.id, state.uri, state.branch, state.version, state.identity)
    except (OSError, ValueError, LookupError, CommitRejected) as error:
        raise InvalidStatement(f"{DELIMITER.join(state.id)}: version {state.version}: {error}") from error
    return describe(state, file, at=at, steps=0, properties=state.properties, read_only=True)

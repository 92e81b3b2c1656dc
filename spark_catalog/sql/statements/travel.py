"""Earlier versions: by number, tag, branch, timestamp or catalog version. They are read-only."""

from __future__ import annotations

from namespace_client.errors import CommitRejected
from spark_catalog.sql.access import Access
from spark_catalog.sql.errors import InvalidStatement, NoSuchTable
from spark_catalog.sql.tables import describe
from spark_catalog.sql.transactions import SqlTransaction
from spark_catalog.version_names import (
    CommitTime,
    MissingTable,
    MissingVersion,
    NamedVersions,
    VersionName,
    VersionOfCatalog,
    parse_version,
)
from table_data.batch_operations import DELIMITER, Json, TableId, TableState


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
    at = access.server.state().version if transaction is None else transaction.catalog_version
    name: VersionName
    if timestamp is not None:
        name = CommitTime(timestamp)
    else:
        assert version is not None
        name = parse_version(version)
    try:
        state = NamedVersions(access.server, path, at).find(name)
    except MissingTable as error:
        raise NoSuchTable(str(error)) from error
    except MissingVersion as error:
        raise InvalidStatement(str(error)) from error
    return _described(access, state, name.number if isinstance(name, VersionOfCatalog) else at)


def _described(access: Access, state: TableState, at: int) -> Json:
    try:
        file = access.versions.manifest(state)
    except (OSError, ValueError, LookupError, CommitRejected) as error:
        raise InvalidStatement(f"{DELIMITER.join(state.id)}: version {state.version}: {error}") from error
    return describe(state, file, at=at, steps=0, properties=state.properties, read_only=True)

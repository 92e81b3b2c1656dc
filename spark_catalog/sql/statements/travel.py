"""Versions by number, tag, branch, timestamp or catalog version, and reads with options. They are read-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql.types import FloatType, LongType, StructField, StructType

from namespace_client.errors import CommitRejected
from spark_catalog.options import ReadOptions, named_read_options
from spark_catalog.sql.access import Access
from spark_catalog.sql.errors import InvalidStatement, NoSuchTable
from spark_catalog.sql.schemas import parse_schema
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
    with _sql_errors():
        state = NamedVersions(access.server, path, at).find(name)
    return _described(access, state, name.number if isinstance(name, VersionOfCatalog) else at)


def load_named(access: Access, path: TableId, options: ReadOptions, at: int) -> Json:
    """A table at the version that options name, with names looked up at catalog version `at`.

    Raises as `load` does.
    """
    with _sql_errors():
        named = NamedVersions(access.server, path, at)
        if options.catalog_version is not None:
            at = named.check_catalog_version(VersionOfCatalog(options.catalog_version))
            named = NamedVersions(access.server, path, at)
        state = options.find(named)
    return _described(access, state, at)


def with_options(table: Json, given: Mapping[str, str]) -> Json:
    """A table that was loaded, as a read with options shows it. The options become part of its reference.

    Raises `InvalidStatement` for a column that there is not.
    """
    options = named_read_options(given)
    stored = parse_schema(table["schema"])
    scores = ("_distance",) if options.nearest else ("_score",) if options.text else ()
    extra = {name: StructField(name, LongType()) for name in options.extra_columns}
    extra |= {name: StructField(name, FloatType()) for name in scores}
    names = (*(options.columns or (*stored.names, *scores)), *options.extra_columns)
    unknown = [name for name in names if name not in stored.names and name not in extra]
    if unknown or len(set(names)) != len(names):
        raise InvalidStatement(
            f"{DELIMITER.join(table['ref']['table'])}: option columns: expected columns among {stored.names}, each "
            f"once, found {list(options.columns or names)}"
        )
    shown = StructType([extra[name] if name in extra else stored[name] for name in names])
    is_limited = options.limit is not None or options.nearest is not None or options.text is not None
    return table | {
        "ref": table["ref"] | {"options": dict(given)},
        "schema": shown.jsonValue(),
        "read_only": True,
        "all_rows": not is_limited and options.filter is None,
        "limited": is_limited,
    }


@contextmanager
def _sql_errors() -> Iterator[None]:
    try:
        yield
    except MissingTable as error:
        raise NoSuchTable(str(error)) from error
    except MissingVersion as error:
        raise InvalidStatement(str(error)) from error


def _described(access: Access, state: TableState, at: int) -> Json:
    try:
        file = access.versions.manifest(state)
    except (OSError, ValueError, LookupError, CommitRejected) as error:
        raise InvalidStatement(f"{DELIMITER.join(state.id)}: version {state.version}: {error}") from error
    return describe(state, file, at=at, steps=0, properties=state.properties, fixed=True)

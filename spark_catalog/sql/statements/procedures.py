"""Procedures: `CALL lance.system.NAME(...)`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from lance_core.compaction import CompactionOptions
from namespace_client.results import TransactionResult
from spark_catalog.sql.access import Access
from spark_catalog.sql.catalog_requests import parse_names, sql_errors, table_path
from spark_catalog.sql.errors import InvalidStatement, NoSuchNamespace
from spark_catalog.sql.sessions import Sessions, SqlSession
from spark_catalog.sql.statements import grants
from spark_catalog.version_names import Tag
from table_data.batch_operations import Json, TableId

Kind = Literal["string", "long", "boolean"]
Row = list[Any]
_HOUR = 3_600_000
_OF_TABLES = ("table", "new_name")
"""Parameters that name a table."""

_TYPES = {"string": StringType(), "long": LongType(), "boolean": BooleanType()}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter. `default` is an SQL expression; without one the parameter must be given."""

    name: str
    type: Kind
    comment: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure, and the columns of its result."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    columns: tuple[tuple[str, Kind], ...]
    run: Callable[[Access, Sessions, SqlSession, Json], Sequence[Row]]
    changes_rows: bool = False
    """Whether the rows of the table may be others afterwards."""


def descriptions() -> list[Json]:
    """All procedures as Java gets them."""
    return [
        {
            "name": procedure.name,
            "description": procedure.description,
            "parameters": [
                {"name": each.name, "type": each.type, "comment": each.comment, "default": each.default}
                for each in procedure.parameters
            ],
        }
        for procedure in _PROCEDURES.values()
    ]


@dataclass(frozen=True, slots=True)
class NameScope:
    """The scope of names of tables: the name of the catalog in SQL, and the namespace of the session."""

    catalog: str
    namespace: TableId


def call(access: Access, sessions: Sessions, session: SqlSession, name: str, values: Json, place: NameScope) -> Json:
    """Run a procedure. Raises `InvalidStatement` for an unknown one."""
    procedure = _PROCEDURES.get(name)
    if procedure is None:
        raise InvalidStatement(f"no procedure {name!r}: expected one of {', '.join(_PROCEDURES)}")
    tables = [each for each in _OF_TABLES if values.get(each) is not None]
    values = values | {each: _full_name(access, values[each], place) for each in tables}
    rows = procedure.run(access, sessions, session, values)
    schema = StructType([StructField(column, _TYPES[kind]) for column, kind in procedure.columns])
    changed = [list(table_path(values["table"]))] if procedure.changes_rows else []
    return {"schema": schema.jsonValue(), "rows": [list(row) for row in rows], "changed": changed}


def _full_name(access: Access, text: str, place: NameScope) -> str:
    """The name of a table with its namespace: that of the session if there is none, and without the catalog."""
    names = parse_names(text)
    if len(names) == 1 and place.namespace:
        full = (*place.namespace, *names)
    elif len(names) > 2 and names[0] == place.catalog and not _is_namespace(access, names[:-1]):
        full = names[1:]
    else:
        return text
    return ".".join(f"`{name}`" for name in full)


def _is_namespace(access: Access, path: TableId) -> bool:
    try:
        access.requests.namespace(path)
    except NoSuchNamespace:
        return False
    return True


# -- transactions


def _begin(_access: Access, sessions: Sessions, session: SqlSession, values: Json) -> Sequence[Row]:
    isolation = values["isolation"]
    if isolation not in ("snapshot", "serializable"):
        raise InvalidStatement(f"isolation {isolation!r}: expected snapshot or serializable")
    begun = sessions.begin(session, isolation, values["message"])
    return [[begun.catalog_version, isolation]]


def _commit(_access: Access, sessions: Sessions, session: SqlSession, _values: Json) -> Sequence[Row]:
    result: TransactionResult = sessions.commit(session)
    if not result.tables:
        return [[result.transaction_id, result.catalog_version, None, None, False]]
    return [
        [result.transaction_id, result.catalog_version, ".".join(table.id), table.version, table.rebased]
        for table in result.tables
    ]


def _rollback(_access: Access, sessions: Sessions, session: SqlSession, _values: Json) -> Sequence[Row]:
    sessions.rollback(session)
    return []


# -- grants


def _changing(call: grants.GrantProcedure) -> Callable[[Access, Sessions, SqlSession, Json], Sequence[Row]]:
    def run(access: Access, sessions: Sessions, session: SqlSession, values: Json) -> Sequence[Row]:
        sessions.refuse_inside(session, call.__name__)
        return call(access, values)

    return run


def _grants(access: Access, _sessions: Sessions, _session: SqlSession, values: Json) -> Sequence[Row]:
    return grants.grants(access, values)


def _can(access: Access, _sessions: Sessions, _session: SqlSession, values: Json) -> Sequence[Row]:
    return grants.can(access, values)


# -- tables


def _compact(_access: Access, sessions: Sessions, session: SqlSession, values: Json) -> Sequence[Row]:
    path = table_path(values["table"])
    options = None
    if values["target_rows_per_fragment"] is not None:
        options = CompactionOptions(target_rows_per_fragment=values["target_rows_per_fragment"])
    with sessions.writing(session, None) as statement:
        changes = statement.transaction.require(path)
        changes.require_head()
        done = changes.compact(options, message=None)
    return [[done.removed_fragments, done.added_fragments] if done is not None else [0, 0]]


def _rollback_to_version(_access: Access, sessions: Sessions, session: SqlSession, values: Json) -> Sequence[Row]:
    path = table_path(values["table"])
    with sessions.writing(session, None) as statement:
        changes = statement.transaction.require(path)
        before = changes.require_head().version
        changes.restore(values["version"], message=None)
    return [[before, values["version"]]]


def _cleanup(access: Access, sessions: Sessions, session: SqlSession, values: Json) -> Sequence[Row]:
    """Versions with a tag, and those that a branch begins at, stay."""
    path = table_path(values["table"])
    sessions.refuse_inside(session, "cleanup")
    keep, hours = values["retain_last"], values["older_than_hours"]
    if keep < 1 or hours < 0:
        raise InvalidStatement(f"cleanup of {values['table']}: expected retain_last >= 1 and older_than_hours >= 0")
    with sql_errors():
        listed = access.server.versions(path)
        tags = [Tag.of(tag) for tag in access.server.tags(path).values()]
        branches = access.server.branches(path).values()
    named = {tag.version for tag in tags if tag.branch is None}
    named |= {int(branch["parentVersion"]) for branch in branches}
    newest = time.time() * 1000 - hours * _HOUR
    old = [int(found["version"]) for found in listed[keep:] if int(found["timestamp_millis"]) <= newest]
    removed = sorted(set(old) - named)
    if removed:
        access.requests.delete_versions(path, removed)
    return [[len(removed)]]


def _create_tag(access: Access, sessions: Sessions, session: SqlSession, values: Json) -> Sequence[Row]:
    path = table_path(values["table"])
    sessions.refuse_inside(session, "create_tag")
    version = values["version"]
    if version is None:
        state = access.server.table(path)
        version = None if state is None else state.version
    access.requests.create_tag(path, values["tag"], version)
    return [[values["tag"], version]]


def _drop_tag(access: Access, sessions: Sessions, session: SqlSession, values: Json) -> Sequence[Row]:
    sessions.refuse_inside(session, "drop_tag")
    access.requests.delete_tag(table_path(values["table"]), values["tag"])
    return []


def _create_branch(access: Access, sessions: Sessions, session: SqlSession, values: Json) -> Sequence[Row]:
    sessions.refuse_inside(session, "create_branch")
    access.requests.create_branch(table_path(values["table"]), values["branch"], values["version"])
    return [[values["branch"]]]


def _drop_branch(access: Access, sessions: Sessions, session: SqlSession, values: Json) -> Sequence[Row]:
    sessions.refuse_inside(session, "drop_branch")
    access.requests.delete_branch(table_path(values["table"]), values["branch"])
    return []


def _undrop(access: Access, sessions: Sessions, session: SqlSession, values: Json) -> Sequence[Row]:
    sessions.refuse_inside(session, "undrop")
    path = table_path(values["table"])
    target = path if values["new_name"] is None else table_path(values["new_name"])
    access.requests.undrop_table(path, target)
    return [[".".join(target)]]


def _dropped(access: Access, _sessions: Sessions, _session: SqlSession, _values: Json) -> Sequence[Row]:
    with sql_errors():
        found = access.server.dropped_tables()
    return [
        [".".join(each.id), each.version, int(each.dropped_at.timestamp() * 1000), each.tombstone] for each in found
    ]


_TABLE = Parameter("table", "string", "namespace.table")
_ON = (
    Parameter("table", "string", "namespace.table that is meant, with NULL for the two below", "NULL"),
    Parameter("namespace", "string", "namespace that is meant, and all in it", "NULL"),
    Parameter("on_catalog", "boolean", "whether the catalog is meant, and all in it", "false"),
)
_TO = (
    Parameter("principal", "string", "principal that is meant", "NULL"),
    Parameter("role", "string", "role that is meant, in place of a principal", "NULL"),
)
_CHANGED: tuple[tuple[str, Kind], ...] = (("changed", "boolean"), ("privileges", "string"))

_ALL = (
    Procedure(
        "begin",
        "Begin a transaction of several statements.",
        (
            Parameter("isolation", "string", "snapshot or serializable", "'snapshot'"),
            Parameter("message", "string", "text that is stored with the batch", "NULL"),
        ),
        (("catalog_version", "long"), ("isolation", "string")),
        _begin,
    ),
    Procedure(
        "commit",
        "Commit the open transaction in one batch.",
        (),
        (
            ("transaction_id", "string"),
            ("catalog_version", "long"),
            ("table", "string"),
            ("version", "long"),
            ("rebased", "boolean"),
        ),
        _commit,
    ),
    Procedure("rollback", "End the open transaction without a commit.", (), (), _rollback),
    Procedure(
        "compact",
        "Join small fragments, and rewrite fragments with many deleted rows.",
        (_TABLE, Parameter("target_rows_per_fragment", "long", "rows of a fragment", "NULL")),
        (("removed_fragments", "long"), ("added_fragments", "long")),
        _compact,
    ),
    Procedure(
        "rollback_to_version",
        "Make a new version with the content of an earlier one.",
        (_TABLE, Parameter("version", "long", "number of the earlier version")),
        (("previous_version", "long"), ("restored_version", "long")),
        _rollback_to_version,
        changes_rows=True,
    ),
    Procedure(
        "cleanup",
        "Remove old versions of main from the catalog. Those with a tag or a branch stay; files go by gc.",
        (
            _TABLE,
            Parameter("older_than_hours", "long", "only versions of at least this age", "168"),
            Parameter("retain_last", "long", "number of newest versions that stay", "1"),
        ),
        (("removed_versions", "long"),),
        _cleanup,
    ),
    Procedure(
        "undrop",
        "Bring back a dropped table, with its versions, branches, tags and indices.",
        (
            Parameter("table", "string", "namespace.table, as it was called"),
            Parameter("new_name", "string", "namespace.table under which it comes back", "NULL"),
        ),
        (("table", "string"),),
        _undrop,
    ),
    Procedure(
        "dropped",
        "List the dropped tables that can come back, the last one first.",
        (),
        (("table", "string"), ("version", "long"), ("timestamp_millis", "long"), ("tombstone", "string")),
        _dropped,
    ),
    Procedure(
        "create_tag",
        "Name a version of a table.",
        (
            _TABLE,
            Parameter("tag", "string", "name of the tag"),
            Parameter("version", "long", "number of the version, the newest if NULL", "NULL"),
        ),
        (("tag", "string"), ("version", "long")),
        _create_tag,
    ),
    Procedure(
        "grant",
        "Grant privileges on an object, and on all in it.",
        (Parameter("privileges", "string", "names with commas between: read, write"), *_TO, *_ON),
        _CHANGED,
        _changing(grants.grant),
    ),
    Procedure(
        "revoke",
        "Revoke privileges that were granted on an object itself.",
        (Parameter("privileges", "string", "names with commas between, NULL for all"), *_TO, *_ON),
        _CHANGED,
        _changing(grants.revoke),
    ),
    Procedure(
        "grant_role",
        "Give a role to a principal, or to another role.",
        (Parameter("name", "string", "role that is given"), *_TO),
        (("changed", "boolean"),),
        _changing(grants.grant_role),
    ),
    Procedure(
        "revoke_role",
        "Take a role from a principal or a role.",
        (Parameter("name", "string", "role that is taken"), *_TO),
        (("changed", "boolean"),),
        _changing(grants.revoke_role),
    ),
    Procedure(
        "grants",
        "List the grants that the caller may see: all, or those to one grantee.",
        _TO,
        (("on", "string"), ("to", "string"), ("privileges", "string"), ("by", "string"), ("timestamp_millis", "long")),
        _grants,
    ),
    Procedure(
        "can",
        "Tell whether a privilege is held, and by which grant.",
        (
            Parameter("privilege", "string", "name of the privilege"),
            *_ON,
            Parameter("principal", "string", "principal that is meant, the caller if NULL", "NULL"),
        ),
        (("allowed", "boolean"), ("reason", "string")),
        _can,
    ),
    Procedure("drop_tag", "Remove a tag.", (_TABLE, Parameter("tag", "string", "name of the tag")), (), _drop_tag),
    Procedure(
        "create_branch",
        "Begin a branch at a version of main.",
        (
            _TABLE,
            Parameter("branch", "string", "name of the branch"),
            Parameter("version", "long", "number of the version, the newest if NULL", "NULL"),
        ),
        (("branch", "string"),),
        _create_branch,
    ),
    Procedure(
        "drop_branch",
        "Remove a branch with its versions.",
        (_TABLE, Parameter("branch", "string", "name of the branch")),
        (),
        _drop_branch,
    ),
)

_PROCEDURES: Mapping[str, Procedure] = {procedure.name: procedure for procedure in _ALL}

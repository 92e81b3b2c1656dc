"""Operations that Java calls, by name. Each takes the arguments of the call and returns JSON."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from namespace_client.http import CatalogServer
from namespace_client.staged_transaction import Isolation
from spark_catalog.options import named_read_options
from spark_catalog.sql.access import Access
from spark_catalog.sql.catalog_requests import CatalogRequests, check_names
from spark_catalog.sql.errors import InvalidStatement, NoSuchNamespace, NoSuchTable, TransactionLost, Unsupported
from spark_catalog.sql.sessions import Sessions, SqlSession, discard
from spark_catalog.sql.statements import (
    alterations,
    changelogs,
    creation,
    metadata_tables,
    procedures,
    scanning,
    travel,
)
from spark_catalog.sql.statements import dml as writing
from spark_catalog.sql.tables import Versions, describe, describe_changes, only_declared, transaction_of
from spark_catalog.sql.transactions import SqlTransaction
from table_data.batch_operations import DELIMITER, Json, TableId, TableState

Operation = Callable[..., Any]


class SqlService:
    """The catalog of one server, for all sessions of a driver. Thread-safe.

    Args:
        uri: Address of the server.
        token: Bearer token of all requests, or None.
        isolation: Isolation of statements outside of transactions.
        storage_options: Options of Lance for the object store of the tables.
    """

    def __init__(
        self, uri: str, *, token: str | None, isolation: Isolation, storage_options: Mapping[str, str]
    ) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        server = CatalogServer(uri, headers=headers)
        self.access = Access(server, CatalogRequests(server), Versions(server.table, storage_options))
        self.sessions = Sessions(server, isolation, storage_options)

    def close(self) -> None:
        """Close the connections."""
        self.access.server.close()

    def call(self, operation: str, arguments: Json) -> Any:
        """Run an operation. Raises `InvalidStatement` for an unknown one, and what the operation raises."""
        method = _OPERATIONS.get(operation)
        if method is None:
            raise InvalidStatement(f"no operation {operation!r}")
        given = dict(arguments)
        session = self.sessions.get(given.pop("session"))
        statement = given.pop("statement", None)
        expected = given.pop("in_transaction", False)
        for place in ("table", "namespace", "target"):
            check_names(given.get(place) or ())
        with session.lock:
            if expected and session.open is None and operation != "procedures":
                raise TransactionLost(
                    f"{operation}: the process that held the transaction of this session has ended: "
                    "nothing of it was committed; begin it again"
                )
            return method(self, session, statement, **given)

    def in_transaction(self, session: str) -> bool:
        """Whether a transaction of several statements is open."""
        return self.sessions.get(session).open is not None

    # -- namespaces

    def list_namespaces(self, _session: SqlSession, _statement: str | None, namespace: list[str]) -> list[str]:
        """Names of the child namespaces."""
        return self.access.requests.namespaces(tuple(namespace))

    def namespace_exists(self, _session: SqlSession, _statement: str | None, namespace: list[str]) -> bool:
        """Whether the namespace exists."""
        try:
            self.access.requests.namespace(tuple(namespace))
        except NoSuchNamespace:
            return False
        return True

    def describe_namespace(self, _session: SqlSession, _statement: str | None, namespace: list[str]) -> dict[str, str]:
        """Properties of a namespace."""
        return self.access.requests.namespace(tuple(namespace))

    def create_namespace(
        self, session: SqlSession, _statement: str | None, namespace: list[str], properties: Mapping[str, str]
    ) -> None:
        """Create a namespace."""
        self.sessions.refuse_inside(session, f"CREATE NAMESPACE {'.'.join(namespace)}")
        kept = {key: value for key, value in properties.items() if key != "owner"}
        if "location" in kept:
            raise Unsupported(f"CREATE NAMESPACE {'.'.join(namespace)}: LOCATION: a namespace has no location")
        self.access.requests.create_namespace(tuple(namespace), kept)

    def drop_namespace(self, session: SqlSession, _statement: str | None, namespace: list[str], cascade: bool) -> bool:
        """Drop a namespace."""
        self.sessions.refuse_inside(session, f"DROP NAMESPACE {'.'.join(namespace)}")
        self.access.requests.drop_namespace(tuple(namespace), cascade=cascade)
        return True

    # -- tables

    def list_tables(self, session: SqlSession, statement: str | None, namespace: list[str]) -> list[str]:
        """Names of the tables of a namespace, with those that the open transaction creates."""
        names = set(self.access.requests.tables(tuple(namespace)))
        transaction = transaction_of(session, statement)
        if transaction is not None:
            names |= set(transaction.new_names(tuple(namespace)))
        return sorted(names)

    def table_exists(self, session: SqlSession, statement: str | None, table: list[str]) -> bool:
        """Whether the table exists."""
        if len(table) < 2:
            return False
        try:
            self.load_table(session, statement, table)
        except NoSuchTable:
            return False
        except InvalidStatement:  # declared only
            return True
        return True

    def load_table(
        self,
        session: SqlSession,
        statement: str | None,
        table: list[str],
        catalog_version: int | None = None,
        version: str | None = None,
        timestamp: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Json:
        """A table at the version that the statement reads, at one of its own versions, or a metadata table.

        With `options` it is as a read with these options shows it.
        """
        path = tuple(table)
        transaction = transaction_of(session, statement)
        if options is not None:
            return self._load_with(transaction, path, catalog_version, version, options)
        if version is not None or timestamp is not None:
            return travel.load(self.access, transaction, path, version, timestamp)
        found = self._load(transaction, path, catalog_version)
        if found is not None:
            return found
        if path[-1].lower() in metadata_tables.NAMES and len(path) > 2:
            parent = self._load(transaction, path[:-1], catalog_version)
            if parent is not None:
                return metadata_tables.load(self.access, transaction, parent, path[-1].lower())
        raise NoSuchTable(f"{DELIMITER.join(path)}: no such table")

    def _load_with(
        self,
        transaction: SqlTransaction | None,
        path: TableId,
        at: int | None,
        version: str | None,
        options: Mapping[str, str],
    ) -> Json:
        name = DELIMITER.join(path)
        parsed = named_read_options(options)
        found: Json | None
        if version is not None:
            if parsed.names_version:
                raise InvalidStatement(f"{name}: expected one way to name a version, found VERSION AS OF and an option")
            found = travel.load(self.access, transaction, path, version, None)
        elif parsed.names_version:
            if transaction is not None:
                at = transaction.catalog_version
            head = self.access.server.state().version if at is None else at
            found = travel.load_named(self.access, path, parsed, head)
        else:
            found = self._load(transaction, path, at)
        if found is None and path[-1].lower() in metadata_tables.NAMES and len(path) > 2:
            raise InvalidStatement(f"{name}: options {', '.join(sorted(options))}: expected none for a metadata table")
        if found is None:
            raise NoSuchTable(f"{name}: no such table")
        return travel.with_options(found, options)

    def _load(self, transaction: SqlTransaction | None, path: TableId, at: int | None) -> Json | None:
        if len(path) < 2:
            return None
        if transaction is not None:
            changes = transaction.find(path)
            return None if changes is None else describe_changes(transaction, changes)
        state, head = self._newest(path, at)
        if state is None:
            return None
        if state.version is None:
            raise only_declared(DELIMITER.join(path))
        self.access.versions.remember(state)
        file = self.access.versions.manifest(state)
        return describe(state, file, at=head, steps=0, properties=state.properties)

    def _newest(self, path: TableId, at: int | None) -> tuple[TableState | None, int]:
        """A table at a catalog version, the newest if None, and the catalog version that it is of.

        With commits around the catalog that are adopted now it is of a newer one. That goes for a table whose first
        version is among them also if `at` is given: Spark then loads the other tables of the query again.
        """
        server = self.access.server
        head = server.state().version if at is None else at
        if not head:
            return None, head
        found = server.find_table(path, at=head)
        if found.state is None or found.adopted_in is None or (at is not None and found.state.version is not None):
            return found.state, head
        return server.table(path, at=found.adopted_in), found.adopted_in

    def drop_table(self, session: SqlSession, _statement: str | None, table: list[str], purge: bool = False) -> bool:
        """Drop a table. It can come back for a while, with `purge` until the next garbage collection."""
        name = ".".join(table)
        self.sessions.refuse_inside(session, f"DROP TABLE {name}{' PURGE' if purge else ''}")
        try:
            self.access.requests.drop_table(tuple(table), purge=purge)
        except NoSuchTable:
            return False
        return True

    def rename_table(self, session: SqlSession, _statement: str | None, table: list[str], target: list[str]) -> None:
        """Rename a table."""
        self.sessions.refuse_inside(session, f"ALTER TABLE {'.'.join(table)} RENAME")
        self.access.requests.rename_table(tuple(table), tuple(target))

    # -- statements and their staged operations

    def begin_statement(self, session: SqlSession, _statement: str | None, query: str) -> Json:
        """Begin the transaction of a writing query."""
        del query
        begun = self.sessions.begin_statement(session)
        return {"statement": begun.id, "catalog_version": begun.transaction.catalog_version}

    def commit_statement(self, session: SqlSession, statement: str) -> Json | None:
        """Commit the transaction of a writing query."""
        if statement in session.finished:  # by the table that CREATE or REPLACE made
            return None
        result = self.sessions.commit_statement(session, self.sessions.statement(session, statement))
        return None if result is None else {"catalog_version": result.catalog_version}

    def abort_statement(self, session: SqlSession, statement: str) -> None:
        """Take back the staged changes of a writing query."""
        found = session.statements.get(statement)
        if found is not None:
            self.sessions.abort_statement(session, found)

    def plan_scan(self, session: SqlSession, statement: str | None, ref: Json, **arguments: Any) -> Json:
        """Function, partitions and size of a scan."""
        transaction = self._note_read(session, statement, ref)
        return scanning.plan_scan(self.access.versions, transaction, ref=ref, **arguments)

    def count_rows(self, session: SqlSession, statement: str | None, table: list[str], ref: Json) -> int:
        """Number of rows of a version."""
        del table
        transaction = self._note_read(session, statement, ref)
        return scanning.count_rows(self.access.versions, transaction, ref)

    def load_changes(
        self,
        session: SqlSession,
        statement: str | None,
        table: list[str],
        start: Json | None,
        end: Json | None,
        catalog_version: int | None = None,
    ) -> Json:
        """The changes of a table between two bounds."""
        transaction = transaction_of(session, statement)
        if transaction is not None:
            catalog_version = transaction.catalog_version
        head = self._newest(tuple(table), None)[1] if catalog_version is None else catalog_version
        bounds = map(changelogs.Bound.parse, (start, end))
        return changelogs.load(self.access, transaction, tuple(table), head, *bounds)

    def plan_changes(
        self, session: SqlSession, statement: str | None, table: list[str], ref: Json, schema: Json
    ) -> Json:
        """Function, partitions and size of a scan of changes. One up to the newest version reads the table."""
        del table
        if ref["is_open"]:
            self._note_read(session, statement, {**ref, "version": ref["to"]})
        return changelogs.plan(self.access.versions, ref, schema)

    def _note_read(self, session: SqlSession, statement: str | None, ref: Json) -> SqlTransaction | None:
        """Record a read. Spark registers the scans of some writing queries only, so all that are planned count."""
        transaction = transaction_of(session, statement)
        if ref["branch"] is not None:
            return transaction
        table = tuple(ref["table"])
        running = None if statement is None else session.statements.get(statement)
        (session if running is None else running).read.add(table)
        if transaction is not None and not ref["steps"]:
            transaction.note_read(table, int(ref["version"]))
        return transaction

    def plan_write(self, session: SqlSession, statement: str | None, **arguments: Any) -> Json:
        """Function of the tasks of a write."""
        writing.check_options(arguments["options"], in_transaction=session.open is not None)
        return writing.plan_write(self.access.versions, transaction_of(session, statement), **arguments)

    def stage_rows(self, session: SqlSession, statement: str | None, ref: Json, **arguments: Any) -> None:
        """Stage the files that the tasks of a write reported."""
        with self.sessions.writing(session, statement, at=ref["at"] or None) as running:
            writing.stage_rows(running, self._storage_options(ref), ref=ref, **arguments)

    def discard_rows(self, session: SqlSession, statement: str | None, ref: Json, **arguments: Any) -> None:
        """Delete the files that the tasks of an aborted write reported."""
        del session, statement
        discard(writing.reported_files(ref, arguments["reports"], self._storage_options(ref)))

    def _storage_options(self, ref: Json) -> Mapping[str, str]:
        return self.access.versions.storage_options(tuple(ref["table"]), ref["uri"])

    def delete(self, session: SqlSession, statement: str | None, table: list[str], ref: Json, where: str) -> None:
        """Delete the rows that match a filter of Lance."""
        del ref
        with self.sessions.writing(session, statement) as running:
            writing.delete(running, tuple(table), where)

    def create_table(self, session: SqlSession, statement: str | None, table: list[str], **arguments: Any) -> None:
        """Create a table without rows."""
        self._require_parent(tuple(table))
        with self.sessions.writing(session, statement) as running:
            creation.create_table(running, tuple(table), **arguments)

    def plan_table(self, _session: SqlSession, _statement: str | None, table: list[str], **arguments: Any) -> Json:
        """A table as `create_table` would make it. Nothing is made: the stream that writes to it does that."""
        self._require_parent(tuple(table))
        return creation.plan_table(tuple(table), **arguments)

    def stage_table(
        self, session: SqlSession, statement: str | None, table: list[str], mode: str, **arguments: Any
    ) -> Json:
        """Begin CREATE or REPLACE with rows. The answer is the table that the rows are written to."""
        self._require_parent(tuple(table))
        running = (
            self.sessions.statement(session, statement) if statement is not None else self.sessions.begin_alone(session)
        )
        try:
            described = creation.stage_table(running, tuple(table), mode, **arguments)
        except BaseException:
            if statement is None:
                self.sessions.abort_statement(session, running)
            raise
        return {**described, "statement": running.id}

    def _require_parent(self, table: TableId) -> None:
        """Without this check the catalog would refuse the batch, after the rows were written."""
        self.access.requests.namespace(table[:-1])

    def alter_table(self, session: SqlSession, statement: str | None, table: list[str], changes: list[Json]) -> None:
        """Change columns, properties and comments, in one batch."""
        with self.sessions.writing(session, statement) as running:
            alterations.alter(running, tuple(table), changes)

    # -- procedures

    def procedures(self, _session: SqlSession, _statement: str | None) -> list[Json]:
        """Descriptions of all procedures."""
        return procedures.descriptions()

    def call_procedure(
        self,
        session: SqlSession,
        _statement: str | None,
        procedure: str,
        values: Json,
        catalog: str,
        namespace: list[str],
    ) -> Json:
        """Run a procedure. Names of tables are those of a session that uses `namespace` of the catalog."""
        place = procedures.NameScope(catalog, tuple(namespace))
        return procedures.call(self.access, self.sessions, session, procedure, values, place)


_OPERATIONS: Mapping[str, Operation] = {
    name: method
    for name, method in inspect.getmembers(SqlService, inspect.isfunction)
    if not name.startswith("_") and name not in {"call", "close", "in_transaction"}
}

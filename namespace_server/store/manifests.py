"""The external manifest store on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, CursorResult, Engine, Executable, and_, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from lance_core.commit.handlers.manifest_store import ManifestRow, ManifestStore
from lance_core.errors import StorageUnknown
from namespace_server.store.engine import failed, open_engine, parse_url, refused
from namespace_server.store.schema import check_schema
from namespace_server.store.schema import external_manifests as table

R = TypeVar("R")

_COLUMNS = (table.c.base_uri, table.c.version, table.c.path, table.c.size, table.c.uuid)


class SqlManifestStore(ManifestStore):
    """Rows of the table `external_manifests`; each method is one statement, each statement one transaction.

    Every process and host that reaches the database may use it; a SQLite file is for one host. The schema must be there
    (`open_manifest_store` sees to that).
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.local = engine.dialect.name == "sqlite"
        self._insert = sqlite.insert if self.local else postgresql.insert

    def get(self, base_uri: str, version: int) -> ManifestRow | None:
        query = select(*_COLUMNS).where(table.c.base_uri == base_uri, table.c.version == version)
        found = self._read(lambda connection: connection.execute(query).one_or_none())
        return None if found is None else ManifestRow(*found)

    def staged(self, base_uri: str, *, below: bool = False) -> list[ManifestRow]:
        place = table.c.base_uri == base_uri
        if below:
            place = or_(place, table.c.base_uri.startswith(f"{base_uri}/", autoescape=True))
        query = select(*_COLUMNS).where(table.c.staged, place)
        rows = [ManifestRow(*found) for found in self._read(lambda connection: connection.execute(query).all())]
        # SQLite's LIKE ignores case, and the order of texts depends on the database: filtered and sorted again.
        wanted = [row for row in rows if row.base_uri == base_uri or row.base_uri.startswith(f"{base_uri}/")]
        return sorted(wanted, key=lambda row: (row.base_uri, row.version))

    def put_if_absent(self, row: ManifestRow) -> bool:
        statement = self._insert(table).values(_values(row)).on_conflict_do_nothing(index_elements=table.primary_key)
        return self._write(statement)

    def replace(self, old: ManifestRow, new: ManifestRow) -> bool:
        return self._write(update(table).where(_is(old)).values(_values(new)))

    def remove(self, row: ManifestRow) -> bool:
        return self._write(delete(table).where(_is(row)))

    def close(self) -> None:
        self._engine.dispose()

    def _read(self, read: Callable[[Connection], R]) -> R:
        for last in (False, True):
            try:
                with self._engine.connect() as connection:
                    return read(connection)
            except DBAPIError as error:
                if last or not error.connection_invalidated:
                    raise refused(self._engine, error) from error
                # A pooled connection broke while it was idle: a read can be repeated.
            except SQLAlchemyError as error:
                raise refused(self._engine, error) from error
        raise AssertionError("unreachable")

    def _write(self, statement: Executable) -> bool:
        """Whether the statement changed its row. It is sent once: the caller resolves a lost answer (F1)."""
        try:
            connection = self._engine.connect()
        except SQLAlchemyError as error:
            raise refused(self._engine, error) from error
        try:
            with connection:
                result: CursorResult[Any] = connection.execute(statement, execution_options={"preserve_rowcount": True})
                changed = result.rowcount
        except SQLAlchemyError as error:
            raise failed(self._engine, error) from error
        if changed not in {0, 1}:
            raise StorageUnknown(f"the database says that {changed} rows were changed, expected 0 or 1")
        return changed == 1


def open_manifest_store(url: str) -> SqlManifestStore:
    """The manifest store in the database at `url`.

    Raises `DatabaseSchemaMismatch` unless its schema is the one of this release, `StorageError` when it cannot be
    reached.
    """
    parsed = parse_url(url)
    check_schema(parsed)
    return SqlManifestStore(open_engine(parsed))


def _values(row: ManifestRow) -> dict[str, Any]:
    return {
        "base_uri": row.base_uri,
        "version": row.version,
        "path": row.path,
        "size": row.size,
        "uuid": row.uuid,
        "staged": row.staged,
    }


def _is(row: ManifestRow) -> Any:
    return and_(*(table.c[name] == value for name, value in _values(row).items()))

"""Database engines by URL, and the classification of database errors."""

from __future__ import annotations

import sqlite3

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from lance_core.errors import StorageError, StorageUnknown

_EXPECTED = "expected sqlite:///<file> or postgresql+psycopg://<user>@<host>/<database>"
_POOL = {"pool_size": 16, "max_overflow": 16, "pool_timeout": 30, "pool_recycle": 1800}
BUSY_SECONDS = 30
"""Seconds for which a connection to SQLite waits for others."""
_LIVENESS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_REFUSED_BY_SQLITE = (
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_PERM",
    "SQLITE_AUTH",
    "SQLITE_ERROR",
    "SQLITE_CONSTRAINT",
    "SQLITE_TOOBIG",
    "SQLITE_MISMATCH",
    "SQLITE_CORRUPT",
    "SQLITE_NOTADB",
)
_UNCLEAR_TO_POSTGRESQL = ("08", "57P", "58", "XX", "40003")
"""States (or their beginnings) in which a statement may have been carried out: lost connections, shutdowns, I/O."""


def parse_url(text: str) -> URL:
    """The URL of a database that can hold a manifest store. Raises `StorageError` for any other; shows no password."""
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise StorageError(f"manifest store: {_EXPECTED}, found no database URL") from error
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    shown = shown_url(url)
    if url.drivername not in {"sqlite", "sqlite+pysqlite", "postgresql+psycopg"}:
        raise StorageError(f"manifest store {shown}: {_EXPECTED}")
    if url.get_backend_name() == "sqlite" and (not url.database or url.database == ":memory:"):
        raise StorageError(f"manifest store {shown}: {_EXPECTED}; memory ends with its process")
    return url


def shown_url(url: URL) -> str:
    """A URL as messages show it, without its password."""
    return url.render_as_string(hide_password=True)


def open_engine(url: URL) -> Engine:
    """A pool of connections, none of them made yet; each statement is a transaction of its own.

    A SQLite commit is on the disk when it is answered, and waits at most 30 seconds for others. A PostgreSQL server
    that went away is noticed as fast; parameters in the URL win. Raises `StorageError` when its driver is missing.
    """
    arguments = {"timeout": BUSY_SECONDS} if url.get_backend_name() == "sqlite" else _LIVENESS
    chosen = {name: value for name, value in arguments.items() if name not in url.query}
    try:
        engine = create_engine(url, isolation_level="AUTOCOMMIT", connect_args=chosen, **_POOL)
    except ModuleNotFoundError as error:
        raise StorageError(
            f"manifest store {shown_url(url)}: {error.name} is missing; install lance-namespace-server[postgres]"
        ) from error
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _make_durable)
    return engine


def refused(engine: Engine, error: SQLAlchemyError) -> StorageError:
    """The error of a failed read, or of a write that was not sent."""
    return StorageError(_message(engine, error))


def failed(engine: Engine, error: SQLAlchemyError) -> StorageError:
    """The error of a failed write: `StorageUnknown` unless the database itself reports that it was not applied."""
    return StorageError(_message(engine, error)) if _is_refusal(error) else StorageUnknown(_message(engine, error))


def _is_refusal(error: SQLAlchemyError) -> bool:
    if not isinstance(error, DBAPIError):
        return True  # raised before anything was sent
    if isinstance(error.orig, sqlite3.Error):
        name = getattr(error.orig, "sqlite_errorname", None)
        return name is not None and name.startswith(_REFUSED_BY_SQLITE)
    state = getattr(error.orig, "sqlstate", None)
    return not error.connection_invalidated and bool(state) and not str(state).startswith(_UNCLEAR_TO_POSTGRESQL)


def _message(engine: Engine, error: SQLAlchemyError) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return f"manifest store {shown_url(engine.url)}: {type(cause).__name__}: {str(cause).strip()}"


def _make_durable(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = FULL")

"""The schema of the database: its table as it is after the newest migration, its revision, and migrations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import (
    URL,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Index,
    MetaData,
    String,
    Table,
    Text,
    func,
    select,
    text,
)
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from lance_core.errors import StorageError
from namespace_server.store.engine import BUSY_SECONDS, open_engine, parse_url, refused, shown_url

VERSION_TABLE = "lance_namespace_revision"
"""Alembic's version table. Not its default name: the database may hold other applications' tables."""

metadata = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "ix": "ix_%(table_name)s_%(column_0_name)s"},
)

external_manifests = Table(
    "external_manifests",
    metadata,
    Column("base_uri", Text, primary_key=True),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("path", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("uuid", String(36), nullable=False),
    Column("staged", Boolean(create_constraint=False), nullable=False),
)
"""One row per committed version: see `lance_core.commit.handlers.ManifestRow`."""

Index(
    "ix_external_manifests_staged",
    external_manifests.c.base_uri,
    sqlite_where=text("staged"),
    postgresql_where=text("staged"),
)

_LOCK = 0x6C616E6365  # of our migrations, among the advisory locks of a PostgreSQL database


def _migrations() -> Path:
    """The directory of the migrations: beside this module when installed, at the top of a checkout."""
    installed = Path(__file__).parent / "migrations"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "migrations"


class DatabaseSchemaMismatch(StorageError):
    """The database has another schema than this release needs. Nothing was changed."""


def check_schema(url: URL) -> None:
    """Raise `DatabaseSchemaMismatch`, naming the remedy, unless the schema is the newest one. Creates nothing."""
    newest = _scripts().get_current_head()
    found = None
    if url.get_backend_name() != "sqlite" or Path(url.database or "").exists():
        engine = open_engine(url)
        try:
            with engine.connect() as connection:
                found = _revision(connection)
        except SQLAlchemyError as error:
            raise refused(engine, error) from error
        finally:
            engine.dispose()
    if found == newest:
        return
    shown = shown_url(url)
    if found is not None and not _knows(found):
        raise DatabaseSchemaMismatch(
            f"manifest store {shown}: its schema {found} is newer than this release, which has {newest}"
        )
    raise DatabaseSchemaMismatch(
        f"manifest store {shown}: expected schema {newest}, found {found or 'none'}; "
        f"run: lance-namespace migrate --manifest-store {shown}"
    )


def rows_lost(url: str, revision: str) -> int:
    """How many rows of manifests a move of the schema to `revision` would drop: 0 unless it is below the present one.

    Creates nothing. Raises `StorageError` when the database refuses or cannot be reached.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").exists():
        return 0
    engine = open_engine(parsed)
    try:
        with engine.connect() as connection:
            if not _is_below(_scripts(), revision, _revision(connection)):
                return 0
            return connection.execute(select(func.count()).select_from(external_manifests)).scalar_one()
    except SQLAlchemyError as error:
        raise refused(engine, error) from error
    finally:
        engine.dispose()


def migrate(url: str, revision: str = "head") -> tuple[str | None, str | None]:
    """Move the schema up or down to `revision`: `head`, `base` (nothing of ours) or one in between.

    All or nothing; of concurrent calls one waits for the other. Returns the revisions before and after. Raises
    `DatabaseSchemaMismatch` for a revision that is not known, `StorageError` when the database refuses or cannot be
    reached.
    """
    parsed = parse_url(url)
    scripts = _scripts()
    engine = open_engine(parsed)
    try:
        with _transaction(engine) as connection:
            before = _revision(connection)
            config = _config()
            config.attributes["connection"] = connection
            if _is_below(scripts, revision, before):
                command.downgrade(config, revision)
            else:
                command.upgrade(config, revision)
            return before, _revision(connection)
    except CommandError as error:
        raise DatabaseSchemaMismatch(f"manifest store {shown_url(parsed)}: {error}") from error
    except SQLAlchemyError as error:
        raise refused(engine, error) from error
    finally:
        engine.dispose()


@contextmanager
def _transaction(engine: Engine) -> Iterator[Connection]:
    """A connection in a transaction that no other migration overlaps; committed at the end."""
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            _let_readers_read(connection)
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # the driver begins none before changes of the schema
            try:
                yield connection
            except BaseException:
                connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")
        return
    with engine.connect().execution_options(isolation_level="READ COMMITTED") as connection, connection.begin():
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        yield connection


def _let_readers_read(connection: Connection) -> None:
    """Have a SQLite file keep a write-ahead log, beside which readers do not wait. It stays with the file.

    Where another migration does the same just now, SQLite does not wait for it as it does for other locks.
    """
    for attempt in Retrying(
        retry=retry_if_exception(_is_busy),
        stop=stop_after_delay(BUSY_SECONDS),
        wait=wait_fixed(0.05),
        reraise=True,
    ):
        with attempt:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, OperationalError) and getattr(error.orig, "sqlite_errorname", "").startswith("SQLITE_BUSY")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_migrations()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def _knows(revision: str) -> bool:
    return any(script.revision == revision for script in _scripts().walk_revisions())


def _is_below(scripts: ScriptDirectory, revision: str, current: str | None) -> bool:
    """Whether `revision` comes before `current` in the line of migrations."""
    if current is None or revision == "head":
        return False
    if revision == "base":
        return True
    below = [script.revision for script in scripts.iterate_revisions(current, "base")]
    return revision in below[1:]

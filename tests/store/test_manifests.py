"""The external manifest store in a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError

from lance_core.commit.handlers import ManifestStore
from lance_core.errors import StorageError, StorageUnknown
from namespace_server.store.engine import parse_url
from namespace_server.store.manifests import SqlManifestStore, open_manifest_store
from namespace_server.store.schema import migrate
from tests.commit.handlers.manifest_contract import BASE, ManifestContract, staged_row
from tests.databases import Cluster


class TestSqlManifests(ManifestContract):
    @pytest.fixture
    def manifests(self, database: str) -> Iterator[ManifestStore]:
        store = open_manifest_store(database)
        yield store
        store.close()

    def test_another_process_sees_it_at_once(self, manifests: ManifestStore, database: str) -> None:
        other = open_manifest_store(database)
        manifests.put_if_absent(staged_row(5))
        assert other.get(BASE, 5) == staged_row(5)
        assert not other.put_if_absent(staged_row(5))
        assert other.replace(staged_row(5), staged_row(5).finished())
        assert manifests.staged(BASE) == []
        other.close()


@pytest.fixture
def postgres(cluster: Cluster) -> Iterator[SqlManifestStore]:
    url = cluster.new_database()
    migrate(url)
    store = open_manifest_store(url)
    yield store
    store.close()


def test_reads_survive_a_restart_of_the_server(cluster: Cluster, postgres: SqlManifestStore) -> None:
    postgres.put_if_absent(staged_row(5))
    cluster.drop_connections()
    assert postgres.get(BASE, 5) == staged_row(5)


def test_a_connection_that_breaks_under_a_write_leaves_it_open(cluster: Cluster, postgres: SqlManifestStore) -> None:
    """Whether the row was added before or not, the answer is the same: it is not known."""
    postgres.get(BASE, 5)
    cluster.drop_connections()
    with pytest.raises(StorageUnknown):
        postgres.put_if_absent(staged_row(5))
    assert postgres.get(BASE, 5) is None

    def drop_before_the_answer(_connection: object, cursor: DBAPICursor, statement: str, *_: object) -> None:
        if statement.startswith("INSERT"):
            raise DBAPIError(statement, None, ConnectionResetError("gone"), connection_invalidated=True)

    event.listen(postgres._engine, "after_cursor_execute", drop_before_the_answer)
    with pytest.raises(StorageUnknown, match="gone"):
        postgres.put_if_absent(staged_row(5))
    assert postgres.get(BASE, 5) == staged_row(5)


def test_a_server_that_is_not_there_is_told_from_silence(tmp_path: Path, cluster: Cluster) -> None:
    url = f"postgresql+psycopg://postgres@/x?host={tmp_path}"
    with pytest.raises(StorageError, match=r"manifest store postgresql\+psycopg://postgres@/x.*No such file") as caught:
        open_manifest_store(url)
    assert type(caught.value) is StorageError


def test_what_the_database_refuses_is_not_written(database: str) -> None:
    store = open_manifest_store(database)
    migrate(database, "base")
    for write in (
        lambda: store.put_if_absent(staged_row(1)),
        lambda: store.replace(staged_row(1), staged_row(2)),
        lambda: store.remove(staged_row(1)),
        lambda: store.get(BASE, 1),
        lambda: store.staged(BASE),
    ):
        with pytest.raises(StorageError, match="external_manifests") as caught:
            write()
        assert type(caught.value) is StorageError
    store.close()


def test_a_locked_file_is_a_refusal(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db?timeout=0.01"
    migrate(url)
    store = open_manifest_store(url)
    holder = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert store.get(BASE, 1) is None
    with pytest.raises(StorageError, match="locked") as caught:
        store.put_if_absent(staged_row(1))
    assert type(caught.value) is StorageError
    holder.execute("ROLLBACK")
    holder.close()
    assert store.put_if_absent(staged_row(1))
    store.close()


def test_a_full_disk_is_no_refusal(tmp_path: Path) -> None:
    """What SQLite wrote of a commit before the disk failed may be there afterwards."""
    url = f"sqlite:///{tmp_path}/m.db"
    migrate(url)
    store = open_manifest_store(url)

    @event.listens_for(store._engine, "before_cursor_execute")
    def fail(*_: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        raise DBAPIError("INSERT", None, error)

    with pytest.raises(StorageUnknown, match="disk I/O error"):
        store.put_if_absent(staged_row(1))
    store.close()


def test_commits_to_sqlite_are_synced(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    migrate(url)
    store = open_manifest_store(url)
    with store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    store.close()


@pytest.mark.parametrize(
    "url",
    ["sqlite://", "sqlite:///:memory:", "mysql://u:secret@h/d", "no url", "postgresql+psycopg2://u:secret@h/d", ""],
)
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(StorageError, match=r"expected sqlite:///<file> or postgresql\+psycopg") as caught:
        open_manifest_store(url)
    assert "secret" not in str(caught.value)


def test_postgresql_alone_means_psycopg() -> None:
    assert parse_url("postgresql://u@h/d").drivername == "postgresql+psycopg"

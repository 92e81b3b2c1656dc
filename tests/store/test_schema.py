"""Migrations of the database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from lance_core.errors import StorageError
from namespace_server.store.engine import open_engine, parse_url
from namespace_server.store.manifests import open_manifest_store
from namespace_server.store.schema import VERSION_TABLE, DatabaseSchemaMismatch, _scripts, metadata, migrate
from tests.commit.handlers.manifest_contract import staged_row

REPOSITORY = Path(__file__).parents[2]
HEAD = _scripts().get_current_head()


def tables(url: str) -> set[str]:
    engine = open_engine(parse_url(url))
    found = set(inspect(engine).get_table_names())
    engine.dispose()
    return found


def test_up_down_and_up_again(new_database: Callable[[], str]) -> None:
    url = new_database()
    revisions = [script.revision for script in _scripts().walk_revisions()]
    for _ in range(2):
        assert migrate(url) == (None, HEAD)
        assert migrate(url) == (HEAD, HEAD)
        assert tables(url) == {"external_manifests", VERSION_TABLE}
        for below in [*revisions[1:], "base"]:
            migrate(url, below)
        assert tables(url) <= {VERSION_TABLE}
    for revision in reversed(revisions):
        assert migrate(url, revision)[1] == revision


def test_the_models_are_what_the_migrations_make(new_database: Callable[[], str]) -> None:
    url = new_database()
    migrate(url)
    engine = open_engine(parse_url(url))
    with engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True, "version_table": VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
        [index] = inspect(connection).get_indexes("external_manifests")
        assert index["name"] == "ix_external_manifests_staged"
        assert str(index["dialect_options"][f"{engine.dialect.name}_where"]) == "staged"
    engine.dispose()


def test_a_database_without_the_schema_is_refused(new_database: Callable[[], str]) -> None:
    url = new_database()
    with pytest.raises(
        DatabaseSchemaMismatch, match=r"found none; run: lance-namespace migrate --manifest-store \S+"
    ) as caught:
        open_manifest_store(url)
    assert isinstance(caught.value, StorageError)
    migrate(url)
    open_manifest_store(url).close()
    migrate(url, "base")
    with pytest.raises(DatabaseSchemaMismatch, match=f"expected schema {HEAD}"):
        open_manifest_store(url)


def test_looking_creates_no_file(tmp_path: Path) -> None:
    with pytest.raises(DatabaseSchemaMismatch):
        open_manifest_store(f"sqlite:///{tmp_path}/m.db")
    assert list(tmp_path.iterdir()) == []


def test_a_newer_schema_is_refused(new_database: Callable[[], str]) -> None:
    url = new_database()
    migrate(url)
    engine = open_engine(parse_url(url))
    with engine.connect() as connection:
        connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(DatabaseSchemaMismatch, match="its schema 9999 is newer than this release"):
        open_manifest_store(url)
    with pytest.raises(DatabaseSchemaMismatch, match="9999"):
        migrate(url)


def test_an_unknown_revision_changes_nothing(new_database: Callable[[], str]) -> None:
    url = new_database()
    with pytest.raises(DatabaseSchemaMismatch, match="zz"):
        migrate(url, "zz")
    assert tables(url) <= {VERSION_TABLE}


def test_commits_that_stand_in_the_database_alone_are_not_dropped(database: str) -> None:
    store = open_manifest_store(database)
    store.put_if_absent(staged_row(5))
    with pytest.raises(
        DatabaseSchemaMismatch, match=r"1 commits stand in external_manifests alone \(version 5 of s3://"
    ):
        migrate(database, "base")
    assert store.staged(staged_row(5).base_uri) == [staged_row(5)]
    store.replace(staged_row(5), staged_row(5).finished())
    migrate(database, "base")
    store.close()


def test_two_migrations_at_once(new_database: Callable[[], str]) -> None:
    url = new_database()
    start = threading.Barrier(4)
    results: list[object] = []

    def run() -> None:
        start.wait()
        try:
            results.append(migrate(url)[1])
        except StorageError as error:
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [HEAD] * 4


def test_a_failed_migration_leaves_nothing(new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_database()
    monkeypatch.setattr("alembic.op.create_index", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        migrate(url)
    assert tables(url) == set()
    monkeypatch.undo()
    assert migrate(url) == (None, HEAD)

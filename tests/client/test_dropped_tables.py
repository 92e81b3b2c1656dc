"""Dropped tables come back through the client, and by the command; commands of pins."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from namespace_client import Catalog, CommitRejected, InvalidCall
from namespace_server.cli import cli
from namespace_server.directory.namespace import DirectoryNamespace
from tests.client.scene import Scene
from tests.server.servers import ServerProcess

ROWS = pa.table({"a": [1, 2, 3]})


def drop(scene: Scene, table: str, server: ServerProcess) -> None:
    if isinstance(scene.target, str):
        server.call("POST", f"/v1/table/{scene.namespace}${table}/drop")
    else:
        scene.target.write("drop_table", {"id": [scene.namespace, table]})


def rows(catalog: Catalog, table: str) -> int:
    with catalog.begin() as tx:
        return tx.table(table).count_rows()


def test_a_table_comes_back(scene: Scene, server: ServerProcess) -> None:
    catalog = scene.catalog
    with catalog.begin() as tx:
        tx.create("t", ROWS)
    drop(scene, "t", server)
    [dropped] = [table for table in catalog.dropped_tables() if table.id[0] == scene.namespace]
    assert (dropped.id, dropped.version) == ((scene.namespace, "t"), 1)
    assert abs(datetime.now(UTC) - dropped.dropped_at) < timedelta(minutes=5)
    with catalog.begin() as tx:
        tx.create("t", ROWS.slice(0, 1))
    with pytest.raises(CommitRejected) as taken:
        catalog.undrop("t")
    assert taken.value.code == 5
    catalog.undrop("t", "old", tombstone=dropped.tombstone)
    assert (rows(catalog, "t"), rows(catalog, "old")) == (1, 3)
    with pytest.raises(CommitRejected) as none:
        catalog.undrop([scene.namespace, "t"], "again")
    assert none.value.code == 4


def test_pins(scene: Scene) -> None:
    catalog, name = scene.catalog, f"pin-{scene.namespace}"
    with catalog.begin() as tx:
        tx.create("t", ROWS)
    with pytest.raises(InvalidCall, match="lasting: expected a timedelta, found 5"):
        catalog.pin(name, lasting=5)  # type: ignore[arg-type]
    version = catalog.pin(name, lasting=timedelta(days=2), reason="audit")
    assert version is not None
    with catalog.begin() as tx:
        tx.append("t", ROWS)
    [pin] = [pin for pin in catalog.pins() if pin.name == name]
    assert (pin.version, pin.reason) == (version, "audit")
    assert pin.until is not None
    assert pin.until - pin.pinned_at == timedelta(days=2)
    state = catalog.access.pins(version).tables[scene.namespace, "t"]
    assert state.version == 1
    assert catalog.pin(name, 1) == 1
    catalog.unpin(name)
    assert name not in {pin.name for pin in catalog.pins()}
    with pytest.raises(CommitRejected) as none:
        catalog.unpin(name)
    assert none.value.code == 11


def test_the_list_has_pages(local: Scene) -> None:
    with local.catalog.begin() as tx:
        for number in range(5):
            tx.create(f"t{number}", ROWS)
    with closing(DirectoryNamespace(root=str(local.target))) as namespace:
        for number in range(5):
            namespace.write("drop_table", {"id": ["ml", f"t{number}"]})
        first = namespace.read("list_dropped_tables", {"limit": 2}).body
        second = namespace.read("list_dropped_tables", {"limit": 9, "page_token": first["page_token"]}).body
    assert [table["id"][1] for table in first["tables"] + second["tables"]] == ["t4", "t3", "t2", "t1", "t0"]
    assert "page_token" not in second
    assert [table.id[1] for table in local.catalog.dropped_tables()] == ["t4", "t3", "t2", "t1", "t0"]


def test_the_commands_of_pins(local: Scene) -> None:
    root = str(local.target)

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        return done.stdout + done.stderr

    with local.catalog.begin() as tx:
        tx.create("t", ROWS)
    version = local.catalog.access.state().version + 1
    assert run("pin", root, "audit", "--for", "14d", "--reason", "year's end") == (
        f"audit: catalog version {version} is pinned\n"
    )
    assert run("pin", root, "first", "--version", "1") == "first: catalog version 1 is pinned\n"
    _, audit, first = run("pins", root).splitlines()
    assert audit.split()[:2] == ["audit", str(version)]
    assert audit.endswith("year's end")
    assert first.split() == ["first", "1", "for", "ever"]
    assert [pin["name"] for pin in json.loads(run("pins", root, "--json"))] == ["audit", "first"]
    assert run("unpin", root, "first") == "first: is removed\n"
    assert "there is no pin first" in run("unpin", root, "first")
    assert "seconds: expected a number from 1 to" in run("pin", root, "x", "--for", "31d")
    assert "catalog version 99 is not kept" in run("pin", root, "x", "--version", "99")


def test_the_commands(local: Scene) -> None:
    root = str(local.target)

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        return done.exit_code, done.stdout + done.stderr

    with local.catalog.begin() as tx:
        tx.create("t", ROWS)
    assert run("dropped", root) == (0, "")
    with closing(DirectoryNamespace(root=root)) as namespace:
        namespace.write("drop_table", {"id": ["ml", "t"]})
    assert run("dropped", root)[1].splitlines()[1].split()[:2] == ["ml.t", "1"]
    [listed] = json.loads(run("dropped", root, "--json")[1])
    assert "none of that name was dropped" in run("undrop", root, "ml$u")[1]
    status, said = run("undrop", root, "ml$t", "--as", "ml$back", "--id", listed["tombstone"])
    assert (status, said) == (0, "ml$back: is back\n")
    assert rows(local.catalog, "back") == 3

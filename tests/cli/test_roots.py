"""Roots that cannot be used, or are used by the wrong command."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, connect

from lance_core.storage.local import LocalStore
from namespace_server.directory import properties
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.settings import load_settings
from tests.cli.commands import invoke, printed, refused


def test_serve_on_a_root_that_cannot_be_written_ends(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = refused("serve", "--root", f"{tmp_path}/file/catalog", "--port", "0")
    assert told == f"root file://{tmp_path}/file/catalog cannot be written: neither it nor the directory above is there"
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "_staging").touch()
    told = refused("serve", "--root", f"{tmp_path}/catalog", "--port", "0")
    assert told.startswith(f"root file://{tmp_path}/catalog cannot be written: ")


def test_an_address_in_use_has_the_status_of_what_is_not_available_now(tmp_path: Path) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        told = invoke("serve", "--root", str(tmp_path), "--port", port, "--log-level", "error")
    assert (told.exit_code, told.stdout) == (5, "")
    assert f"127.0.0.1:{port}: Address already in use" in told.stderr


def test_a_root_of_an_unknown_scheme_is_named_once() -> None:
    for command in ("serve", "adopt"):
        told = refused(command, "--root", "nosuch://at/all")
        assert told.startswith("nosuch://at/all: expected a path or one of file://")
        assert told.count("nosuch") == 1


def test_adopt_makes_no_catalog(tmp_path: Path) -> None:
    for root in (tmp_path / "mistyped", tmp_path):
        told = refused("adopt", "--root", str(root))
        assert told == f"file://{root}: expected a catalog or tables to adopt, found none"
    assert list(tmp_path.iterdir()) == []


def test_adopt_takes_tables_without_a_catalog(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": [1]}), tmp_path / "t.lance")
    assert printed("adopt", "--root", str(tmp_path)).splitlines()[0] == "t: 1 version"


def test_adopt_takes_a_catalog_without_tables(tmp_path: Path) -> None:
    connect("dir", {"root": str(tmp_path)}).create_namespace(CreateNamespaceRequest(id=["ws"]))
    assert "adopted, 0 tables" in printed("adopt", "--root", str(tmp_path))


def test_inspect_of_a_root_says_what_to_do(tmp_path: Path) -> None:
    with closing(DirectoryNamespace(root=str(tmp_path / "catalog"))) as made:
        made.create_namespace(CreateNamespaceRequest(id=["g"]))
    told = refused("inspect", f"{tmp_path}/catalog")
    assert f"`lance-namespace ls --root {tmp_path}/catalog`" in told
    assert "version" in printed("inspect", f"{tmp_path}/catalog/__manifest")
    assert "expected a version, found none" in refused("inspect", str(tmp_path))


def test_a_collection_of_a_server_makes_as_many_requests_at_once_as_its_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed("create", "a", "--root", str(tmp_path))
    found: list[object] = []

    def note(root: str, _storage: object, **options: Any) -> LocalStore:
        found.append(options.get("concurrency"))
        return LocalStore(root)

    monkeypatch.setattr(properties, "open_store", note)
    settings = load_settings(None, root=str(tmp_path), storage_concurrency=7)
    printed("gc", str(tmp_path), "--dry-run", **settings.collection_environment())
    printed("gc", str(tmp_path), "--dry-run", **load_settings(None, root=str(tmp_path)).collection_environment())
    assert found == [7, None]
    assert "storage_concurrency" in refused("gc", str(tmp_path), LANCE_NAMESPACE_STORAGE_CONCURRENCY="many")

"""Whether the root can be written, as a readiness check asks."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from lance_namespace.errors import ServiceUnavailableError

from lance_core.errors import StorageError
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.writable import check_writable
from tests.directory.tables import Ground


def files(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


def test_a_root_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("x")
    with pytest.raises(StorageError, match=r"root .*/root: expected a directory, found a file"):
        DirectoryNamespace(root=str(tmp_path / "root"))


def test_a_root_that_becomes_a_file(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path / "root"), sweep_interval_seconds="0")
    (tmp_path / "root").write_text("x")
    with pytest.raises(ServiceUnavailableError, match=r"root file://.*/root cannot be written: .*found a file"):
        namespace.check_writable()


def test_nothing_is_left_behind(ground: Ground) -> None:
    before = files(ground.root), ground.catalog.snapshot().version

    ground.namespace.check_writable()

    assert (files(ground.root), ground.catalog.snapshot().version) == before


def test_a_root_that_is_not_there_yet(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path / "root"), sweep_interval_seconds="0")

    namespace.check_writable()

    assert not (tmp_path / "root").exists()


def test_a_root_below_nothing(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path / "typo" / "root"), sweep_interval_seconds="0")
    with pytest.raises(ServiceUnavailableError, match="neither it nor the directory above is there"):
        namespace.check_writable()


def test_a_directory_that_cannot_be_written(ground: Ground) -> None:
    (ground.root / "_staging").write_text("in the way")
    with pytest.raises(ServiceUnavailableError, match=r"root file://.*/root cannot be written: Not a directory"):
        ground.namespace.check_writable()


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_the_cause_is_told(tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "root").mkdir()

    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    store = LocalStore(tmp_path / "root", "none")
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ServiceUnavailableError, match=os.strerror(number)):
        check_writable(store)


def test_a_bucket() -> None:
    store = MemoryStore("probe")

    check_writable(store)

    assert list(store.list("")) == []


def test_the_text_of_a_remote_store_is_kept_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore("probe")

    def refuse(*_: object, **__: object) -> str:
        raise StorageError("secret") from RuntimeError("key=AKIA")

    monkeypatch.setattr(store, "put_if_absent", refuse)
    with pytest.raises(ServiceUnavailableError) as caught:
        check_writable(store)
    assert "AKIA" not in str(caught.value)
    assert "secret" not in str(caught.value)

"""Commits by an exclusive rename."""

from __future__ import annotations

from pathlib import Path

import pytest

import lance_core
from lance_core.commit.handlers import RenameIfAbsent
from lance_core.errors import AlreadyExists, StorageUnknown
from lance_core.format.naming import manifest_path
from lance_core.storage.local import LocalStore
from lance_core.transaction.operations import MapUpdate, UpdateConfig, encode_transaction
from tests.storage.faults import Crashed, Fault, FaultStore
from tests.transaction.tables import make_table

SLOT = manifest_path("t", 5)


def test_commits_a_version(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    message = encode_transaction(UpdateConfig(MapUpdate({"k": "v"})), read_version=1)
    assert lance_core.commit_transaction(table.uri, message, commit_handler=RenameIfAbsent()).version == 2
    assert table.open().config() == {"k": "v"}
    assert not list((table.path / "_versions").glob("*-*"))


def test_stages_and_renames(tmp_path: Path) -> None:
    inner = FaultStore(LocalStore(tmp_path, "none"))
    RenameIfAbsent().over(inner).put_if_absent(SLOT, b"x")
    [staged, renamed] = inner.writes
    assert (staged.verb, renamed.verb, renamed.path) == ("put", "rename_if_absent", SLOT)
    assert staged.path.startswith(f"{SLOT}-")


def test_a_lost_race_removes_the_staged_file(tmp_path: Path) -> None:
    inner = LocalStore(tmp_path, "none")
    inner.put(SLOT, b"theirs")
    with pytest.raises(AlreadyExists):
        RenameIfAbsent().over(inner).put_if_absent(SLOT, b"ours")
    assert [meta.path for meta in inner.list("")] == [SLOT]


def test_an_unknown_outcome_of_the_rename_removes_nothing(tmp_path: Path) -> None:
    inner = FaultStore(LocalStore(tmp_path, "none"))
    inner.fail(Fault.LOST_REQUEST, nth=1)
    with pytest.raises(StorageUnknown):
        RenameIfAbsent().over(inner).put_if_absent(SLOT, b"ours")
    assert len([meta.path for meta in inner.list("")]) == 1


def test_a_crash_before_the_rename_commits_nothing(tmp_path: Path) -> None:
    inner = FaultStore(LocalStore(tmp_path, "none"))
    inner.fail(Fault.CRASH_BEFORE, nth=1)
    with pytest.raises(Crashed):
        RenameIfAbsent().over(inner).put_if_absent(SLOT, b"ours")
    RenameIfAbsent().over(LocalStore(tmp_path, "none")).put_if_absent(SLOT, b"theirs")

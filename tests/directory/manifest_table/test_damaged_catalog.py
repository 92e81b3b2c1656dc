"""Damage to the catalog's own files is named, and what was not sent is not unknown (A3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import InternalError, LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import ReferenceNotFound, StorageError
from lance_core.storage.local import LocalStore
from namespace_server.directory.manifest_table.flip import FlipRefused
from namespace_server.directory.model.errors import BatchUnknown, CatalogDamaged
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.damage import DAMAGE, MANY, damaged
from tests.directory.flipping import open_manifest
from tests.directory.tables import Ground, rows
from tests.storage.faults import FaultStore


@pytest.fixture
def ground(ground: Ground) -> Ground:
    """With the table `g.t`, and a deletion file in the catalog."""
    ground.make_table("g", "t")
    ground.batch(*MANY)
    ground.call("drop_table", id=["many0"])
    return ground


def _check(error: LanceNamespaceError, root: Path, key: str, found: str) -> None:
    assert isinstance(error, CatalogDamaged)
    assert int(error.code) == 18
    assert error.damaged == key
    assert f"the catalog is damaged: {key}: expected " in str(error)
    assert found in str(error)
    assert "restore this file" in str(error)
    assert "/tmp" not in str(error)
    assert str(root) not in str(error)
    assert "Traceback" not in str(error)


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_cold_catalog_names_the_file_and_works_once_it_is_back(ground: Ground, kind: str) -> None:
    before = ground.catalog.snapshot().version
    cold = ground.again()
    with damaged(ground.root, kind) as (key, found):
        for act in (cold.catalog.snapshot, lambda: cold.read("list_tables", id=["g"])):
            with pytest.raises(CatalogDamaged) as reading:
                act()
            _check(reading.value, ground.root, key, found)
        with pytest.raises(CatalogDamaged, match="nothing was done: ") as writing:
            cold.make_namespace("new")
        _check(writing.value, ground.root, key, found)

    assert cold.catalog.snapshot().version == before
    cold.make_namespace("new")
    assert cold.catalog.snapshot().version == before + 1


@pytest.mark.parametrize("kind", ["truncated manifest", "missing row file"])
def test_a_warm_catalog_that_meets_the_damage_of_a_newer_version(ground: Ground, kind: str) -> None:
    warm = ground.again()
    warm.catalog.snapshot()
    ground.namespace.commit_calls(  # more than stands inline in the next manifest: its row file has to be read
        [ground.namespace.prepare("create_namespace", {"id": ["big"], "properties": {"p": "x" * 40_000}})]
    )
    before = ground.catalog.snapshot().version
    append = ground.transaction(["g", "t"], rows(3, 4))
    with damaged(ground.root, kind) as (key, found):
        with pytest.raises(CatalogDamaged) as reading:
            warm.read("list_tables", id=["g"])
        _check(reading.value, ground.root, key, found)
        with pytest.raises(CatalogDamaged, match="nothing was done: ") as writing:
            warm.batch(append)
        _check(writing.value, ground.root, key, found)

    warm.batch(append)
    assert warm.catalog.snapshot().version == before + 1
    assert warm.head(["g", "t"]) == 2


def test_a_damaged_old_version_is_named_and_a_missing_one_is_no_longer_kept(ground: Ground) -> None:
    newest = ground.catalog.snapshot().version
    cold = ground.again()
    old = sorted((ground.root / "__manifest" / "_versions").glob("*.manifest"))[1]
    old.write_bytes(b"")

    with pytest.raises(
        CatalogDamaged, match=f"{old.name}: expected version {newest - 1} of the catalog, found 0 bytes"
    ):
        cold.catalog.snapshot(newest - 1)
    with pytest.raises(CatalogDamaged, match=old.name):
        cold.read("list_catalog_versions")
    assert cold.catalog.snapshot().version == newest


@pytest.mark.parametrize("is_there", [True, False])
def test_a_row_file_of_an_old_version_that_is_damaged_is_named_and_one_that_is_gone_was_removed(
    ground: Ground, is_there: bool
) -> None:
    old = ground.catalog.snapshot().version
    row_files = {path for path in (ground.root / "__manifest/data").iterdir() if path.is_file()}
    open_manifest(ground.root).optimize.compact_files()
    cold = ground.again()
    assert cold.catalog.snapshot().version > old
    for path in row_files:
        path.write_bytes(b"") if is_there else path.unlink()
    with pytest.raises(
        CatalogDamaged if is_there else ReferenceNotFound,
        match="expected " if is_there else f"catalog version {old} is no longer kept: __manifest/data/.* was removed",
    ):
        cold.catalog.table.at(old)


class TestOutcomes:
    """An exception before the commit step leaves nothing behind; after it only the catalog knows."""

    def _fail(self, error: Exception) -> Callable[..., Any]:
        def fail(*_: object, **__: object) -> Any:
            raise error

        return fail

    @pytest.mark.parametrize("part", ["table.prepare", "table.stage", "verifier.verify", "verifier.recheck"])
    @pytest.mark.parametrize(
        ("error", "kind", "said"),
        [
            (
                StorageError("s3://key:secret@bucket"),
                ServiceUnavailableError,
                r"storage cannot be used \(StorageError\)",
            ),
            (ZeroDivisionError("secret"), InternalError, r"cannot be planned \(ZeroDivisionError\)"),
        ],
        ids=["store", "fault of ours"],
    )
    def test_nothing_sent_is_nothing_done(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch, part: str, error: Exception, kind: type, said: str
    ) -> None:
        before = ground.catalog.snapshot().version
        operation = ground.transaction(["g", "t"], rows(3, 4))
        owner, name = part.split(".")
        with monkeypatch.context() as patch:
            patch.setattr(getattr(ground.catalog, owner), name, self._fail(error))
            with pytest.raises(kind, match=rf"batch .*: nothing was done: .*{said}") as caught:
                ground.batch(operation)
        assert not isinstance(caught.value, BatchUnknown)
        assert "secret" not in str(caught.value)
        assert ground.again().catalog.snapshot().version == before
        ground.batch(operation)

    def test_a_commit_step_that_failed_in_an_unforeseen_way_is_unknown(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim = ground.catalog.table.claim

        def claim_and_fail(flip: Any) -> Any:
            claim(flip)
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(ground.catalog.table, "claim", claim_and_fail)
            with pytest.raises(BatchUnknown):
                ground.batch(ground.transaction(["g", "t"], rows(3, 4)))
        assert ground.head(["g", "t"]) == 2

    def test_a_flip_that_the_store_refused_is_not_done(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ground.catalog.table, "claim", lambda _: FlipRefused(StorageError("the disk is full")))

        with pytest.raises(ServiceUnavailableError, match="nothing was done") as caught:
            ground.make_namespace("new")

        assert not isinstance(caught.value, BatchUnknown)

    def test_a_lost_flip_whose_winner_cannot_be_read_is_not_done(self, tmp_path: Path) -> None:
        faults = FaultStore(LocalStore(tmp_path / "root", "none"))
        ours = Ground(tmp_path / "root", faults)
        ours.make_namespace("g")
        other = ours.again()
        lost = ours.catalog.table.claim

        def lose(flip: Any) -> Any:
            other.make_namespace("first")
            winner = min((tmp_path / "root" / "__manifest" / "_versions").glob("*.manifest"))
            winner.write_bytes(b"damaged")
            return lost(flip)

        ours.catalog.table.claim = lose  # type: ignore[method-assign]
        with pytest.raises(CatalogDamaged, match="nothing was done"):
            ours.make_namespace("new")

    def test_all_batches_of_a_call_are_told(self, ground: Ground) -> None:
        cold = DirectoryNamespace(catalog=ground.again().catalog)
        calls = [cold.prepare("create_namespace", {"id": [name]}) for name in "xyz"]
        with damaged(ground.root, "empty manifest"):
            answers = cold.commit_calls(calls)
        assert [str(answer).split(": ")[:2] for answer in answers] == [
            [f"batch {call.batch_uuid}", "nothing was done"] for call in calls
        ]

"""Backups between stores of different kinds, and of a root whose commits an external manifest store decides."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.storage.local import LocalStore
from lance_core.storage.opening import open_store
from namespace_server.directory.backup import BackupRun, Restoration, copies, verify
from namespace_server.directory.doctor import Examination
from namespace_server.store.manifests import open_manifest_store
from namespace_server.store.schema import migrate
from tests.directory.backup.catalogs import BRANCH, CLONE, T, back_up, build, content
from tests.directory.tables import Ground, rows
from tests.emulators import Emulator
from tests.storage.limited import PlainStore


@pytest.mark.services
@pytest.mark.parametrize(
    "service", ["moto_server", *(pytest.param(each, marks=pytest.mark.long) for each in ("azurite", "fake_gcs"))]
)
def test_a_directory_to_a_bucket_to_a_bucket_to_a_directory(
    request: pytest.FixtureRequest, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of more than some bytes are copied by the store itself where it can, and are hashed in parts.

    The service for Google does not speak the protocol that pylance reads with.
    """
    monkeypatch.setattr(copies, "_WHOLE", 600)
    opens = service != "fake_gcs"
    emulator: Emulator = request.getfixturevalue(service)
    options = emulator.storage_options
    ground = build(tmp_path / "root")
    expected = content(ground)
    first, root, second = (open_store(emulator.new_root(), options) for _ in range(3))
    try:
        BackupRun(ground.again().catalog, first).make()
        problems = verify(first, storage_options=options).problems
        assert not [problem for problem in problems if opens or "cannot be read" not in problem.text]
        Restoration(first, root).restore()
        ground.root.rename(tmp_path / "away")
        on_bucket = Ground(tmp_path / "unused", root)
        for table, branch in ((T, None), (T, BRANCH), (CLONE, None)) if opens else ():
            opened = lance.dataset(root.object_uri(on_bucket.location(table)), storage_options=options)
            opened = opened.checkout_version((branch, None)) if branch else opened
            newest = max(key for key in expected.versions if key[:2] == (tuple(table), branch))
            assert opened.to_table() == expected.versions[newest]
        assert Examination(root, sleep=lambda _seconds: None).examine().findings == ()
        BackupRun(on_bucket.catalog, second).make()
        Restoration(second, LocalStore(tmp_path / "back", "none")).restore()
        assert content(Ground(tmp_path / "back")) == expected
        with emulator.counted() as requests:  # none of a service in another process
            done = BackupRun(on_bucket.again(root).catalog, second).make()
        assert done.copied <= 3  # the rows of the catalog
        assert len(requests) < 80
    finally:
        for store in (first, root, second):
            store.close()


def test_a_root_with_a_manifest_store(tmp_path: Path) -> None:
    """Restored to another root with a database of its own, and to one without."""
    databases = [f"sqlite:///{tmp_path}/{name}.db" for name in ("one", "two")]
    for each in databases:
        migrate(each)
    one, two = (open_manifest_store(each) for each in databases)
    try:
        root = tmp_path / "root"
        ground = Ground(root, ExternalManifestHandler(one).over(PlainStore(LocalStore(root, "none"))))
        ground.make_namespace("g")
        ground.make_table(*T)
        ground.batch(ground.transaction(T, rows(3, 6)))
        ground.catalog.sweep()
        done = back_up(ground, tmp_path / "backups")
        expected = content(ground, ground.catalog.snapshot(done.record.catalog_version))
        target = ExternalManifestHandler(two).over(PlainStore(LocalStore(tmp_path / "other", "none")))
        Restoration(LocalStore(tmp_path / "backups", "none"), target).restore()
        restored = Ground(tmp_path / "other", target)
        assert content(restored) == expected
        restored.batch(restored.transaction(T, rows(6, 9)))
        restored.catalog.sweep()
        assert restored.ids(T) == list(range(9))
        Restoration(LocalStore(tmp_path / "backups", "none"), LocalStore(tmp_path / "plain", "none")).restore()
        assert content(Ground(tmp_path / "plain")) == expected
    finally:
        one.close()
        two.close()

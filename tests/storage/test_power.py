"""`PowerStore`: objects that are not durable are lost."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from tests.storage.contract import StoreContract, keys, racers
from tests.storage.power import PowerStore

__all__ = ["racers"]


class TestPowerStore(StoreContract):
    """While there is power it is a store like any other."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return PowerStore(LocalStore(tmp_path, "none"))

    @pytest.fixture
    def other(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path, "none")


@pytest.fixture
def store(tmp_path: Path) -> PowerStore:
    return PowerStore(LocalStore(tmp_path, "none"))


def test_durable_objects_survive_a_power_loss(store: PowerStore) -> None:
    store.put("put", b"x")
    store.put_if_absent("claimed", b"x")
    store.publish("put", "published", b"x")
    e_tag = store.put("replaced", b"x", durable=False)
    store.replace("replaced", b"y", if_match=str(e_tag))
    store.put("synced", b"x", durable=False)
    store.sync(["synced"])
    store.put("source", b"x", durable=False)
    store.rename_if_absent("source", "renamed")
    store.copy("put", "copied")
    assert store.lose_power() == []
    assert keys(store, "") == ["claimed", "copied", "published", "put", "renamed", "replaced", "synced"]


def test_other_objects_are_lost(store: PowerStore) -> None:
    store.put("t/put", b"x", durable=False)
    store.put_if_absent("t/claimed", b"x", durable=False)
    store.put("staged", b"x")
    store.publish("staged", "t/published", b"x", durable=False)
    store.put("t/again", b"x")
    store.put("t/again", b"y", durable=False)
    store.copy("staged", "t/copied", durable=False)
    assert store.lose_power() == ["t/again", "t/claimed", "t/copied", "t/published", "t/put"]
    assert keys(store, "") == ["staged"]


def test_an_unsynced_link_and_the_removal_of_the_staged_name_leave_no_copy(store: PowerStore) -> None:
    """S1: hence the staged name stays until the canonical one is durable."""
    store.put("staged", b"x")
    store.publish("staged", "t/1", b"x", durable=False)
    store.delete("staged")
    assert store.lose_power() == ["t/1"]
    assert keys(store, "") == []


def test_files_written_by_lance_are_lost_until_they_are_synced(store: PowerStore, tmp_path: Path) -> None:
    """S1: Lance clients never sync."""
    for name in ("kept", "lost"):
        lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / name))
    store.sync(keys(store, "kept"))
    lost = store.lose_power()
    assert lost
    assert all(path.startswith("lost/") for path in lost)
    assert lance.dataset(str(tmp_path / "kept")).count_rows() == 1


def test_the_initial_content_is_durable(store: PowerStore, tmp_path: Path) -> None:
    store.put("before", b"x", durable=False)
    assert PowerStore(LocalStore(tmp_path, "none")).lose_power() == []

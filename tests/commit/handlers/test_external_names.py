"""Names in an external manifest store: of other writers, removed, shared, and of keys that are not manifests."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import lance
import pytest

import lance_core
from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.commit.loop import commit_transaction
from lance_core.errors import AlreadyExists, NotFound, StorageError
from lance_core.format.naming import manifest_path
from lance_core.storage.local import LocalStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import Clone, MapUpdate, UpdateConfig, encode_transaction
from tests.commit.handlers.place import DEATHS, Place, Process, die
from tests.storage.faults import Crashed, Fault
from tests.storage.limited import PlainStore
from tests.transaction.tables import make_table, rows

# what was there before, and what others do


@pytest.mark.parametrize("v2", [True, False])
def test_a_table_older_than_the_manifest_store_stays_valid(tmp_path: Path, v2: bool) -> None:
    place = Place(make_table(tmp_path / "root", (0, 10), (10, 20), v2=v2))
    assert place.process().open().version == 2
    place.process().commit("a")
    lance.write_dataset(rows(20, 21), place.table.uri, mode="append")
    assert place.process().commit("b").version == 5
    assert [row.version for row in place.manifests.rows] == [3, 5]
    assert list(place.table.manifests()) == [1, 2, 3, 4, 5]
    assert place.table.ids() == list(range(21))


def test_concurrent_writers_of_an_old_table_lose_no_commit(place: Place) -> None:
    failures: list[BaseException] = []
    start = threading.Barrier(6)

    def write(name: str) -> None:
        try:
            store = ExternalManifestHandler(place.manifests).over(PlainStore(place.table.store))
            start.wait()
            for number in range(5):
                message = encode_transaction(UpdateConfig(MapUpdate({f"{name}{number}": "1"})), read_version=2)
                commit_transaction(store, "t", message, max_retries=200)
        except BaseException as error:  # noqa: BLE001 - reported below, in the thread that can fail the test
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [row.version for row in place.manifests.rows] == list(range(3, 33))
    place.check(*(f"{name}{number}" for name in "abcdef" for number in range(5)))


def test_one_directory_is_one_table_under_all_its_names(place: Place, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "root")
    handler = ExternalManifestHandler(place.manifests)
    die(place, "after the row")
    for uri in (tmp_path / "link" / "t", place.table.path, f"file://{tmp_path}/link/t"):
        assert Dataset.open(uri, commit_handler=handler).version == 3
    message = encode_transaction(UpdateConfig(MapUpdate({"k": "1"})), read_version=2)
    lance_core.commit_transaction(tmp_path / "link" / "t", message, commit_handler=handler)
    assert {row.base_uri for row in place.manifests.rows} == {place.table.store.object_uri("t")}


def test_a_removed_table_can_be_created_again(place: Place) -> None:
    """Its rows hold nothing any more: the files that they name are gone."""
    place.process().commit("a")
    chain = place.process()
    shutil.rmtree(place.table.path)
    with pytest.raises(NotFound):
        chain.store.get(manifest_path("t", 3))
    for version in (1, 2, 3):
        chain.store.put_if_absent(manifest_path("t", version), b"new %d" % version)
        with pytest.raises(AlreadyExists):
            chain.store.put_if_absent(manifest_path("t", version), b"newer")
        assert place.final(version).read_bytes() == b"new %d" % version
    assert [(row.version, row.staged, row.size) for row in place.manifests.rows] == [(n, False, 5) for n in (1, 2, 3)]


def test_a_name_without_its_file_is_claimed_by_one_writer(place: Place) -> None:
    """Between the look and the claim another writer takes it, and finishes: the row is not the one that was seen."""
    place.process().commit("a")
    place.final(3).unlink()
    slow = place.process()
    taken: list[str] = []

    def overtake(verb: str, path: str) -> None:
        if verb == "put" and not taken:
            taken.append(path)
            place.process().store.put_if_absent(manifest_path("t", 3), b"theirs")

    slow.objects.before(overtake)
    with pytest.raises(AlreadyExists):
        slow.store.put_if_absent(manifest_path("t", 3), b"ours")
    assert place.final(3).read_bytes() == b"theirs"
    assert place.staged() == []


def test_a_deleted_version_leaves_no_row(place: Place) -> None:
    process = place.process()
    process.commit("a")
    process.store.delete(manifest_path("t", 3))
    assert place.manifests.rows == []
    assert not place.final(3).exists()
    process.store.delete(manifest_path("t", 3))
    process.store.put_if_absent(manifest_path("t", 3), b"x")


def test_deleting_a_staged_version_leaves_no_files_and_no_row(place: Place) -> None:
    die(place, "after the row")
    place.process().store.delete(manifest_path("t", 3))
    assert place.manifests.rows == []
    assert place.staged() == []
    place.check()


def test_a_version_has_one_name(place: Place) -> None:
    store = place.process().store
    store.put_if_absent(manifest_path("t", 3), b"x")
    with pytest.raises(
        StorageError, match=r"3\.manifest: its version is already committed under the name .*612\.manif"
    ):
        store.put_if_absent("t/_versions/3.manifest", b"x")
    with pytest.raises(NotFound):
        store.get("t/_versions/3.manifest")
    assert place.staged() == []


def test_a_staged_version_cannot_be_claimed_under_its_other_name(place: Place) -> None:
    die(place, "after the row")
    with pytest.raises(NotFound):
        place.process().store.get("t/_versions/3.manifest")
    assert not place.final(3).exists()


def test_a_crashed_deletion_leaves_a_vacant_name(place: Place) -> None:
    """The file is removed before the row: a row alone is vacant, a file alone could never be claimed."""
    process = place.process()
    process.commit("a")
    process.manifests.fail(Fault.CRASH_BEFORE, "remove")
    with pytest.raises(Crashed):
        process.store.delete(manifest_path("t", 3))
    assert not place.final(3).exists()
    assert place.process().open().version == 2
    assert place.process().commit("b").version == 3
    place.check("b")


def test_a_plain_put_finalises_the_version_it_replaces(place: Place) -> None:
    die(place, "after the row")
    place.process().store.put(manifest_path("t", 3), b"repaired")
    assert place.process().store.get(manifest_path("t", 3)) == b"repaired"
    assert place.staged() == []


def test_a_copy_of_a_staged_version_finalises_it_first(place: Place) -> None:
    die(place, "after the row")
    store, other = place.process().store, place.process()
    other.store.copy(manifest_path("t", 3), "elsewhere", origin=store)
    assert store.get("elsewhere") == store.get(manifest_path("t", 3))
    place.check("dead")


def test_a_copy_onto_a_staged_version_finalises_it_first(place: Place) -> None:
    die(place, "after the row")
    place.process().store.copy(manifest_path("t", 2), manifest_path("t", 3))
    assert place.process().store.get(manifest_path("t", 3)) == place.final(2).read_bytes()
    assert place.staged() == []


def test_of_two_concurrent_replacements_one_wins(place: Place) -> None:
    process = place.process()
    process.commit("a")
    e_tag = process.store.head(manifest_path("t", 3)).e_tag
    assert e_tag is not None
    overtaken: list[str] = []

    def overtake(verb: str, path: str) -> None:
        if verb == "put" and not overtaken:
            overtaken.append(path)
            place.process().store.replace(manifest_path("t", 3), b"theirs", if_match=e_tag)

    process.objects.before(overtake)
    with pytest.raises(StorageError, match="another writer replaced the object"):
        process.store.replace(manifest_path("t", 3), b"ours", if_match=e_tag)
    assert place.final(3).read_bytes() == b"theirs"


def test_a_replacement_of_a_staged_version_finalises_it_first(place: Place) -> None:
    die(place, "after the final name")
    store = place.process().store
    e_tag = LocalStore(place.table.root, "none").head(manifest_path("t", 3)).e_tag
    with pytest.raises(StorageError):
        store.replace(manifest_path("t", 3), b"ours", if_match='"other"')
    now = store.head(manifest_path("t", 3)).e_tag
    assert now is not None
    assert e_tag is not None
    store.replace(manifest_path("t", 3), b"ours", if_match=now)
    assert store.get(manifest_path("t", 3)) == b"ours"
    assert [row.staged for row in place.manifests.rows] == [False]


# names that are no manifests

TAG = "t/_refs/tags/x.json"


def claim_tag(process: Process, data: bytes = b"first") -> None:
    process.store.put_if_absent(TAG, data)


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "claimed"), [(moment, claimed) for moment, (_, claimed) in DEATHS.items()])
def test_a_tag_exists_or_not_after_a_crash_of_any_client(place: Place, moment: str, claimed: bool) -> None:
    moments: dict[str, Callable[[Process], None]] = {
        **{name: arm for name, (arm, _) in DEATHS.items() if "row" in name or "update" in name},
        "before staging": lambda process: process.objects.fail(Fault.CRASH_BEFORE, nth=0),
        "after staging": lambda process: process.objects.fail(Fault.CRASH_AFTER, nth=0),
        "before the final name": lambda process: process.objects.fail(Fault.CRASH_BEFORE, nth=1),
        "after the final name": lambda process: process.objects.fail(Fault.CRASH_AFTER, nth=1),
        "before tidying": lambda process: process.objects.fail(Fault.CRASH_BEFORE, nth=2),
        "after tidying": lambda process: process.objects.fail(Fault.CRASH_AFTER, nth=2),
    }
    process = place.process()
    moments[moment](process)
    with pytest.raises(Crashed):
        claim_tag(process)
    if claimed:
        with pytest.raises(AlreadyExists):
            claim_tag(place.process(), b"second")
    else:
        claim_tag(place.process(), b"second")
    assert place.process().store.get(TAG) == (b"first" if claimed else b"second")


def test_listing_finalises_a_claimed_tag(place: Place) -> None:
    process = place.process()
    process.manifests.fail(Fault.CRASH_AFTER, "put_if_absent")
    with pytest.raises(Crashed):
        claim_tag(process)
    assert [meta.path for meta in place.process().store.list("t/_refs")] == [TAG]


def test_a_lost_claim_does_not_block_the_name(place: Place) -> None:
    process = place.process()
    process.manifests.fail(Fault.CRASH_AFTER, "put_if_absent")
    with pytest.raises(Crashed):
        claim_tag(process)
    for path in (place.table.root / TAG).parent.iterdir():
        path.unlink()
    assert list(place.process().store.list("t/_refs")) == []
    claim_tag(place.process(), b"second")
    assert place.process().store.get(TAG) == b"second"


def test_a_tag_deleted_by_stock_pylance_can_be_created_again(place: Place) -> None:
    dataset = place.process().open()
    dataset.tags.create("x", 1)
    with pytest.raises(AlreadyExists):
        dataset.tags.create("x", 2)
    place.table.open().tags.delete("x")
    dataset.tags.create("x", 2)
    assert place.table.open().tags.list()["x"]["version"] == 2


def test_a_branch_deleted_by_stock_pylance_can_be_created_again(place: Place) -> None:
    """Its versions have the numbers of the first one."""
    process = place.process()
    for _ in range(2):
        clone = Clone(ref_path=place.table.uri, ref_version=2, ref_name=None, branch_name="dev")
        message = encode_transaction(clone, read_version=2)
        commit_transaction(process.store, "t", message, branch="dev")
        process.open().branches.create("dev", 2)
        assert place.table.open().checkout_version(("dev", None)).version == 2
        place.table.open().branches.delete("dev")
        assert not place.table.branch("dev").path.exists()

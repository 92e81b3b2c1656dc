"""The four steps of a commit through an external manifest store, and failures between them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import lance
import pytest

import lance_core
from lance_core.commit.handlers import ExternalManifestHandler, ManifestRow
from lance_core.commit.loop import commit_transaction
from lance_core.errors import AlreadyExists, ManifestNotSynchronized, NotFound, StorageError, TransactionUnknown
from lance_core.format.naming import manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import Append, MapUpdate, UpdateConfig, encode_transaction
from lance_core.versions import find_latest, list_versions, read_version
from tests.commit.handlers.place import DEATHS, Place, die, refuse_final
from tests.storage.faults import Crashed, Fault
from tests.storage.manifests import MemoryManifestStore
from tests.transaction.tables import rows

# the steps


def test_a_commit_is_staged_committed_finalised_and_updated(place: Place) -> None:
    process = place.process()
    seen: list[tuple[str, str, list[bool]]] = []

    def note(verb: str, path: str) -> None:
        if "/_versions/" in path and verb in {"put", "delete"}:
            seen.append((verb, path, [row.staged for row in place.manifests.rows]))

    process.objects.before(note)
    done = process.commit("k")
    final = manifest_path("t", 3)
    [row] = place.manifests.rows
    assert (done.version, done.path) == (3, final)
    assert seen == [
        ("put", f"{final}-{row.uuid}", []),
        ("put", final, [True]),
        ("delete", f"{final}-{row.uuid}", [False]),
    ]
    uri = place.table.store.uri
    assert row == ManifestRow(f"{uri}/t", 3, f"{uri}/{final}", place.final(3).stat().st_size, row.uuid)
    place.check("k")


def test_every_exclusive_write_goes_to_the_manifest_store(place: Place) -> None:
    """The store below refuses them, and is never asked for one."""
    process = place.process()
    process.commit("a")
    process.open().tags.create("tag", 3)
    assert {write.verb for write in process.objects.writes} == {"put", "delete"}
    assert place.table.open().tags.list()["tag"]["version"] == 3


def test_public_functions_accept_the_handler(place: Place) -> None:
    handler = ExternalManifestHandler(place.manifests)
    message = encode_transaction(Append(place.table.stage(rows(20, 22))), read_version=2)
    done = lance_core.commit_transaction(place.table.uri, message, commit_handler=handler)
    assert done.version == 3
    assert [(row.version, row.staged) for row in place.manifests.rows] == [(3, False)]
    dataset = Dataset.open(place.table.uri, commit_handler=handler)
    again = dataset.commit(encode_transaction(UpdateConfig(MapUpdate({"k": "1"})), read_version=3))
    assert (dataset.version, again.version) == (3, 4)
    assert [(row.version, row.staged) for row in place.manifests.rows] == [(3, False), (4, False)]
    assert place.table.ids() == list(range(22))


# a process dies


@pytest.mark.parametrize("moment", DEATHS)
def test_the_next_reader_finalises_a_committed_version(place: Place, moment: str) -> None:
    committed = die(place, moment)
    reader = place.process()
    assert reader.open().version == 2 + len(committed)
    assert sorted(reader.open().manifest.config) == committed
    place.check(*committed)


@pytest.mark.parametrize("moment", DEATHS)
def test_a_reader_of_a_staged_version_finalises_it(place: Place, moment: str) -> None:
    committed = die(place, moment)
    store = place.process().store
    if not committed:
        with pytest.raises(NotFound):
            store.get(manifest_path("t", 3))
    else:
        assert read_version(store, "t", 3)[1].version == 3
        assert store.head(manifest_path("t", 3)).size == place.final(3).stat().st_size
    place.check(*committed)


@pytest.mark.parametrize("moment", DEATHS)
def test_the_next_writer_builds_on_a_committed_version(place: Place, moment: str) -> None:
    committed = die(place, moment)
    done = place.process().commit("alive")
    assert (done.version, done.rebased) == (3 + len(committed), bool(committed))
    place.check(*committed, "alive")


@pytest.mark.parametrize("moment", DEATHS)
def test_a_writer_that_does_not_list_loses_to_a_committed_version(place: Place, moment: str) -> None:
    committed = die(place, moment)
    store = place.process().store
    if committed:
        with pytest.raises(AlreadyExists):
            store.put_if_absent(manifest_path("t", 3), b"ours")
        place.check(*committed)
    else:
        store.put_if_absent(manifest_path("t", 3), b"ours")
        assert place.final(3).read_bytes() == b"ours"


@pytest.mark.parametrize("moment", DEATHS)
def test_a_repeated_transaction_is_committed_once(place: Place, moment: str) -> None:
    message = encode_transaction(UpdateConfig(MapUpdate({"dead": "1"})), read_version=2)
    process = place.process()
    DEATHS[moment][0](process)
    with pytest.raises(Crashed):
        commit_transaction(process.store, "t", message)
    assert commit_transaction(place.process().store, "t", message).version == 3
    place.check("dead")


@pytest.mark.parametrize("moment", DEATHS)
def test_a_copy_opens_without_the_manifest_store(place: Place, moment: str, tmp_path: Path) -> None:
    """Whatever is unfinished: at the version that the object store shows, and it goes on from there."""
    die(place, moment)
    shown = place.table.open().version
    copy = place.table.copy(tmp_path / "copy")
    assert (copy.open().version, Dataset.open(copy.uri).version) == (shown, shown)
    message = encode_transaction(UpdateConfig(MapUpdate({"copy": "1"})), read_version=shown)
    assert lance_core.commit_transaction(copy.uri, message).version == shown + 1
    lance.write_dataset(rows(20, 21), copy.uri, mode="append")
    copy.open().validate()
    assert copy.ids() == list(range(21))


def test_a_crashed_finalisation_is_completed_by_the_next_reader(place: Place) -> None:
    die(place, "after the row")
    for moment in ("before the final name", "after the final name", "before the update"):
        reader = place.process()
        DEATHS[moment][0](reader)
        with pytest.raises(Crashed):
            reader.open()
    assert place.process().open().version == 3
    place.check("dead")


def test_concurrent_readers_finalise_one_version(place: Place) -> None:
    die(place, "after the row")
    versions: list[int] = []
    start = threading.Barrier(8)

    def read() -> None:
        process = place.process()
        start.wait()
        versions.append(process.open().version)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert versions == [3] * 8
    place.check("dead")


def test_a_version_finalised_by_another_reader_is_read(place: Place) -> None:
    die(place, "after the row")
    slow = place.process()

    def overtake(verb: str, path: str) -> None:
        if verb == "get" and ".manifest-" in path:
            assert place.process().open().version == 3

    slow.objects.before(overtake)
    assert slow.open().version == 3
    place.check("dead")


# a reader refuses


READS: dict[str, Callable[[ObjectStore], object]] = {
    "latest": lambda store: find_latest(store, "t"),
    "versions": lambda store: list_versions(store, "t"),
    "number": lambda store: read_version(store, "t", 3),
    "range": lambda store: store.get_range(manifest_path("t", 3), 0, 8),
    "head": lambda store: store.head(manifest_path("t", 3)),
    "all": lambda store: list(store.list("")),
    "write": lambda store: store.put_if_absent(manifest_path("t", 4), b"x"),
}


@pytest.mark.parametrize("read", READS)
def test_a_version_that_cannot_be_finalised_is_not_read(place: Place, read: str) -> None:
    die(place, "after the row")
    reader = place.process()
    refuse_final(reader)
    with pytest.raises(ManifestNotSynchronized, match=r"manifest: committed in the external manifest store.*no permis"):
        READS[read](reader.store)
    assert not place.final(3).exists()
    assert len(place.staged()) == 1
    READS[read](place.process().store)


@pytest.mark.parametrize("read", READS)
def test_a_version_without_its_staged_file_is_not_read(place: Place, read: str) -> None:
    die(place, "after the row")
    place.staged()[0].unlink()
    with pytest.raises(ManifestNotSynchronized, match="the staged file is missing"):
        READS[read](place.process().store)


def test_a_staged_file_of_another_size_is_not_read(place: Place) -> None:
    die(place, "after the row")
    place.staged()[0].write_bytes(b"something else")
    with pytest.raises(ManifestNotSynchronized, match="14 bytes, not"):
        place.process().open()
    assert not place.final(3).exists()


def test_without_the_manifest_store_nothing_is_read(place: Place) -> None:
    process = place.process()
    process.manifests.unreachable = True
    for read in READS.values():
        with pytest.raises(StorageError, match="does not answer"):
            read(process.store)


def test_older_versions_are_read_while_the_newest_cannot_be(place: Place) -> None:
    die(place, "after the row")
    reader = place.process()
    refuse_final(reader)
    assert read_version(reader.store, "t", 2)[1].version == 2


def test_a_final_file_is_enough(place: Place) -> None:
    """The staged file was removed after the final one was written, and the row was never told."""
    die(place, "after the final name")
    place.staged()[0].unlink()
    assert place.process().open().version == 3
    place.check("dead")


def test_a_final_file_of_another_size_is_not_enough(place: Place) -> None:
    die(place, "after the row")
    place.staged()[0].unlink()
    place.final(3).write_bytes(b"of another writer")
    with pytest.raises(ManifestNotSynchronized, match="the staged file is missing"):
        place.process().open()
    assert [row.staged for row in place.manifests.rows] == [True]


def test_a_lost_version_can_be_abandoned_by_removing_its_row(place: Place) -> None:
    die(place, "after the row")
    place.staged()[0].unlink()
    place.process().store.delete(manifest_path("t", 3))
    assert place.manifests.rows == []
    assert place.process().commit("k").version == 3
    place.check("k")


# the writer goes on


def test_a_commit_is_valid_although_its_final_name_cannot_be_written(place: Place) -> None:
    writer = place.process()
    refuse_final(writer)
    assert writer.commit("a").version == 3
    assert not place.final(3).exists()
    assert place.hint() == {}
    assert place.process().open().version == 3
    place.check("a")


def test_nothing_is_built_on_a_version_that_cannot_be_finalised(place: Place) -> None:
    writer = place.process()
    refuse_final(writer)
    writer.commit("a")
    with pytest.raises(ManifestNotSynchronized):
        writer.commit("b")
    assert [row.version for row in place.manifests.rows] == [3]
    assert place.process().commit("b").version == 4
    place.check("a", "b")


def test_publishing_reports_a_missing_final_name(place: Place) -> None:
    """A published name must be readable by clients that do not use the manifest store."""
    process = place.process()
    data = place.final(2).read_bytes()
    process.objects.put("staged", data)
    refuse_final(process)
    with pytest.raises(StorageError, match="not visible yet"):
        process.store.publish("staged", manifest_path("u", 1), data)
    assert place.process().store.get(manifest_path("u", 1)) == data


# answers are lost (F1)


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.DELAYED])
def test_a_lost_answer_is_resolved_by_reading(place: Place, fault: Fault) -> None:
    writer = place.process()
    writer.manifests.fail(fault, "put_if_absent")
    assert writer.commit("a").version == 3
    writer.manifests.deliver()
    place.check("a")


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.DELAYED])
def test_a_lost_answer_of_the_last_step_is_harmless(place: Place, fault: Fault) -> None:
    writer = place.process()
    writer.manifests.fail(fault, "replace")
    assert writer.commit("a").version == 3
    writer.manifests.deliver()
    assert place.process().open().version == 3
    place.check("a")


def test_an_unknown_outcome_cleans_up_nothing(place: Place) -> None:
    writer = place.process()
    writer.manifests.fail(Fault.DELAYED, "put_if_absent", times=99)
    with pytest.raises(TransactionUnknown):
        writer.commit("a")
    assert place.process().open().version == 2
    assert place.staged()
    writer.manifests.deliver()
    assert place.process().open().version == 3
    place.check("a")


def test_a_delayed_row_loses_to_the_version_of_another_writer(place: Place) -> None:
    writer = place.process()
    writer.manifests.fail(Fault.DELAYED, "put_if_absent", times=99)
    with pytest.raises(TransactionUnknown):
        writer.commit("a")
    place.process().commit("b")
    writer.manifests.deliver()
    assert place.process().open().version == 3
    place.check("b")


def test_a_manifest_store_without_an_answer_gives_an_unknown_outcome(place: Place) -> None:
    writer = place.process()
    commit = writer.manifests.inner.put_if_absent

    def put_and_vanish(row: ManifestRow) -> bool:
        writer.manifests.unreachable = True
        return commit(row)

    writer.manifests.fail(Fault.LOST_ANSWER, "put_if_absent")
    writer.manifests.inner = MemoryProxy(place.manifests, put_and_vanish)
    with pytest.raises(TransactionUnknown, match="does not answer"):
        writer.commit("a")
    assert place.process().open().version == 3
    place.check("a")


class MemoryProxy(MemoryManifestStore):
    def __init__(self, inner: MemoryManifestStore, put_if_absent: Callable[[ManifestRow], bool]) -> None:
        super().__init__()
        self._lock, self._rows = inner._lock, inner._rows
        self.put_if_absent = put_if_absent  # type: ignore[method-assign]


def test_a_refused_row_commits_nothing_and_leaves_no_files(place: Place) -> None:
    writer = place.process()

    def refuse(row: ManifestRow) -> bool:
        raise StorageError(f"no permission for {row.version}")

    writer.manifests.put_if_absent = refuse  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="no permission for 3"):
        writer.commit("a")
    assert place.staged() == []
    place.check()

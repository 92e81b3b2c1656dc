"""The commit point, what surrounds it, and the way back to earlier versions."""

from __future__ import annotations

import uuid
from pathlib import Path

import lance
import pytest
from lance.namespace import CreateNamespaceRequest, DirectoryNamespace, ListNamespacesRequest, TableExistsRequest

from lance_core.errors import AlreadyExists, ReferenceNotFound, StorageError
from lance_core.format.manifest import parse_manifest_file
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.directory.manifest_table.flip import FlipCommitted, FlipLost, FlipRefused, FlipUnknown
from namespace_server.directory.manifest_table.schema import BATCHES_PROPERTY, CHANGES_PROPERTY, IDENTITY_KEY, OnDisk
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import Changes, NamespaceEntry, RecordEntry, TableEntry, changes_of
from tests.directory.flipping import assert_on_disk, claim_and_prove, flip, open_manifest, rows_on_disk
from tests.directory.reference import ReferenceCatalog, assert_snapshot_is, put
from tests.storage.faults import Fault, FaultStore

SPACE = put([NamespaceEntry(("a",), {"owner": "me"})])


def is_manifest(path: str) -> bool:
    return path.endswith(".manifest")


def test_the_identity_of_a_catalog_is_that_of_the_first_flip_that_found_none(tmp_path: Path) -> None:
    """An earlier release, and a stock client, leave it as it is, or without one."""
    table = ManifestTable(LocalStore(tmp_path))
    first = flip(table, SPACE)
    assert isinstance(first.disk, OnDisk)
    second = flip(table, Changes(), table_metadata={"owner": "us"})
    assert isinstance(second.disk, OnDisk)
    assert second.disk.identity == first.disk.identity == first.disk.attempt
    metadata = {key: value for key, value in open_manifest(tmp_path).metadata.items() if key != IDENTITY_KEY}
    open_manifest(tmp_path).update_config({"lance.other": "1"})
    assert open_manifest(tmp_path).metadata[IDENTITY_KEY] == first.disk.identity
    open_manifest(tmp_path).update_metadata(metadata, replace=True)
    assert IDENTITY_KEY not in open_manifest(tmp_path).metadata
    later = flip(ManifestTable(LocalStore(tmp_path)), Changes(), table_metadata={"owner": "them"})
    assert isinstance(later.disk, OnDisk)
    assert later.disk.identity == later.disk.attempt != first.disk.identity


def test_a_new_root_is_a_managed_dataset_of_the_directory_format(tmp_path: Path) -> None:
    table = ManifestTable(LocalStore(tmp_path))
    assert (table.refresh().version, table.current.managed) == (0, False)
    snapshot = flip(table, SPACE)
    assert (snapshot.version, snapshot.managed) == (1, True)
    dataset = open_manifest(tmp_path)
    stock = DirectoryNamespace(root=str(tmp_path / "stock"))
    stock.create_namespace(CreateNamespaceRequest(id=["a"]))
    expected = lance.dataset(str(tmp_path / "stock" / "__manifest"))
    assert dataset.schema.equals(expected.schema, check_metadata=True)
    assert dataset.data_storage_version == expected.data_storage_version == "2.2"
    assert dataset.metadata == {
        "table_version_management": "true",
        "lance.namespace.manifest.writer_feature_flags": "4294967296",
        "lance-namespace-server.catalog": dataset.read_transaction(1).uuid,
    }
    assert sorted(path.name for path in (tmp_path / "__manifest").iterdir()) == ["_versions", "data"]
    assert type(dataset.read_transaction(1).operation).__name__ == "Overwrite"


def test_stock_clients_read_our_root_and_are_told_to_upgrade_when_they_write(tmp_path: Path) -> None:
    table = ManifestTable(LocalStore(tmp_path))
    flip(table, SPACE)
    stock = DirectoryNamespace(root=str(tmp_path))
    assert stock.list_namespaces(ListNamespacesRequest(id=[])).namespaces == ["a"]
    flip(table, put([NamespaceEntry(("b",)), TableEntry(("a", "t"), "1_a$t")]))
    assert sorted(stock.list_namespaces(ListNamespacesRequest(id=[])).namespaces) == ["a", "b"]
    stock.table_exists(TableExistsRequest(id=["a", "t"]))
    with pytest.raises(Exception, match="upgrade Lance"):
        stock.create_namespace(CreateNamespaceRequest(id=["c"]))
    assert table.refresh().version == 2


def test_the_strict_fence_stops_plain_dataset_writes_for_good(tmp_path: Path) -> None:
    table = ManifestTable(LocalStore(tmp_path))
    flip(table, SPACE, strict=True)
    flip(table, put([NamespaceEntry(("b",))]))
    dataset = open_manifest(tmp_path)
    assert dataset.count_rows() == 2
    with pytest.raises(Exception, match="cannot be written by this version of Lance"):
        lance.write_dataset(dataset.to_table(), dataset.uri, mode="append")
    assert flip(ManifestTable(LocalStore(tmp_path)), put([NamespaceEntry(("c",))])).version == 3


def test_one_of_two_flips_on_one_version_wins_and_the_other_leaves_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    one, two = ManifestTable(store), ManifestTable(store)
    flip(one, SPACE)
    flips = [
        table.prepare(table.refresh(), put([NamespaceEntry((name,))]), attempt=str(uuid.uuid4()))
        for table, name in ((one, "b"), (two, "c"))
    ]
    one.stage(flips[0])
    two.stage(flips[1])
    assert isinstance(claim_and_prove(two, flips[1]), FlipCommitted)
    lost = claim_and_prove(one, flips[0])
    assert lost == FlipLost(flips[1].manifest)
    assert one.refresh().child_namespaces(()) == ("a", "c")
    one.discard(flips[0])
    data = {path.name for path in (tmp_path / "__manifest" / "data").iterdir()}
    assert not data.intersection(path.rpartition("/")[2] for path, _ in flips[0].files)
    assert sorted(row.object_id for row in rows_on_disk(tmp_path)) == ["a", "c"]


@pytest.mark.parametrize(("fault", "times"), [(Fault.LOST_ANSWER, 1), (Fault.LOST_REQUEST, 1)])
def test_a_lost_answer_is_settled_by_the_slot(fault: Fault, times: int) -> None:
    """F1: the slot is read, or the same bytes are sent again."""
    store = FaultStore(MemoryStore())
    table = ManifestTable(store)
    store.fail(fault, when=lambda write: is_manifest(write.path), times=times)
    assert flip(table, SPACE).version == 1
    assert ManifestTable(store.inner).refresh().child_namespaces(()) == ("a",)


def test_an_unknown_outcome_is_not_a_refusal() -> None:
    """F1: what was put may land later. The same flip can be committed again; nothing was cleaned up."""
    store = FaultStore(MemoryStore())
    table = ManifestTable(store)
    prepared = table.prepare(table.refresh(), SPACE, attempt=str(uuid.uuid4()))
    table.stage(prepared)
    store.fail(Fault.DELAYED, when=lambda write: is_manifest(write.path), times=100)
    assert isinstance(claim_and_prove(table, prepared), FlipUnknown)
    assert table.refresh().version == 0
    answers = store.deliver()
    assert answers[0] is None
    assert all(isinstance(answer, AlreadyExists) for answer in answers[1:])
    assert table.refresh().child_namespaces(()) == ("a",)
    assert isinstance(claim_and_prove(table, prepared), FlipCommitted)


def test_a_refused_write_is_an_error_and_no_flip() -> None:
    store = FaultStore(MemoryStore())
    table = ManifestTable(store)
    prepared = table.prepare(table.refresh(), SPACE, attempt=str(uuid.uuid4()))

    def refuse(verb: str, path: str) -> None:
        if verb == "put_if_absent":
            raise StorageError("the disk is full")

    remove = store.before(refuse)
    refused = table.claim(prepared)
    assert isinstance(refused, FlipRefused)
    assert "full" in str(refused.error)
    remove()
    assert table.refresh().version == 0


def test_files_of_a_flip_are_durable_before_its_manifest(tmp_path: Path) -> None:
    """S1: row files and deletion files are synced, then the manifest is written."""
    store = FaultStore(LocalStore(tmp_path))
    table = ManifestTable(store)
    reference = ReferenceCatalog(4)
    for _ in range(60):
        flip(table, reference.step(8))
    synced = {path: before for before, path in store.synced}
    kinds: set[str] = set()
    for write in store.writes:
        if is_manifest(write.path):
            number = write.number
            file = parse_manifest_file(store.get(write.path))
            for fragment in file.manifest.fragments:
                assert synced[f"__manifest/data/{fragment.files[0].path}"] <= number
            kinds.update(write.path.rpartition(".")[2] for write in store.writes[:number])
    deletions = [path for path in synced if "/_deletions/" in path]
    assert deletions
    assert {write.path for write in store.writes if not is_manifest(write.path)} == synced.keys()


def test_nothing_staged_is_ever_overwritten() -> None:
    """N5: two flips of one attempt on one snapshot share no file."""
    table = ManifestTable(MemoryStore())
    snapshot = flip(table, SPACE)
    attempt = str(uuid.uuid4())
    one, two = (table.prepare(snapshot, changes_of([NamespaceEntry(("b",))], ["a"]), attempt=attempt) for _ in "12")
    assert not {path for path, _ in one.files}.intersection(path for path, _ in two.files)
    assert one.path == two.path


def test_timestamps_grow_whatever_the_clock_says() -> None:
    moments = iter([5_000_000_000, 3_000_000_000, 3_000_000_000, 9_000_000_000])
    store = MemoryStore()
    table = ManifestTable(store, now=lambda: next(moments))
    for name in "abcd":
        flip(table, put([NamespaceEntry((name,))]))
    found = [
        parse_manifest_file(store.get(meta.path)).timestamp_ns
        for meta in sorted(store.list("__manifest/_versions"), key=lambda meta: meta.path, reverse=True)
    ]
    assert found == [5_000_000_000, 5_000_000_001, 5_000_000_002, 9_000_000_000]


def test_an_overlay_cannot_be_flipped_on() -> None:
    table = ManifestTable(MemoryStore())
    overlay = table.refresh().apply(SPACE)
    with pytest.raises(ValueError, match="overlay"):
        table.prepare(overlay, SPACE, attempt="u")


def test_an_entry_stands_under_its_own_object_id() -> None:
    table = ManifestTable(MemoryStore())
    with pytest.raises(ValueError, match="object id"):
        table.prepare(table.refresh(), Changes({"b": NamespaceEntry(("a",))}), attempt="u")


def test_round_trips() -> None:
    """Architecture 9: reading costs one request while nothing changes; a flip one step to stage, one to commit, one to
    prove that nothing is newer (G7)."""
    store = CountingStore(MemoryStore())
    store.local = False  # as a bucket
    table = ManifestTable(store)
    other = ManifestTable(store)
    reference = ReferenceCatalog(7)
    for _ in range(30):
        flip(table, reference.step(5))
    other.refresh()
    with store.measure() as cost:
        table.refresh()
    assert (cost.requests, cost.round_trips) == (1, 1)
    with store.measure() as cost:
        prepared = table.prepare(table.current, reference.step(5), attempt=str(uuid.uuid4()))
    assert cost.requests == 0
    with store.measure() as cost:
        table.stage(prepared)
        claim_and_prove(table, prepared)
    assert cost.round_trips == 3
    with store.measure() as cost:
        other.refresh()
    assert cost.round_trips == 2
    assert cost.requests == 4  # the version that is there; the one before, the next, which is not, and a listing
    assert_snapshot_is(other.current, reference)


def test_a_server_that_was_away_for_long_goes_to_the_newest_version_directly() -> None:
    store = CountingStore(MemoryStore())
    table, idle = ManifestTable(store), ManifestTable(store)
    reference = ReferenceCatalog(8)
    flip(table, reference.step())
    idle.refresh()
    for _ in range(200):
        flip(table, reference.step(2))
    with store.measure() as cost:
        idle.refresh()
    assert cost.requests < 150
    assert_snapshot_is(idle.current, reference)


def test_an_idle_server_lists_before_it_believes_a_vacant_version() -> None:
    """F6: when the next versions were removed by retention, probing alone would find the catalog unchanged."""
    store = MemoryStore()
    table = ManifestTable(store)
    idle = ManifestTable(store, listing_interval=-1.0)
    trusting = ManifestTable(store)
    flip(table, SPACE)
    idle.refresh()
    trusting.refresh()
    for name in "bcd":
        flip(table, put([NamespaceEntry((name,))]))
    for number in (2, 3):
        store.delete(f"__manifest/_versions/{(1 << 64) - 1 - number}.manifest")
    assert trusting.refresh().version == 1
    assert idle.refresh().version == 4
    assert trusting.refresh_by_listing().version == 4
    assert trusting.current.listed_at > 0


def test_earlier_versions_are_read_as_they_were(tmp_path: Path) -> None:
    """Invariant 9: a pinned read answers the same for ever, from any server."""
    store = LocalStore(tmp_path, durability="none")
    table = ManifestTable(store)
    reference = ReferenceCatalog(9)
    states: dict[int, dict] = {}
    for step in range(1, 61):
        flip(table, reference.step(4 if step % 9 else 60))
        states[step] = dict(reference.rows)
    fresh = ManifestTable(store)
    fresh.refresh()
    for version in (60, 59, 1, 30, 31, 7, 45, 8, 44):
        for reader in (fresh, table, ManifestTable(store)):
            past = ReferenceCatalog()
            past.rows = states[version]
            snapshot = reader.at(version)
            assert snapshot.version == version
            assert_snapshot_is(snapshot, past)
    assert fresh.at(60) is fresh.current
    for version in (0, 61, -1):
        with pytest.raises(ReferenceNotFound, match=f"catalog version {version}"):
            fresh.at(version)


def test_a_version_whose_files_were_removed_is_no_longer_kept() -> None:
    store = MemoryStore()
    table = ManifestTable(store)
    for name in "abc":
        flip(table, put([NamespaceEntry((name,))]))
    removed = parse_manifest_file(store.get(f"__manifest/_versions/{(1 << 64) - 2}.manifest"))
    store.delete(f"__manifest/data/{removed.manifest.fragments[0].files[0].path}")
    fresh = ManifestTable(store)
    with pytest.raises(ReferenceNotFound, match="no longer kept"):
        fresh.at(1)


def test_the_history_names_the_batches_of_each_version() -> None:
    store = MemoryStore()
    table = ManifestTable(store)
    flip(table, SPACE)
    one, two = RecordEntry("u1", "open", message="first"), RecordEntry("u2", "closed")
    flip(table, put([one, two, RecordEntry("claim", "expiring")]))
    flip(table, put([RecordEntry("u1", "closed", message="first"), RecordEntry("u3", "closed", message="x" * 5000)]))
    found = ManifestTable(store).history(10)
    assert [entry.version for entry in found] == [3, 2, 1]
    assert [[uid for uid, _ in entry.batches] for entry in found] == [["u3"], ["u1", "u2"], []]
    assert found[1].batches == (("u1", "first"), ("u2", None))
    assert found[0].timestamp_ms == table.current.timestamp_ms
    assert [entry.version for entry in table.history(1, before=3)] == [2]
    assert table.history(5, before=1) == []
    store.delete(f"__manifest/_versions/{(1 << 64) - 2}.manifest")
    assert [entry.version for entry in table.history(10)] == [3, 2]


def test_the_transaction_holds_the_changes(tmp_path: Path) -> None:
    table = ManifestTable(LocalStore(tmp_path))
    flip(table, SPACE)
    prepared = table.prepare(table.refresh(), put([RecordEntry("u1", "open", message="m")]), attempt="attempt-1")
    table.stage(prepared)
    claim_and_prove(table, prepared)
    transaction = open_manifest(tmp_path).read_transaction(2)
    assert transaction.uuid == "attempt-1"
    assert type(transaction.operation).__name__ == "Update"
    assert transaction.transaction_properties[BATCHES_PROPERTY] == '[["u1","m"]]'
    assert "$transactions$u1" in transaction.transaction_properties[CHANGES_PROPERTY]


def test_metadata_alone_is_a_flip_too(tmp_path: Path) -> None:
    table = ManifestTable(LocalStore(tmp_path))
    reference = ReferenceCatalog()
    reference.apply(SPACE)
    flip(table, SPACE)
    flip(table, Changes(), table_metadata={"owner": "us"})
    assert open_manifest(tmp_path).metadata["owner"] == "us"
    assert_on_disk(tmp_path, reference)
    assert_snapshot_is(ManifestTable(LocalStore(tmp_path)).refresh(), reference)

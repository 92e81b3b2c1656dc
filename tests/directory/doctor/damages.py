"""A root of every sort, and damage that is planted in copies of it."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import lance
import orjson
from pyroaring import BitMap

from lance_core.format.deletion import encode_deletion_file
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.storage.local import LocalStore
from namespace_server.access.grants import AccessEntry, GrantEntry
from namespace_server.access.subjects import Grantee, Privilege
from namespace_server.directory.manifest_table.peer_secret import PeerSecret
from namespace_server.directory.manifest_table.peers import Peer
from namespace_server.directory.manifest_table.schema import WRITER_FLAGS_KEY
from namespace_server.directory.model.entries import (
    Changes,
    Participant,
    RecordEntry,
    TableEntry,
    VersionEntry,
    changes_of,
)
from namespace_server.directory.model.root_layout import KEPT_VERSIONS
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore

T, U, PAST = ["g", "t"], ["g", "u"], ["g", "past"]
B = "b"


def build(root: Path) -> None:
    """A catalog that was collected, with a pin and a dropped table below the oldest kept version.

    The table `t` has six versions, deleted rows, an index, a tag and a branch; `u` has three versions.
    """
    ground = Ground(root)
    ground.make_namespace("g")
    ground.make_table(*PAST)
    ground.call("pin_catalog_version", name="p")
    ground.call("drop_table", id=PAST)
    for number in range(115):
        ground.call("create_namespace", id=["g", f"n{number}"])
    ground.make_table(*T)
    ground.write(T, rows(3, 6))
    ground.write(T, rows(10, 13), "overwrite")
    ground.write(T, rows(13, 16))
    ground.namespace.data.change("delete_from_table", {"id": T, "predicate": "id = 14"})
    ground.namespace.data.change("create_table_scalar_index", {"id": T, "column": "id", "index_type": "BTREE"})
    ground.namespace.change("create_table_tag", {"id": T, "tag": "kept", "version": 2})
    ground.call("create_table_branch", id=T, name=B, from_version=4)
    ground.make_table(*U)
    ground.write(U, rows(3, 6))
    ground.write(U, rows(6, 9))
    ground.catalog.sweep()
    let_pass(ground, timedelta(days=8))
    collect(ground.again(), {"gc.dropped.window": "400d"})
    for number in range(3):
        ground.again().call("create_namespace", id=[f"last{number}"])
    ground.again().catalog.sweep()
    ground.again().catalog.flush_record_housekeeping()


@dataclass(frozen=True)
class Place:
    """A copy of that root."""

    root: Path

    @property
    def ground(self) -> Ground:
        return Ground(self.root)

    def location(self, table: list[str]) -> Path:
        return self.root / self.ground.location(table)

    def version(self, table: list[str], number: int, branch: str | None = None) -> Path:
        base = self.location(table) if branch is None else self.location(table) / "tree" / branch
        return base / "_versions" / manifest_name(number)

    def catalog(self, number: int) -> Path:
        return self.root / "__manifest/_versions" / manifest_name(number)

    @property
    def newest(self) -> int:
        return self.ground.catalog.snapshot().version

    def row(self, table: list[str], number: int) -> VersionEntry:
        row = self.ground.catalog.snapshot().version_entry(tuple(table), None, number)
        assert row is not None
        return row

    def change(self, plan: Callable[[CatalogSnapshot], Changes]) -> None:
        self.ground.catalog.committer.commit_changes(plan)

    def data_files(self, table: list[str], number: int) -> list[Path]:
        dataset = lance.dataset(str(self.location(table)), version=number)
        return [
            self.location(table) / "data" / file.path
            for fragment in dataset.get_fragments()
            for file in fragment.data_files()
        ]


Damage = Callable[[Place], None]
DAMAGES: dict[str, tuple[Damage, set[str]]] = {}


def damage(*codes: str) -> Callable[[Damage], Damage]:
    """Register a damage, and what is found of it."""

    def register(plant: Damage) -> Damage:
        DAMAGES[plant.__name__] = plant, set(codes)
        return plant

    return register


def cut(path: Path, left: int | None = None) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 if left is None else left])


def flip(path: Path, at: int | None = None) -> None:
    """Another bit, by default in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 4
    path.write_bytes(data)


@damage("catalog-unreadable")
def newest_manifest_is_cut(place: Place) -> None:
    cut(place.catalog(place.newest))


@damage("catalog-unreadable")
def newest_manifest_is_empty(place: Place) -> None:
    cut(place.catalog(place.newest), 0)


@damage("catalog-unreadable")
def newest_row_file_is_missing(place: Place) -> None:
    [*_, fragment] = lance.dataset(str(place.root / "__manifest")).get_fragments()
    [file] = fragment.data_files()
    (place.root / "__manifest/data" / file.path).unlink()


@damage("catalog-unreadable")
def newest_row_file_is_cut(place: Place) -> None:
    [*_, fragment] = lance.dataset(str(place.root / "__manifest")).get_fragments()
    [file] = fragment.data_files()
    cut(place.root / "__manifest/data" / file.path)


@damage("no-catalog-of-tables")
def catalog_and_its_traces_are_missing(place: Place) -> None:
    shutil.rmtree(place.root / "__manifest")
    shutil.rmtree(place.root / "_staging")


@damage("catalog-unreadable")
def catalog_is_missing(place: Place) -> None:
    shutil.rmtree(place.root / "__manifest")


@damage("catalog-unreadable")
def all_versions_of_the_catalog_are_missing(place: Place) -> None:
    shutil.rmtree(place.root / "__manifest/_versions")


@damage("catalog-went-back")
def newest_version_is_missing(place: Place) -> None:
    place.catalog(place.newest).unlink()


@damage("catalog-went-back")
def two_newest_versions_are_missing(place: Place) -> None:
    newest = place.newest
    place.catalog(newest).unlink()
    place.catalog(newest - 1).unlink()


@damage("catalog-gap")
def version_of_the_catalog_is_missing(place: Place) -> None:
    place.catalog(place.newest - 20).unlink()


@damage("catalog-gap")
def oldest_kept_version_is_missing(place: Place) -> None:
    place.catalog(place.ground.catalog.snapshot().collector.oldest).unlink()


@damage("catalog-version-unreadable")
def old_version_of_the_catalog_is_cut(place: Place) -> None:
    cut(place.catalog(place.newest - 20))


@damage("catalog-version-unreadable")
def version_of_the_catalog_is_another_one(place: Place) -> None:
    shutil.copy(place.catalog(place.newest - 20), place.catalog(place.newest - 19))


@damage("catalog-version-unreadable")
def row_file_of_an_old_version_is_missing(place: Place) -> None:
    kept = {file for version in (place.newest - 20, place.newest) for file in _row_files(place, version)}
    shared = set(_row_files(place, place.newest))
    (place.root / "__manifest/data" / min(kept - shared)).unlink()


def _row_files(place: Place, version: int) -> list[str]:
    dataset = lance.dataset(str(place.root / "__manifest"), version=version)
    return [file.path for fragment in dataset.get_fragments() for file in fragment.data_files()]


@damage("catalog-phantom")
def version_of_the_catalog_was_built_on_another_one(place: Place) -> None:
    path = place.catalog(place.newest - 20)
    file = parse_manifest_file(path.read_bytes())
    assert file.transaction is not None
    file.transaction.read_version -= 1
    path.write_bytes(encode_manifest_file(file.manifest, file.transaction, file.indices))


@damage("horizon-in-future")
def horizon_is_in_the_future(place: Place) -> None:
    place.change(lambda now: changes_of([replace(now.collector, horizon=now.collector.horizon + 40 * 86_400)]))


@damage("writer-flag-missing")
def writer_flag_is_missing(place: Place) -> None:
    lance.dataset(str(place.root / "__manifest")).update_metadata({WRITER_FLAGS_KEY: str(1 << 32)})


@damage("grants-flag-missing")
def flag_of_grants_is_missing(place: Place) -> None:
    place.change(lambda _: changes_of([AccessEntry()]))
    lance.dataset(str(place.root / "__manifest")).update_metadata({WRITER_FLAGS_KEY: str(3 << 32)})


@damage("grant-without-object")
def grants_are_left_of_what_is_gone(place: Place) -> None:
    grantee, privileges = Grantee("role", "readers"), frozenset({Privilege.READ})
    left = [
        GrantEntry("table", ("g", "gone"), grantee, privileges),
        GrantEntry("namespace", ("gone",), grantee, privileges),
    ]
    place.change(lambda _: changes_of([AccessEntry(), *left]))


@damage("pin-without-version", "tombstone-without-version")
def kept_copies_are_missing(place: Place) -> None:
    shutil.rmtree(place.root / KEPT_VERSIONS)


@damage("pin-without-version", "tombstone-without-version")
def kept_copies_are_cut(place: Place) -> None:
    for path in (place.root / KEPT_VERSIONS).iterdir():
        cut(path)


@damage("pin-without-version", "tombstone-without-version")
def rows_of_kept_copies_are_missing(place: Place) -> None:
    for path in (place.root / KEPT_VERSIONS).iterdir():
        manifest = parse_manifest_file(path.read_bytes()).manifest
        (place.root / "__manifest/data" / manifest.fragments[0].files[0].path).unlink()


def of_dropped(place: Place) -> Path:
    [dropped] = [record for record in place.ground.catalog.snapshot().records() if record.state == "dropped"]
    return place.root / dropped.participants[0].location


@damage("dropped-table-lost")
def manifest_of_a_dropped_table_is_missing(place: Place) -> None:
    shutil.rmtree(of_dropped(place) / "_versions")


@damage("dropped-table-lost")
def manifest_of_a_dropped_table_is_cut(place: Place) -> None:
    for path in (of_dropped(place) / "_versions").iterdir():
        cut(path)


@damage("dropped-table-lost")
def data_file_of_a_dropped_table_is_cut(place: Place) -> None:
    [path] = (of_dropped(place) / "data").iterdir()
    cut(path)


@damage("link-out-of-root")
def data_file_is_a_link_out_of_the_root(place: Place) -> None:
    path = place.data_files(U, 3)[-1]
    outside = place.root.with_name(f"{place.root.name}-outside")
    path.rename(outside)
    path.symlink_to(outside)


@damage("kept-version-lost")
def pinned_version_is_missing(place: Place) -> None:
    place.ground.call("pin_catalog_version", name="q")
    place.ground.call("batch_delete_table_versions", id=U, ranges=[{"start_version": 1, "end_version": 2}])
    place.version(U, 1).unlink(missing_ok=True)


@damage("tombstone-of-table")
def table_is_at_the_location_of_a_dropped_one(place: Place) -> None:
    def plan(now: CatalogSnapshot) -> Changes:
        [dropped] = [record for record in now.records() if record.state == "dropped"]
        return changes_of([TableEntry(("g", "new"), dropped.participants[0].location)])

    place.change(plan)


@damage("shared-location")
def two_tables_have_one_location(place: Place) -> None:
    location = place.ground.location(U)
    place.change(lambda _: changes_of([TableEntry(("g", "new"), location)]))


@damage("plan-unreadable")
def plan_is_damaged(place: Place) -> None:
    path = place.root / f"_staging/gc/{uuid.uuid4()}/plan-0"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no plan")


@damage("unexplained-directory")
def directory_belongs_to_nothing(place: Place) -> None:
    lance.write_dataset(rows(0, 1), str(place.root / "stranger"))


@damage("dated-ahead")
def head_of_a_table_is_dated_in_the_future(place: Place) -> None:
    row = place.row(U, 3)
    place.change(lambda _: changes_of([replace(row, timestamp_ms=row.timestamp_ms + 20 * 365 * 86_400_000)]))


@damage("left-behind")
def purged_table_left_a_file(place: Place) -> None:
    gone = Participant(("g", "gone"), None, 1, "0a0b0c0d_g$gone", None)
    place.change(lambda _: changes_of([RecordEntry(str(uuid.uuid4()), "purged", participants=(gone,))]))
    (place.root / gone.location).mkdir()
    (place.root / gone.location / "notes.txt").write_bytes(b"of a user")


@damage("quarantined-file")
def file_is_in_quarantine(place: Place) -> None:
    path = place.root / f"_staging/foreign/{uuid.uuid4()}" / place.ground.location(U) / "_versions" / manifest_name(9)
    path.parent.mkdir(parents=True)
    shutil.copy(place.version(T, 3), path)


def _quarantine(place: Place, path: Path) -> None:
    there = place.root / f"_staging/foreign/{uuid.uuid4()}" / path.relative_to(place.root)
    there.parent.mkdir(parents=True)
    path.rename(there)


@damage("head-lost", "quarantined-version")
def head_is_in_quarantine(place: Place) -> None:
    _quarantine(place, place.version(U, 3))


@damage("version-lost", "quarantined-version")
def old_version_is_in_quarantine(place: Place) -> None:
    _quarantine(place, place.version(U, 2))


@damage("manifest-unreadable")
def version_has_a_file_below_no_known_base(place: Place) -> None:
    path, row = place.version(U, 2), place.row(U, 2)
    file = parse_manifest_file(path.read_bytes())
    file.manifest.fragments[0].files[0].base_id = 7
    data = encode_manifest_file(file.manifest, file.transaction, file.indices)
    path.write_bytes(data)
    place.change(lambda _: changes_of([replace(row, sha256=hashlib.sha256(data).hexdigest(), size=len(data))]))


@damage("head-lost")
def head_is_missing(place: Place) -> None:
    place.version(U, 3).unlink()


@damage("head-lost")
def head_of_a_branch_is_missing(place: Place) -> None:
    head = place.ground.head(T, B)
    place.version(T, head, B).unlink()


@damage("head-lost")
def head_is_cut(place: Place) -> None:
    cut(place.version(U, 3))


@damage("head-lost")
def head_is_another_file(place: Place) -> None:
    shutil.copy(place.version(T, 3), place.version(U, 3))


@damage("version-lost")
def old_version_is_missing(place: Place) -> None:
    place.version(U, 2).unlink()


@damage("version-damaged")
def manifest_of_an_old_version_has_another_bit(place: Place) -> None:
    flip(place.version(U, 2))


@damage("version-damaged")
def old_version_is_another_file(place: Place) -> None:
    shutil.copy(place.version(T, 2), place.version(U, 2))


def _with_staged_name(place: Place) -> Path:
    """The manifest of the head of `u` under the name that its writer staged it with; the record of it is closed."""
    row = place.row(U, 3)
    assert row.staged_path is not None
    path = place.root / row.staged_path
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(place.version(U, 3), path)
    return place.version(U, 3)


@damage("not-promoted")
def head_has_its_staged_name_only(place: Place) -> None:
    _with_staged_name(place).unlink()


@damage("taken-name")
def head_has_its_staged_name_and_another_file_has_its_own(place: Place) -> None:
    shutil.copy(place.version(T, 3), _with_staged_name(place))


@damage("open-work")
def server_died_after_its_flip(place: Place) -> None:
    store = FaultStore(LocalStore(place.root, "none"))
    ground = place.ground.again(store)
    operation = ground.transaction(U, rows(20, 21))
    store.fail(Fault.CRASH_AFTER, when=lambda write: write.path.startswith("__manifest/_versions/"))
    try:
        ground.batch(operation)
    except Crashed:
        return
    raise AssertionError("the server went on")


@damage("unmanaged-version")
def version_was_committed_by_path(place: Place) -> None:
    place.ground.unmanaged_append(U, rows(30, 31))


@damage("version-without-row")
def deleted_version_is_still_there(place: Place) -> None:
    place.ground.call("batch_delete_table_versions", id=U, ranges=[{"start_version": 1, "end_version": 2}])
    place.ground.catalog.sweep()


def _put(place: Place, data: bytes, number: int) -> None:
    """Make these bytes version `number` of `u`, row included."""
    place.version(U, number).write_bytes(data)
    row = place.row(U, number)
    made = replace(row, size=len(data), sha256=hashlib.sha256(data).hexdigest())
    place.change(lambda _: changes_of([made]))


@damage("lineage-broken")
def version_lacks_a_fragment_of_the_one_before(place: Place) -> None:
    file = parse_manifest_file(place.version(U, 3).read_bytes())
    del file.manifest.fragments[0]
    _put(place, encode_manifest_file(file.manifest, file.transaction, file.indices), 3)


@damage("manifest-unreadable")
def row_is_of_bytes_that_are_no_manifest(place: Place) -> None:
    _put(place, b"no manifest", 2)


@damage("mixed-names", "renamed-manifest")
def manifest_has_a_name_of_the_other_scheme_too(place: Place) -> None:
    shutil.copy(place.version(U, 3), place.version(U, 3).with_name("3.manifest"))


@damage("renamed-manifest")
def manifests_were_renamed_by_path(place: Place) -> None:
    for number in (1, 2, 3):
        place.version(U, number).rename(place.version(U, number).with_name(f"{number}.manifest"))


@damage("file-missing", "old-file-missing")
def data_file_of_the_head_is_missing(place: Place) -> None:
    place.data_files(U, 3)[0].unlink()


@damage("file-size", "old-file-missing")
def data_file_of_the_head_is_cut(place: Place) -> None:
    cut(place.data_files(U, 3)[0])


@damage("file-missing")
def newest_data_file_is_missing(place: Place) -> None:
    place.data_files(U, 3)[-1].unlink()


@damage("old-file-missing")
def data_file_of_an_old_version_is_missing(place: Place) -> None:
    place.data_files(T, 1)[0].unlink()


@damage("file-missing", "old-file-missing")
def deletion_file_is_missing(place: Place) -> None:
    [path] = (place.location(T) / "_deletions").iterdir()
    path.unlink()


@damage("transaction-file-missing")
def transaction_file_is_missing(place: Place) -> None:
    file = parse_manifest_file(place.version(U, 3).read_bytes())
    (place.location(U) / "_transactions" / file.manifest.transaction_file).unlink()


@damage("transaction-file-missing")
def transaction_file_is_cut(place: Place) -> None:
    file = parse_manifest_file(place.version(U, 3).read_bytes())
    cut(place.location(U) / "_transactions" / file.manifest.transaction_file)


def _deletion_file(place: Place) -> Path:
    [path] = (place.location(T) / "_deletions").iterdir()
    return path


@damage("file-unreadable", "old-file-missing")
def deletion_file_is_cut(place: Place) -> None:
    cut(_deletion_file(place))


@damage("file-unreadable", "old-file-missing")
def deletion_file_is_empty(place: Place) -> None:
    cut(_deletion_file(place), 0)


@damage("file-unreadable", "old-file-missing")
def deletion_file_has_another_bit(place: Place) -> None:
    flip(_deletion_file(place), -9)


@damage("file-unreadable", "old-file-missing")
def deletion_file_has_the_rows_of_another_one(place: Place) -> None:
    message, data = encode_deletion_file(BitMap([0, 1]), read_version=1)
    assert message.num_deleted_rows == 2
    _deletion_file(place).write_bytes(data)


@damage("index-missing")
def index_is_missing(place: Place) -> None:
    shutil.rmtree(place.location(T) / "_indices")


@damage("index-missing")
def one_file_of_an_index_is_missing(place: Place) -> None:
    min((place.location(T) / "_indices").rglob("*.lance")).unlink()


@damage("index-damaged")
def one_file_of_an_index_is_cut(place: Place) -> None:
    cut(max((place.location(T) / "_indices").rglob("*.lance")))


@damage("reference-unreadable")
def tag_is_damaged(place: Place) -> None:
    (place.location(T) / "_refs/tags/kept.json").write_bytes(b"{")


@damage("tag-without-version")
def tag_names_no_version(place: Place) -> None:
    path = place.location(T) / "_refs/tags/kept.json"
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"version": 99}))


@damage("branch-reference-missing")
def reference_of_a_branch_is_missing(place: Place) -> None:
    (place.location(T) / f"_refs/branches/{B}.json").unlink()


@damage("branch-deleted")
def branch_is_deleted_by_path(place: Place) -> None:
    (place.location(T) / f"_refs/branches/{B}.json").unlink()
    shutil.rmtree(place.location(T) / f"tree/{B}")


@damage("branch-without-rows")
def branch_was_made_by_path(place: Place) -> None:
    place.ground.open(U).create_branch("mine")


@damage("automatic-cleanup")
def table_cleans_up_by_itself(place: Place) -> None:
    place.ground.open(U).update_config({"lance.auto_cleanup.interval": "20"})
    place.ground.read("list_table_versions", id=U)
    place.ground.catalog.sweep()


@damage("servers-take-turns")
def servers_without_a_secret_take_turns(place: Place) -> None:
    """One that follows another one, and servers that share a secret, are no such case."""
    servers = [Ground(place.root) for _ in range(4)]
    for number, server in enumerate(servers):
        secret = None if number < 2 else PeerSecret("a secret of servers")
        server.catalog.table.peers.join(Peer(f"server-{number}", f"http://{number}"), secret)
    for number in (3, 2, 3, 2, 1, 0, 1):
        servers[number].make_namespace("g", f"by{number}-{servers[number].catalog.snapshot().version}")

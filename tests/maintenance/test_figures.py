"""The figures of tables: exact for what is known, bounded in what a look reads, and nothing without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from lance_core.errors import StorageError
from lance_core.format.manifest import ManifestFile
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.directory.maintenance import figures
from namespace_server.directory.maintenance.figures import Amounts, PendingWork, TableFigures
from namespace_server.directory.manifests.manifest_cache import ManifestCache
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.model.collector_rows import CollectorEntry
from namespace_server.directory.model.entries import VersionEntry, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.tables import Ground, rows
from tests.maintenance.tables import COUNT, T, maintain, make_table
from tests.storage.bucketlike import BucketLike


class Clock:
    """The time in seconds since the epoch."""

    def __init__(self) -> None:
        self.now = 2_000_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def told(ground: Ground) -> dict[str, Any]:
    return ground.read("describe_catalog_figures")


def cold(ground: Ground, clock: Clock | None = None) -> TableFigures:
    """The figures of a process that has read no manifest."""
    cache = ManifestCache(ManifestReader(ground.store))
    return TableFigures(ground.store, cache, {}, *([] if clock is None else [clock]))


def sums(ground: Ground, *table_ids: list[str]) -> tuple[int, int, int]:
    """Rows, bytes and files of the newest versions, as stock pylance tells them."""
    datasets = [ground.open(table_id) for table_id in table_ids]
    files = [file for dataset in datasets for fragment in dataset.get_fragments() for file in fragment.data_files()]
    return sum(each.count_rows() for each in datasets), sum(each.file_size_bytes for each in files), len(files)


def test_figures_are_those_that_pylance_tells(ground: Ground) -> None:
    names = [ground.make_table("g", f"t{number}", count=number + 20) for number in range(3)]
    ground.write(names[0], rows(30, 35))
    ground.namespace.data.change("delete_from_table", {"id": names[0], "predicate": "id < 1"})
    ground.call("declare_table", id=["g", "declared"])
    found = told(ground)
    count, size, files = sums(ground, *names)
    assert (found["rows"], found["bytes"], found["files"]) == (count, size, files)
    assert count == 20 + 21 + 22 + 5 - 1
    assert (found["namespaces"], found["tables"], found["known_tables"]) == (1, 4, 4)
    assert (found["versions"], found["versions_beyond_policy"]) == (5, 0)
    assert (found["num_worth_maintenance"], found["worth_maintenance"]) == (0, [])
    assert found["catalog_version"] == ground.catalog.snapshot().version


def test_they_follow_each_change(ground: Ground) -> None:
    one, two = ground.make_table("g", "one"), ground.make_table("g", "two")
    assert told(ground)["rows"] == 6
    ground.write(one, rows(3, 13))
    assert (told(ground)["rows"], told(ground)["versions"]) == (16, 3)
    ground.call("drop_table", id=two)
    assert (told(ground)["rows"], told(ground)["tables"], told(ground)["known_tables"]) == (13, 1, 1)
    ground.call("rename_table", id=one, new_table_name="other", new_namespace_id=["g"])
    assert (told(ground)["rows"], told(ground)["known_tables"]) == (13, 1)
    ground.call("deregister_table", id=["g", "other"])
    assert [told(ground)[name] for name in ("rows", "bytes", "versions", "known_tables")] == [0] * 4


def test_a_clone_counts_the_files_of_its_source(ground: Ground) -> None:
    source = ground.make_table("g", "source")
    uri = str(ground.root / ground.location(source))
    ground.namespace.change("clone_table", {"id": ["g", "clone"], "source_location": uri, "is_shallow": True})
    count, size, files = sums(ground, source)
    found = told(ground)
    assert (found["rows"], found["bytes"], found["files"]) == (2 * count, 2 * size, 2 * files)


def test_tables_worth_maintenance_are_named_until_it_was_done(ground: Ground) -> None:
    ground.make_table("g", "whole")
    make_table(ground)
    found = told(ground)
    assert found["worth_maintenance"] == [{"id": T, "num_fragments": COUNT, "num_indices": 0}]
    assert found["num_worth_maintenance"] == 1
    maintain(ground)
    assert told(ground)["num_worth_maintenance"] == 0


def test_what_is_worth_it_is_said_by_the_policy(ground: Ground) -> None:
    off = {"maintenance.compact": "false", "maintenance.optimize_indices": "false"}
    make_table(ground)
    ground.call("create_namespace", id=["kept"], properties=off)
    make_table(ground, "kept", "t")
    snapshot = ground.catalog.snapshot()
    assert cold(ground).look(snapshot).worth == (((*T,), PendingWork(COUNT)),)
    assert TableFigures(ground.store, ground.catalog.manifests, off).look(snapshot).amounts.worth == 0


class TestRetention:
    @pytest.fixture
    def table_id(self, ground: Ground) -> list[str]:
        ground.call("declare_table", id=T, properties={"gc.tables.count": "2"})
        ground.write(T, rows(0, 3), "append")
        for number in range(4):
            ground.write(T, rows(3 + number, 4 + number))
        return T

    def test_versions_beyond_it_are_counted_by_their_rows(
        self, ground: Ground, table_id: list[str], clock: Clock
    ) -> None:
        looking = cold(ground, clock)
        head = ground.catalog.snapshot().head(tuple(table_id))
        assert head is not None
        clock.now = head.timestamp_ms / 1_000
        assert looking.look(ground.catalog.snapshot()).amounts.beyond == 0  # none was superseded an hour ago
        clock.now += 3_700
        amounts = looking.look(ground.catalog.snapshot()).amounts
        assert (amounts.versions, amounts.beyond) == (5, 3)

    def test_settings_of_the_catalog_count_where_a_table_states_none(self, ground: Ground, clock: Clock) -> None:
        ground.make_table("g", "plain")
        ground.write(["g", "plain"], rows(3, 4))
        clock.now = ground.catalog.snapshot().timestamp_ms / 1_000 + 100 * 86_400
        looking = cold(ground, clock)
        assert looking.look(ground.catalog.snapshot()).amounts.beyond == 0
        entry = CollectorEntry(settings={"gc.tables.age": "30d"})
        ground.catalog.committer.commit_changes(lambda _: changes_of([entry]))
        assert looking.look(ground.catalog.snapshot()).amounts.beyond == 0  # the table has not changed
        clock.now += figures._LASTING + 1
        assert looking.look(ground.catalog.snapshot()).amounts.beyond == 1


class TestRequests:
    @pytest.fixture
    def ground(self, tmp_path: Path) -> Ground:
        """Ten tables, over a bucket that counts requests."""
        made = Ground(tmp_path / "root", CountingStore(BucketLike(LocalStore(tmp_path / "root", "none"))))
        made.make_namespace("g")
        for number in range(10):
            made.make_table("g", f"t{number}", count=1)
        made.catalog.sweep()
        made.catalog.flush_record_housekeeping()
        return made

    @staticmethod
    def requests(ground: Ground, looking: TableFigures) -> tuple[int, int]:
        """Requests and round trips of a look."""
        snapshot = ground.catalog.snapshot()
        assert isinstance(ground.store, CountingStore)
        with ground.store.measure() as cost:
            looking.look(snapshot)
        return cost.requests, cost.round_trips

    def test_each_head_is_read_once_and_all_at_once(self, ground: Ground) -> None:
        looking = cold(ground)
        assert self.requests(ground, looking) == (10, 1)
        assert self.requests(ground, looking) == (0, 0)
        ground.write(["g", "t3"], rows(1, 2))
        ground.catalog.sweep()
        assert self.requests(ground, looking) == (1, 1)

    def test_heads_that_this_process_committed_are_known(self, ground: Ground) -> None:
        assert self.requests(ground, TableFigures(ground.store, ground.catalog.manifests, {})) == (0, 0)
        assert isinstance(ground.store, CountingStore)
        with ground.store.measure() as cost:
            told(ground)
        assert (cost.requests, cost.round_trips) == (1, 1)  # whether there is a newer catalog version

    def test_an_aged_table_is_looked_at_again_without_a_request(self, ground: Ground, clock: Clock) -> None:
        looking = cold(ground, clock)
        self.requests(ground, looking)
        clock.now += figures._LASTING + 1
        assert self.requests(ground, looking) == (0, 0)
        assert looking.look(ground.catalog.snapshot()).amounts.tables == 10

    def test_a_look_is_bounded_and_the_next_one_goes_on(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(figures, "LOOKED_AT", 4)
        looking, snapshot = cold(ground), ground.catalog.snapshot()
        assert [looking.look(snapshot).amounts.tables for _ in range(4)] == [4, 8, 10, 10]
        monkeypatch.setattr(figures, "_SECONDS", 0.0)
        monkeypatch.setattr(figures, "_AT_ONCE", 3)
        looking = cold(ground)
        assert [looking.look(snapshot).amounts.tables for _ in range(6)] == [3, 6, 9, 10, 10, 10]

    def test_tables_that_were_looked_at_long_ago_leave_room_for_new_ones(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch, clock: Clock
    ) -> None:
        monkeypatch.setattr(figures, "LOOKED_AT", 4)
        looking, snapshot = cold(ground, clock), ground.catalog.snapshot()
        assert [looking.look(snapshot).amounts.tables for _ in range(2)] == [4, 8]
        clock.now += figures._LASTING + 1
        assert looking.look(snapshot).amounts.tables == 10
        assert len(list(looking._aged())) == 6
        assert looking.look(snapshot).amounts.tables == 10
        assert len(list(looking._aged())) == 2

    def test_bytes_of_a_look_are_bounded(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(figures, "_MOST_BYTES", 1)
        looking, snapshot = cold(ground), ground.catalog.snapshot()
        assert [looking.look(snapshot).amounts.tables for _ in range(11)] == [*range(1, 11), 10]

    def test_so_many_tables_are_remembered_and_no_more(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(figures, "REMEMBERED", 6)
        looking = cold(ground)
        assert self.requests(ground, looking) == (6, 1)
        assert self.requests(ground, looking) == (0, 0)
        assert looking.look(ground.catalog.snapshot()).amounts.tables == 6
        ground.call("drop_table", id=["g", "t0"])
        assert looking.look(ground.catalog.snapshot()).amounts.tables == 6


class TestTime:
    """A look that takes a tenth of a second, in a catalog in which each of ten tables changes between two looks."""

    @pytest.fixture
    def looking(self, ground: Ground, clock: Clock) -> TableFigures:
        class Slow(ManifestCache):
            def get(self, entry: VersionEntry) -> ManifestFile | None:
                clock.now += 0.01
                return super().get(entry)

        for number in range(10):
            ground.make_table("g", f"t{number}", count=1)
        cache = Slow(ManifestReader(ground.store))
        return TableFigures(ground.store, cache, {}, elapsed=clock)

    @staticmethod
    def change(ground: Ground) -> CatalogSnapshot:
        for number in range(10):
            ground.write(["g", f"t{number}"], rows(1, 2))
        return ground.catalog.snapshot()

    def test_looks_take_a_small_part_of_it(self, ground: Ground, clock: Clock, looking: TableFigures) -> None:
        looks, begun = 0, clock.now
        for _ in range(20):
            before, snapshot = clock.now, self.change(ground)
            found = looking.look(snapshot)
            is_newest = found.catalog_version == snapshot.version
            assert is_newest == (clock.now > before)
            assert found.amounts.rows == found.amounts.versions  # whichever version it is, all is of that one
            looks += is_newest
            clock.now += 1.0
        assert 3 <= looks <= 3 + (clock.now - begun) / 5

    def test_a_pause_ends_however_long_a_look_took(self, ground: Ground, clock: Clock, looking: TableFigures) -> None:
        looking.look(ground.catalog.snapshot())
        ground.write(["g", "t0"], rows(1, 2))
        looking._elapsed = iter([clock.now, clock.now, clock.now + 3_600]).__next__
        looking.look(ground.catalog.snapshot())
        looking._elapsed = clock
        clock.now += 3_600 + 5.1
        snapshot = self.change(ground)
        assert looking.look(snapshot).catalog_version == snapshot.version

    def test_what_was_told_is_never_followed_by_what_was_before(
        self, ground: Ground, looking: TableFigures, clock: Clock
    ) -> None:
        earlier = ground.catalog.snapshot()
        newest = looking.look(self.change(ground))
        clock.now += 60
        assert looking.look(earlier) is newest


class TestFaults:
    def test_a_head_that_is_missing_or_damaged_is_unknown_and_no_error(self, ground: Ground) -> None:
        names = [ground.make_table("g", name) for name in ("whole", "missing", "damaged")]
        for name, spoil in ((names[1], Path.unlink), (names[2], lambda path: path.write_bytes(b"LANC" * 9))):
            for manifest in (ground.root / ground.location(name) / "_versions").iterdir():  # the staged one, too
                spoil(manifest)
        again = ground.again()
        found = told(again)
        assert (found["tables"], found["known_tables"], found["rows"], found["versions"]) == (3, 1, 3, 1)

    def test_storage_that_does_not_answer_ends_the_look_and_the_next_one_reads(self, tmp_path: Path) -> None:
        Ground(tmp_path / "root").make_namespace("g")
        Ground(tmp_path / "root").make_table("g", "t")

        class Failing(LocalStore):
            is_down = False

            def find(self, path: str) -> bytes | None:
                if self.is_down:
                    raise StorageError(f"{path}: 503")
                return super().find(path)

        store = Failing(tmp_path / "root", "none")
        ground = Ground(tmp_path / "root", store)
        snapshot, looking = ground.catalog.snapshot(), cold(ground)
        store.is_down = True
        assert looking.look(snapshot).amounts == Amounts()
        store.is_down = False
        assert looking.look(snapshot).amounts.rows == 3

    def test_a_policy_that_is_wrong_leaves_the_rest(self, ground: Ground) -> None:
        make_table(ground)
        looking = TableFigures(ground.store, ground.catalog.manifests, {"maintenance.no_such": "1"})
        amounts = looking.look(ground.catalog.snapshot()).amounts
        assert (amounts.rows, amounts.worth) == (3 * COUNT, 0)

    def test_a_look_beside_another_one_tells_what_that_one_told_before(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ground.make_table("g", "t")
        looking, snapshot = cold(ground), ground.catalog.snapshot()
        before = looking.look(snapshot)
        monkeypatch.setattr(figures, "_WAIT", 0.0)
        ground.write(["g", "t"], rows(3, 4))
        with looking._lock:
            assert looking.look(ground.catalog.snapshot()) is before
        assert looking.look(ground.catalog.snapshot()).amounts.rows == 4


def test_a_root_without_a_catalog_has_tables_of_which_nothing_is_known(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": [1]}), str(tmp_path / "t.lance"))
    found = told(Ground(tmp_path))
    assert (found["tables"], found["known_tables"], found["rows"]) == (1, 0, 0)


def test_they_are_of_the_newest_version_alone(ground: Ground) -> None:
    with pytest.raises(InvalidInputError, match="expected none: figures are of the newest catalog version"):
        ground.namespace.read("describe_catalog_figures", {}, at=ground.catalog.snapshot().version)


def test_the_tables_with_the_most_work_come_first(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "_SHOWN", 2)
    for name, appends in (("few", 4), ("most", 6), ("more", 5)):
        make_table(ground, "g", name, appends=appends)
    worth = cold(ground).look(ground.catalog.snapshot()).worth
    assert worth == ((("g", "most"), PendingWork(7)), (("g", "more"), PendingWork(6)))

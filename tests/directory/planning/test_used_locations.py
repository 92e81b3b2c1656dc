"""A location is used once (N1, G15): the tombstones of removed tables, and what storage says of a chosen location."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import lance
import pytest
from lance_namespace.errors import InvalidInputError, TableNotFoundError

from lance_core.data import schema_fields
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.directory.model.entries import TOMBSTONES, Participant, RecordEntry, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning import plan_builder
from tests.directory.invariants import check_quiet, check_same, load_version
from tests.directory.tables import QUIET, Ground, as_operation, rows
from tests.staged_fragments import stage_fragments

T = ["g", "t"]
PLACE = "0a1b2c3d_g$t"
DROPPED = r"location '0a1b2c3d_g\$t' was that of table g\$t, which was dropped; expected a location that no table had"
DEREGISTERED = "which was deregistered; .* register_table takes it into the catalog again"


def declaration(table_id: list[str] = T, location: str = PLACE) -> dict[str, Any]:
    return {"declare_table": {"id": table_id, "location": location}}


def declare(ground: Ground, table_id: list[str] = T, location: str = PLACE) -> None:
    ground.batch(declaration(table_id, location))


def create(ground: Ground, table_id: list[str] = T, location: str = PLACE) -> list[dict[str, Any]]:
    """The batch by which a client creates a table with rows: its files are there before it is sent."""
    fragments = stage_fragments(rows(0, 2), str(ground.root / location), mode="create")
    message = pb.Transaction(uuid="6a3f8e52-8c1c-4d0c-9f52-0d4f2a9f7f11")
    message.overwrite.fragments.extend(fragments)
    message.overwrite.schema.extend(schema_fields(rows(0, 0).schema))
    return [declaration(table_id, location), as_operation(table_id, message)]


def tombstones(snapshot: CatalogSnapshot) -> list[RecordEntry]:
    return sorted(
        (record for record in snapshot.records() if record.state in TOMBSTONES),
        key=lambda record: record.participants[0].table_id,
    )


def forget_tombstones(ground: Ground) -> None:
    """The catalog as a release without tombstones leaves it, or as it is when they have expired."""
    ground.catalog.record_housekeeping.remove(tombstones(ground.catalog.snapshot()))
    ground.catalog.flush_record_housekeeping()
    assert tombstones(ground.catalog.snapshot()) == []


def assert_absent(ground: Ground, table_id: list[str] = T) -> None:
    for process in (ground, ground.again()):
        process.catalog.sweep()
        assert process.catalog.snapshot().table(tuple(table_id)) is None


class TestDrop:
    def test_a_late_duplicate_of_the_batch_that_created_the_table_is_refused(self, ground: Ground) -> None:
        batch = create(ground)
        ground.batch(*batch)
        ground.batch(ground.transaction(T, rows(2, 3)))
        ground.call("drop_table", id=T)

        with pytest.raises(InvalidInputError, match=DROPPED):
            ground.batch(*batch)

        assert_absent(ground)

    def test_its_location_cannot_be_declared_again(self, ground: Ground) -> None:
        ground.batch(*create(ground))
        ground.call("drop_table", id=T)

        for location in (PLACE, f"{ground.catalog.store.uri}/{PLACE}", f"{PLACE}/"):
            with pytest.raises(InvalidInputError, match=DROPPED):
                declare(ground, location=location)
            with pytest.raises(InvalidInputError, match=DROPPED):
                ground.call("declare_table", id=T, location=location)
        assert_absent(ground)

    def test_its_location_cannot_be_registered_again(self, ground: Ground) -> None:
        ground.batch(*create(ground))
        ground.call("drop_table", id=T)

        for name in ("t", "other"):
            with pytest.raises(InvalidInputError, match=DROPPED):
                ground.call("register_table", id=["g", name], location=PLACE)

    def test_a_table_that_never_had_a_version(self, ground: Ground) -> None:
        declare(ground)
        late = ground.stage(T, rows(0, 2), "append")
        ground.call("drop_table", id=T)

        with pytest.raises(InvalidInputError, match=DROPPED):
            declare(ground)
        with pytest.raises(InvalidInputError, match=DROPPED):
            ground.batch(declaration(), late)
        with pytest.raises(TableNotFoundError):
            ground.batch(late)
        assert_absent(ground)

    def test_without_a_location_the_table_is_made_anew_elsewhere(self, ground: Ground) -> None:
        ground.batch(*create(ground))
        ground.call("drop_table", id=T)

        ground.make_table(*T, count=1)

        assert ground.location(T) != PLACE
        assert ground.ids(T) == [0]

    def test_a_location_that_the_server_makes_up_is_judged_in_the_same_way(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        declare(ground)
        ground.call("drop_table", id=T)
        monkeypatch.setattr("namespace_server.directory.model.naming_rules.new_location", lambda _: PLACE)

        with pytest.raises(InvalidInputError, match=DROPPED):
            ground.call("declare_table", id=T)

    def test_the_tombstone_names_the_dropped_tables(self, ground: Ground) -> None:
        ground.batch(*create(ground))
        ground.call("drop_table", id=T)

        [tombstone] = tombstones(ground.catalog.snapshot())
        assert tombstone.state == "dropped"
        assert tombstone.participants == ((("g", "t"), None, 1, PLACE, None),)
        assert ground.catalog.snapshot().tombstone_at(PLACE) == tombstone
        assert ground.catalog.snapshot().tombstone_at("elsewhere") is None

    def test_it_is_no_batch_and_never_open(self, ground: Ground) -> None:
        ground.batch(*create(ground))
        before = ground.catalog.snapshot().version
        call = ground.namespace.prepare("drop_table", {"id": T})
        ground.namespace.commit_calls([call])

        history = ground.read("list_catalog_versions")["versions"]
        [dropping] = [entry for entry in history if entry["version"] == before + 1]
        assert [batch["transaction_id"] for batch in dropping["batches"]] == [call.batch_uuid]
        ground.catalog.sweep()
        check_same(ground.catalog.snapshot(), check_quiet(ground.root))
        assert len(tombstones(ground.catalog.snapshot())) == 1

    def test_planning_again_makes_the_same_tombstone(self, ground: Ground) -> None:
        declare(ground)
        call = ground.namespace.prepare("drop_table", {"id": T})
        other = ground.again()
        ground.catalog.snapshot()
        other.make_namespace("first")  # the flip is lost to it and planned again

        ground.namespace.commit_calls([call])

        assert len(tombstones(ground.catalog.snapshot())) == 1


class TestNamespaces:
    @pytest.mark.parametrize(
        "remove",
        [
            lambda ground: ground.call("drop_namespace", id=["g"], behavior="Cascade"),
            lambda ground: ground.call("create_namespace", id=["g"], mode="Overwrite"),
        ],
        ids=["cascade", "overwrite"],
    )
    @pytest.mark.parametrize("limit", [1_000, 2])
    def test_every_table_below_has_a_tombstone(
        self, ground: Ground, remove: Callable[[Ground], object], limit: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(plan_builder, "TABLES_PER_TOMBSTONE", limit)
        ground.make_namespace("g", "h")
        places = {("g", name): f"0a1b2c3d_g${name}" for name in "tuv"}
        places[("g", "h", "w")] = "0a1b2c3d_g$h$w"
        for table_id, place in places.items():
            declare(ground, list(table_id), place)

        remove(ground)

        snapshot = ground.catalog.snapshot()
        made = tombstones(snapshot)
        assert [record.state for record in made] == ["dropped"] * -(-4 // limit)
        assert {party.table_id: party.location for record in made for party in record.participants} == places
        ground.call("create_namespace", id=["g"], mode="ExistOk")
        ground.make_namespace("g", "h")
        for table_id, place in places.items():
            with pytest.raises(InvalidInputError, match="which was dropped"):
                declare(ground, list(table_id), place)

    def test_a_namespace_without_tables_has_none(self, ground: Ground) -> None:
        ground.call("drop_namespace", id=["g"])
        assert tombstones(ground.catalog.snapshot()) == []


class TestDeregister:
    def test_only_register_takes_the_location_again(self, ground: Ground) -> None:
        ground.batch(*create(ground))
        ground.call("deregister_table", id=T)

        with pytest.raises(InvalidInputError, match=DEREGISTERED):
            declare(ground)
        ground.call("register_table", id=["g", "again"], location=PLACE)

        assert ground.ids(["g", "again"]) == [0, 1]
        assert tombstones(ground.catalog.snapshot()) == []

    def test_a_table_that_was_registered_again_can_be_dropped(self, ground: Ground) -> None:
        ground.batch(*create(ground))
        for _ in range(2):
            ground.call("deregister_table", id=T)
            ground.call("register_table", id=T, location=PLACE)
        ground.call("drop_table", id=T)

        for process in (ground, ground.again()):
            [tombstone] = tombstones(process.catalog.snapshot())
            assert tombstone.state == "dropped"
            with pytest.raises(InvalidInputError, match=DROPPED):
                process.call("register_table", id=T, location=PLACE)

    def test_register_with_overwrite_leaves_the_old_location_deregistered(self, ground: Ground) -> None:
        ground.batch(*create(ground))
        lance.write_dataset(rows(5, 6), str(ground.root / "mine"))

        ground.call("register_table", id=T, location="mine", mode="overwrite")

        ground.call("rename_table", id=T, new_table_name="u")
        with pytest.raises(InvalidInputError, match=DEREGISTERED):
            declare(ground)
        ground.call("register_table", id=["g", "old"], location=PLACE)
        assert (ground.ids(["g", "u"]), ground.ids(["g", "old"])) == ([5], [0, 1])

    def test_register_with_overwrite_at_the_same_location(self, ground: Ground) -> None:
        ground.batch(*create(ground))

        ground.call("register_table", id=T, location=PLACE, mode="overwrite")

        assert ground.ids(T) == [0, 1]
        assert tombstones(ground.catalog.snapshot()) == []

    def test_a_renamed_table_keeps_its_location_and_leaves_none(self, ground: Ground) -> None:
        ground.batch(*create(ground))
        ground.catalog.sweep()

        ground.call("rename_table", id=T, new_table_name="u")

        assert tombstones(ground.catalog.snapshot()) == []
        assert ground.ids(["g", "u"]) == [0, 1]


class TestTaken:
    def test_the_location_of_a_table_is_not_that_of_another_one(self, ground: Ground) -> None:
        declare(ground)
        ground.call("rename_table", id=T, new_table_name="u")
        with pytest.raises(InvalidInputError, match=r"belongs to table g\$u"):
            declare(ground)
        lance.write_dataset(rows(0, 1), str(ground.root / PLACE))
        with pytest.raises(InvalidInputError, match=r"belongs to table g\$u"):
            ground.call("register_table", id=T, location=PLACE)

    @pytest.mark.parametrize("state", ["dropped", "purging", "purged"])
    def test_a_removed_table_keeps_its_location_and_what_lies_inside(
        self, ground: Ground, state: Literal["dropped", "purging", "purged"]
    ) -> None:
        lance.write_dataset(rows(0, 1), str(ground.root / "lake" / "mine" / "inside"))
        participants = (Participant(("g", "t"), None, 1, "lake/mine", None),)
        tombstone = RecordEntry("00000000-0000-4000-8000-000000000001", state, participants=participants)
        ground.catalog.committer.commit_changes(lambda _: changes_of([tombstone]))
        with pytest.raises(InvalidInputError, match=f"lies inside 'lake/mine', that of a table which was {state}"):
            ground.call("register_table", id=T, location="lake/mine/inside")
        lance.write_dataset(rows(0, 1), str(ground.root / "lake" / "mine"))
        with pytest.raises(InvalidInputError, match=f"which was {state}"):
            ground.call("register_table", id=T, location="lake/mine")


class TestTogether:
    def test_a_batch_cannot_use_a_location_that_it_gives_up_itself(self, ground: Ground) -> None:
        declare(ground)

        with pytest.raises(InvalidInputError, match=DEREGISTERED):
            ground.batch({"deregister_table": {"id": T}}, declaration())

        assert ground.location(T) == PLACE

    def test_a_declaration_in_the_group_of_the_drop_is_refused(self, ground: Ground) -> None:
        declare(ground)
        calls = [
            ground.namespace.prepare("drop_table", {"id": T}),
            ground.namespace.prepare("declare_table", {"id": T, "location": PLACE}),
        ]

        dropped, declared = ground.namespace.commit_calls(calls)

        assert not isinstance(dropped, Exception)
        assert isinstance(declared, InvalidInputError)
        assert "which was dropped" in str(declared)
        assert_absent(ground)

    def test_other_processes_know_it_whether_they_loaded_or_followed(self, ground: Ground) -> None:
        declare(ground)
        follower = ground.again()
        follower.catalog.snapshot()
        behind = ground.again()
        behind.catalog.snapshot()

        ground.call("drop_table", id=T)
        for number in range(6):
            ground.make_namespace(f"n{number}")

        newest = ground.catalog.snapshot()
        for process in (follower, behind, ground.again()):
            assert process.catalog.snapshot().tombstone_at(PLACE) == newest.tombstone_at(PLACE)
            with pytest.raises(InvalidInputError, match=DROPPED):
                declare(process)
        assert load_version(LocalStore(ground.root, "none"), newest.version).tombstone_at(PLACE) is not None


class TestExpiry:
    def expire(self, ground: Ground) -> None:
        """Sweep in a later millisecond, by the store, than that of the newest record: in its own none expires."""
        ground.catalog.sweep()
        newest = max((record.timestamp_ms for record in ground.catalog.snapshot().records()), default=0)
        while ground.catalog.table.clock.time_ms() <= newest:
            continue
        ground.catalog.recovery._last_expiry = -math.inf
        ground.catalog.sweep()

    def options(self, *, records: timedelta, stages: timedelta) -> Any:
        return replace(QUIET, record_retention=records, stage_max_age=stages)

    def test_a_tombstone_outlives_the_record_of_its_batch(self, tmp_path: Path) -> None:
        options = self.options(records=timedelta(0), stages=timedelta(hours=1))
        ground = Ground(tmp_path / "root", options=options)
        ground.make_namespace("g")
        declare(ground)
        ground.call("drop_table", id=T)

        self.expire(ground)

        assert [record.state for record in ground.catalog.snapshot().records()] == ["dropped"]
        with pytest.raises(InvalidInputError, match=DROPPED):
            declare(ground)

    def test_it_goes_when_nothing_staged_before_the_drop_can_be_published(self, tmp_path: Path) -> None:
        ground = Ground(tmp_path / "root", options=self.options(records=timedelta(0), stages=timedelta(milliseconds=1)))
        ground.make_namespace("g")
        declare(ground)
        ground.call("drop_table", id=T)
        [tombstone] = tombstones(ground.catalog.snapshot())
        while time.time_ns() // 1_000_000 <= tombstone.timestamp_ms + 2:
            continue
        self.expire(ground)
        assert tombstones(ground.catalog.snapshot()) == [tombstone]  # its files are there
        purged = replace(tombstone, state="purged")
        ground.catalog.committer.commit_changes(lambda _: changes_of([purged]))

        self.expire(ground)

        for process in (ground, ground.again()):
            assert tombstones(process.catalog.snapshot()) == []
            assert process.catalog.snapshot().tombstone_at(PLACE) is None
            assert not process.catalog.snapshot().state.used
        declare(ground)

    def test_the_limit_on_records_does_not_count_them(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "namespace_server.directory.committing.record_housekeeping.MIN_RECORD_AGE", timedelta(seconds=-1)
        )
        ground = Ground(tmp_path / "root", options=replace(QUIET, record_limit=1))
        ground.make_namespace("g")
        for number in range(3):
            declare(ground, ["g", f"t{number}"], f"0a1b2c3d_g$t{number}")
            ground.call("drop_table", id=["g", f"t{number}"])

        self.expire(ground)

        states = sorted(record.state for record in ground.catalog.snapshot().records())
        assert states == ["closed", "dropped", "dropped", "dropped"]


class TestStorage:
    """What a client may find at the location that it declares, on local and on remote stores."""

    @pytest.fixture(params=["local", "remote"])
    def ground(self, request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
        store = CountingStore(LocalStore(tmp_path / "root", "none"))
        store.local = request.param == "local"
        made = Ground(tmp_path / "root", store)
        made.make_namespace("g")
        return made

    def test_a_table_dropped_without_a_tombstone_does_not_come_back(self, ground: Ground) -> None:
        batch = create(ground)
        ground.batch(*batch)
        ground.call("drop_table", id=T)
        forget_tombstones(ground)

        for operations in (batch, [declaration()]):
            with pytest.raises(InvalidInputError, match=r"holds files of a dataset .*expected a location without"):
                ground.batch(*operations)
        assert_absent(ground)
        ground.call("register_table", id=T, location=PLACE)
        assert ground.ids(T) == [0, 1]

    @pytest.mark.parametrize("name", ["7.manifest", "18446744073709551614.manifest"])
    def test_both_kinds_of_names_are_versions(self, ground: Ground, name: str) -> None:
        versions = ground.root / PLACE / "_versions"
        versions.mkdir(parents=True)
        (versions / "0.manifest-6a3f8e52").write_bytes(b"")
        (versions / name).write_bytes(b"")

        with pytest.raises(InvalidInputError, match="holds files of a dataset"):
            declare(ground)

    def test_staged_files_of_a_new_table_may_lie_there(self, ground: Ground) -> None:
        batch = create(ground)
        versions = ground.root / PLACE / "_versions"
        versions.mkdir(parents=True)
        (versions / "18446744073709551614.manifest-6a3f8e52").write_bytes(b"")
        (versions / "latest_version_hint.json").write_bytes(b"{}")

        ground.batch(*batch)

        assert ground.ids(T) == [0, 1]

    def test_a_repeated_batch_gets_its_answer_although_its_table_is_there_by_now(self, ground: Ground) -> None:
        batch = create(ground)
        first = ground.batch(*batch, key="k")

        assert ground.batch(*batch, key="k") == first
        assert ground.again().batch(*batch, key="k") == first
        ground.call("drop_table", id=T)
        assert ground.batch(*batch, key="k") == first  # its record stands; the table stays dropped
        assert_absent(ground)


@pytest.mark.usefixtures("still_clock")
def test_creating_a_table_costs_no_further_round_trip(tmp_path: Path) -> None:
    store = CountingStore(LocalStore(tmp_path / "root", "none"))
    store.local = False
    ground = Ground(tmp_path / "root", store)
    ground.make_namespace("g")
    batch = create(ground)
    ground.catalog.sweep()

    with store.measure() as cost:
        ground.batch(*batch)

    # the newest catalog, for a table that is not known yet; stage beside looking; flip; promote beside proving (G7)
    assert cost.round_trips == 4
    assert cost.by_verb["list"] == 2

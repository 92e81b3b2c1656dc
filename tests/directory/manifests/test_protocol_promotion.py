"""The rules for names, staging and promotion: break the rule, see the named failure."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableBranchAlreadyExistsError,
    TableVersionNotFoundError,
)

from lance_core.storage.local import LocalStore
from tests.directory.breaking import T, is_flip, is_promotion, once, stage_fork
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore


class TestM1PromotionGoesUpward:
    def test_the_head_is_promoted_before_a_version_is_planned_on_it(self, broken: Ground, faults: FaultStore) -> None:
        first, second = broken.transaction(T, rows(3, 4)), broken.transaction(T, rows(4, 5))
        faults.fail(Fault.LOST_REQUEST, when=is_promotion, times=2)  # after the flip, and before the answer
        broken.batch(first)
        assert broken.canonical(T) == [1]
        order: list[str] = []
        faults.before(lambda verb, path: order.append(path) if verb in {"publish", "put_if_absent"} else None)

        broken.batch(second)

        flip = next(i for i, path in enumerate(order) if path.startswith("__manifest"))
        assert any(path.endswith(f"{2**64 - 3}.manifest") for path in order[:flip])
        assert broken.canonical(T) == [1, 2, 3]

    def test_a_chain_stops_at_its_first_failure(self, broken: Ground, faults: FaultStore) -> None:
        first = f"{2**64 - 3}.manifest"
        faults.fail(Fault.LOST_REQUEST, when=lambda write: is_promotion(write) and write.path.endswith(first), times=9)

        broken.batch(broken.transaction(T, rows(3, 4)), broken.transaction(T, rows(4, 5)))

        assert broken.canonical(T) == [1]  # never 3 without 2


class TestM3NoAnswerNamesAnUnverifiedCanonicalFile:
    def test_without_promotion_the_staged_path_is_answered_character_for_character(
        self, broken: Ground, faults: FaultStore
    ) -> None:
        request = broken.stage(T, rows(3, 4))
        sent = request["create_table_version"]["manifest_path"]
        faults.fail(Fault.LOST_REQUEST, when=lambda write: write.verb == "publish", times=1000)

        answer = broken.batch(request)

        assert answer["results"][0]["create_table_version"]["version"]["manifest_path"] == sent
        assert broken.read("describe_table_version", id=T, version=2)["version"]["manifest_path"] == sent

    def test_describe_finishes_the_promotion_of_a_dead_server(self, broken: Ground, faults: FaultStore) -> None:
        request = broken.stage(T, rows(3, 4))
        faults.fail(Fault.CRASH_BEFORE, when=is_promotion)
        with pytest.raises(Crashed):
            broken.batch(request)
        fresh = broken.again()

        version = fresh.read("describe_table_version", id=T)["version"]

        assert version["manifest_path"].endswith(f"{2**64 - 3}.manifest")
        assert fresh.canonical(T) == [1, 2]


class TestM5GoneVersions:
    def test_a_version_that_a_client_removed_is_not_listed_and_never_promoted_again(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        ground.write(T, rows(3, 4))
        ground.write(T, rows(4, 5))
        ground.catalog.sweep()
        versions = ground.root / ground.location(T) / "_versions"
        (versions / f"{2**64 - 2}.manifest").unlink()
        fresh = ground.again()

        listed = [entry["version"] for entry in fresh.read("list_table_versions", id=T)["versions"]]

        assert listed == [2, 3]
        with pytest.raises(TableVersionNotFoundError):
            fresh.read("describe_table_version", id=T, version=1)
        fresh.batch(fresh.transaction(T, rows(5, 6)))
        assert fresh.catalog.snapshot().version_entry(tuple(T), None, 1) is None
        assert fresh.canonical(T) == [2, 3, 4]

    def test_a_head_of_which_no_manifest_is_left_is_not_called_gone(self, broken: Ground, faults: FaultStore) -> None:
        """A clean-up removes no head: this is damage, and the record stays open."""
        request = broken.stage(T, rows(3, 4))
        faults.fail(Fault.CRASH_BEFORE, when=is_promotion)
        with pytest.raises(Crashed):
            broken.batch(request)
        fresh = broken.again()
        versions = fresh.root / fresh.location(T) / "_versions"
        (versions / f"{2**64 - 4}.manifest").write_bytes((versions / f"{2**64 - 2}.manifest").read_bytes())
        snapshot = fresh.catalog.snapshot()
        head = snapshot.head(tuple(T))
        assert head is not None
        staged = fresh.catalog.promoter.locate(head, snapshot).staged_path
        assert staged is not None
        (fresh.root / staged).unlink()

        fresh.catalog.promoter.promote([head], snapshot)

        assert not fresh.catalog.promoter.is_promoted(head, snapshot)
        assert fresh.catalog.promoter.finish_records(snapshot.open_records(), snapshot) == []


class TestM6TakenNames:
    def test_the_row_stands_and_the_unmanaged_commit_is_committed_again(
        self, broken: Ground, faults: FaultStore
    ) -> None:
        request = broken.stage(T, rows(3, 4))
        once(faults, is_promotion, lambda: broken.unmanaged_append(T, rows(100, 101)))

        broken.batch(request)

        assert broken.ids(T) == [0, 1, 2, 3]  # by URI: ours is N again
        assert any("_staging/foreign/" in path for path in broken.tree())
        broken.catalog.sweep()
        assert broken.head(T) == 3
        assert broken.ids(T) == [0, 1, 2, 3, 100]
        broken.open(T).validate()
        reports = [record for record in broken.catalog.snapshot().records() if record.state == "foreign"]
        assert len(reports) == 1

    def test_a_version_built_on_the_taken_name_is_quarantined_as_well(self, broken: Ground, faults: FaultStore) -> None:
        request = broken.stage(T, rows(3, 4))

        def take_name() -> None:
            broken.unmanaged_append(T, rows(100, 101))
            broken.unmanaged_append(T, rows(101, 102))

        once(faults, is_promotion, take_name)
        broken.batch(request)

        assert broken.canonical(T) == [1, 2]
        broken.catalog.sweep()
        assert broken.ids(T) == [0, 1, 2, 3, 100, 101]


class TestN1LocationsAreUsedOnce:
    def test_a_late_version_of_a_dropped_table_is_refused_by_its_successor(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        late = ground.stage(T, rows(3, 4))
        first = ground.location(T)
        ground.call("drop_table", id=T)
        ground.make_table("g", "t", count=1)

        with pytest.raises(InvalidInputError, match="own _versions directory"):
            ground.batch(late)

        assert ground.location(T) != first
        assert ground.ids(T) == [0]

    def test_a_location_in_use_cannot_be_taken(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        location = ground.location(T)

        with pytest.raises(InvalidInputError, match=r"belongs to table g\$t"):
            ground.call("register_table", id=["g", "u"], location=location)


class TestN2NumbersAreUsedOnce:
    def test_the_head_cannot_be_deleted(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        ground.write(T, rows(3, 4))

        with pytest.raises(InvalidInputError, match="version 2 is the head"):
            ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 2, "end_version": 3}])

        assert ground.head(T) == 2

    def test_versions_below_the_head_are_deleted(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        ground.write(T, rows(3, 4))
        ground.write(T, rows(4, 5))

        answer = ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 0, "end_version": 3}])

        assert answer["deleted_count"] == 2
        assert [v["version"] for v in ground.read("list_table_versions", id=T)["versions"]] == [3]

    def test_a_deleted_number_is_not_used_again(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        stale = ground.stage(T, rows(50, 51))
        ground.write(T, rows(3, 4))
        ground.write(T, rows(4, 5))
        ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 2, "end_version": 3}])

        with pytest.raises(LanceNamespaceError, match="existed and was removed"):
            ground.batch(stale)

        assert ground.ids(T) == [0, 1, 2, 3, 4]


class TestP4Forks:
    def test_the_second_fork_of_a_name_is_refused_with_code_23(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        ground.write(T, rows(3, 4))
        forks = [stage_fork(ground, "dev", version) for version in (1, 2)]
        ground.batch(forks[0])

        with pytest.raises(TableBranchAlreadyExistsError):
            ground.batch(forks[1])

        assert ground.head(T, "dev") == 1


class TestS1DurableBeforeTheFlip:
    def test_everything_that_the_flip_makes_reachable_is_synced_first(self, tmp_path: Path) -> None:
        faults = FaultStore(LocalStore(tmp_path / "root", "fsync"))
        ground = Ground(tmp_path / "root", faults)
        ground.make_namespace("g")
        ground.make_table("g", "t")
        staged, transaction = ground.stage(T, rows(3, 4)), ground.transaction(T, rows(4, 5), read_version=1)
        before = set(ground.tree())
        faults.synced.clear()
        mark = len(faults.writes)

        ground.batch(staged, transaction)

        flip = next(write for write in faults.writes[mark:] if is_flip(write))
        synced = {path for number, path in faults.synced if number <= flip.number}
        data = {path for path in before if "/data/" in path and path.startswith(ground.location(T))}
        new_data = {path for path in data if path in synced}
        assert len(new_data) == 2  # the files of both transactions, written by pylance, which never syncs
        assert ground.catalog.store.relative_path(staged["create_table_version"]["manifest_path"]) in synced
        durable = synced | {write.path for write in faults.writes[mark:] if write.number < flip.number}
        assert any(path.startswith("_staging/") for path in durable & synced)
        assert any(path.startswith("__manifest/data/") for path in synced)

    @pytest.mark.parametrize("how", ["staged", "transaction"])
    def test_blobs_are_synced_where_the_head_was_never_read(self, tmp_path: Path, how: str) -> None:
        """Their names stand nowhere: that a column may have some says the staged manifest, or else the head."""
        schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")])
        batch = pa.table({"id": [1], "b": lance.blob_array([b"y" * 5_000_000])}, schema=schema)
        ground = Ground(tmp_path / "root")
        ground.make_namespace("g")
        lance.write_dataset(batch, namespace_client=ground.namespace, table_id=T, data_storage_version="2.2")
        old = set((tmp_path / "root").rglob("*.blob"))
        faults = FaultStore(LocalStore(tmp_path / "root", "fsync"))
        again = ground.again(faults)

        again.batch(again.stage(T, batch) if how == "staged" else again.transaction(T, batch, read_version=1))

        [new] = set((tmp_path / "root").rglob("*.blob")) - old
        flip = next(write for write in faults.writes if is_flip(write))
        assert str(new.relative_to(tmp_path / "root")) in {
            path for number, path in faults.synced if number <= flip.number
        }

    def test_the_staged_name_stays_until_its_promotion_is_durable(self, tmp_path: Path) -> None:
        faults = FaultStore(LocalStore(tmp_path / "root", "fsync"))
        ground = Ground(tmp_path / "root", faults)
        ground.make_namespace("g")
        ground.make_table("g", "t")
        ground.catalog.sweep()
        request = ground.stage(T, rows(3, 4))
        key = ground.catalog.store.relative_path(request["create_table_version"]["manifest_path"])
        assert key is not None
        ground.batch(request)
        assert (ground.root / key).exists()

        ground.catalog.sweep()

        removal = next(write for write in faults.writes if write.verb == "delete" and write.path == key)
        canonical = f"{ground.location(T)}/_versions/{2**64 - 3}.manifest"
        assert any(path == canonical and number <= removal.number for number, path in faults.synced)

    @pytest.mark.parametrize("durability", ["none", "fsync"])
    def test_where_nothing_is_synced_the_staged_name_goes_with_its_answer(
        self, tmp_path: Path, durability: Literal["none", "fsync"]
    ) -> None:
        ground = Ground(tmp_path / "root", LocalStore(tmp_path / "root", durability))
        ground.make_namespace("g")
        ground.make_table("g", "t")
        request = ground.stage(T, rows(3, 4))
        staged = Path("/" + request["create_table_version"]["manifest_path"])
        call = ground.namespace.prepare("batch_commit_tables", {"operations": [request]})
        ground.namespace.commit_calls([call])
        assert staged.exists()

        ground.namespace.clean_up([call])

        assert staged.exists() == (durability == "fsync")
        assert ground.ids(T) == [0, 1, 2, 3]
        ground.make_namespace("h")  # any flip closes what is settled (M7)
        record = ground.catalog.snapshot().record(call.batch_uuid)
        assert record is not None
        assert record.state == ("open" if durability == "fsync" else "closed")

    def test_a_manifest_that_a_client_removed_does_not_stop_the_sync_of_the_rest(self, tmp_path: Path) -> None:
        faults = FaultStore(LocalStore(tmp_path / "root", "fsync"))
        ground = Ground(tmp_path / "root", faults)
        ground.make_namespace("g")
        ground.make_table("g", "t")
        ground.write(T, rows(3, 4))
        ground.make_table("g", "u")
        location = ground.location(T)
        (ground.root / location / "_versions" / f"{2**64 - 2}.manifest").unlink()

        ground.catalog.sweep()

        removed = {write.path for write in faults.writes if write.verb == "delete"}
        assert any(path.startswith(f"{ground.location(['g', 'u'])}/_versions/") for path in removed)
        kept = f"{ground.location(['g', 'u'])}/_versions/{2**64 - 2}.manifest"
        assert [path for _, path in faults.synced].count(kept) == 2  # with the one that is gone, then by itself


def test_records_closed_by_other_processes_are_forgotten(ground: Ground) -> None:
    ground.make_table("g", "t")
    other = ground.again()
    other.catalog.sweep()
    assert ground.catalog.snapshot().open_records() == ()

    ground.catalog.promoter.forget_closed(ground.catalog.snapshot())

    assert ground.catalog.promoter._promoted == {}
    assert ground.ids(T) == [0, 1, 2]

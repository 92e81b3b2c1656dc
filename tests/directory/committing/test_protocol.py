"""The rules of docs/design/001-protocol.md for planning and flipping: break the rule, see the named failure."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    ServiceUnavailableError,
)

from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.manifests.promoter import Promoter
from namespace_server.directory.model.errors import BatchUnknown, CatalogBusy
from tests.directory.breaking import T, is_flip, is_promotion, once, stage_by_uri
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore


class TestF1OnlyAnOccupiedSlotIsAnAnswer:
    def test_a_lost_answer_is_looked_up(self, broken: Ground, faults: FaultStore) -> None:
        request = broken.stage(T, rows(3, 4))
        faults.fail(Fault.LOST_ANSWER, when=is_flip)

        answer = broken.batch(request)

        assert answer["results"][0]["create_table_version"]["version"]["version"] == 2
        assert broken.ids(T) == [0, 1, 2, 3]

    def test_a_lost_request_is_sent_again_with_the_same_bytes(self, broken: Ground, faults: FaultStore) -> None:
        request = broken.stage(T, rows(3, 4))
        faults.fail(Fault.LOST_REQUEST, when=is_flip)
        before = broken.catalog.snapshot().version

        broken.batch(request)

        assert broken.catalog.snapshot().version == before + 1

    def test_a_lost_answer_is_unknown_and_cleans_up_nothing(self, broken: Ground, faults: FaultStore) -> None:
        request = broken.stage(T, rows(3, 4))
        faults.fail(Fault.DELAYED, when=is_flip, times=1000)
        staged = broken.tree()

        with pytest.raises(BatchUnknown) as caught:
            broken.batch(request, key="k")

        assert caught.value.detail
        assert staged.keys() <= broken.tree().keys()
        assert broken.again().head(T) == 1
        faults.deliver()  # the put lands late: the batch is committed, whole
        fresh = broken.again()
        assert fresh.head(T) == 2
        again = fresh.batch(request, key="k")
        assert again["transaction_id"] == caught.value.detail
        fresh.catalog.sweep()
        assert fresh.ids(T) == [0, 1, 2, 3]


class TestF5BusyIsNoVerdict:
    def test_tries_exhausted_is_503_not_409(self, tmp_path: Path, broken: Ground, faults: FaultStore) -> None:
        rival = Ground(tmp_path / "root")
        count = iter(range(10_000))

        def win_every_slot(verb: str, path: str) -> None:
            if verb == "put_if_absent" and path.startswith("__manifest/_versions/"):
                rival.make_namespace(f"rival{next(count)}")

        request = broken.stage(T, rows(3, 4))
        undo = faults.before(win_every_slot)

        with pytest.raises(CatalogBusy, match="other writers won"):
            broken.batch(request)

        undo()
        assert broken.head(T) == 1
        broken.batch(request)
        assert broken.ids(T) == [0, 1, 2, 3]


class TestP1ReplayBeforeEverything:
    def test_a_repeated_request_whose_staged_file_is_consumed_gets_its_answer(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        ground.make_table("g", "u")
        requests = [ground.stage(T, rows(3, 4)), ground.stage(["g", "u"], rows(3, 4))]
        first = ground.batch(*requests)
        ground.catalog.sweep()  # removes the staged names
        version = ground.catalog.snapshot().version

        again = ground.again().batch(*requests)

        assert again == first
        assert ground.catalog.snapshot().version == version

    def test_a_single_version_is_replayed_without_its_record(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        request = ground.stage(T, rows(3, 4))["create_table_version"]
        first = ground.call("create_table_version", **request)
        ground.catalog.sweep()
        ground.catalog.record_housekeeping.remove(ground.catalog.snapshot().records())
        ground.catalog.flush_record_housekeeping()
        assert list(ground.catalog.snapshot().records()) == []

        again = ground.again().call("create_table_version", **request)

        assert again["version"] == first["version"]
        assert ground.ids(T) == [0, 1, 2, 3]

    def test_part_of_a_batch_is_no_replay(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        ground.make_table("g", "u")
        first, second = ground.stage(T, rows(3, 4)), ground.stage(["g", "u"], rows(3, 4))
        ground.batch(first)

        with pytest.raises(ConcurrentModificationError):
            ground.batch(first, second)

        assert ground.head(["g", "u"]) == 1


class TestP2AHeadIsComparedByIdentity:
    def test_a_manifest_built_on_a_lost_overlay_is_built_again(
        self, tmp_path: Path, broken: Ground, faults: FaultStore
    ) -> None:
        """Group {b3: T@2, b2: T@3 on it}; the slot is lost to b1: T@2. The number still fits, b3's rows must not."""
        rival = Ground(tmp_path / "root")
        winner = rival.stage(T, rows(100, 101))
        b3, b2 = broken.stage(T, rows(200, 201)), broken.transaction(T, rows(300, 301))
        calls = [broken.namespace.prepare("batch_commit_tables", {"operations": [op]}) for op in (b3, b2)]
        once(faults, is_flip, lambda: rival.batch(winner))

        rejected, rebased = broken.namespace.commit_calls(calls)

        assert isinstance(rejected, ConcurrentModificationError)
        assert rebased.body["results"][0]["commit_transaction"]["version"]["version"] == 3  # type: ignore[union-attr]
        assert broken.ids(T) == [0, 1, 2, 100, 300]
        broken.open(T).validate()


class TestP3Lineage:
    def test_a_version_built_on_an_unmanaged_commit_under_our_number_is_refused(
        self, broken: Ground, faults: FaultStore
    ) -> None:
        ours = broken.stage(T, rows(3, 4))
        broken.unmanaged_append(T, rows(100, 101))  # an unmanaged file under version 2's name
        stock = broken.open(T)
        assert stock.version == 2
        built_on_it = stage_by_uri(broken, T, rows(101, 102))
        canonical = broken.root / broken.location(T) / "_versions" / f"{2**64 - 3}.manifest"
        unmanaged = canonical.read_bytes()
        canonical.unlink()
        broken.batch(ours)

        with pytest.raises(InvalidInputError, match=r"not built on version 2.*reopen"):
            broken.batch(built_on_it)

        assert unmanaged
        assert broken.ids(T) == [0, 1, 2, 3]

    @pytest.mark.parametrize("by_path", [False, True])
    def test_deletions_without_those_that_were_committed_since_are_not_taken_in(
        self, tmp_path: Path, broken: Ground, by_path: bool
    ) -> None:
        """A stock writer that met another version 2 goes on from there: rows of the head's version 2 would be back."""
        location = broken.root / broken.location(T)
        aside = tmp_path / "aside"
        shutil.copytree(location, aside)
        lance.dataset(str(aside)).delete("id = 2")
        lance.dataset(namespace_client=broken.namespace, table_id=T).delete("id = 1")
        broken.catalog.sweep()
        assert broken.ids(T) == [0, 2]
        stale, head = (
            parse_manifest_file((each / "_versions" / f"{2**64 - 3}.manifest").read_bytes())
            for each in (aside, location)
        )
        assert stale.transaction is not None
        assert head.transaction is not None
        shutil.copytree(aside / "_deletions", location / "_deletions", dirs_exist_ok=True)
        manifest, transaction = pb.Manifest(), pb.Transaction()
        manifest.CopyFrom(head.manifest)
        transaction.CopyFrom(stale.transaction)
        manifest.version, transaction.read_version = 3, 2
        manifest.fragments[0].deletion_file.CopyFrom(stale.manifest.fragments[0].deletion_file)
        data = encode_manifest_file(manifest, transaction, None)
        name = location / "_versions" / f"{2**64 - 4}.manifest{'' if by_path else '-' + transaction.uuid}"
        name.write_bytes(data)

        if by_path:
            assert [each["version"] for each in broken.read("list_table_versions", id=T)["versions"]] == [1, 2]
        else:
            request = {"id": T, "version": 3, "manifest_path": str(name), "manifest_size": len(data)}
            with pytest.raises(InvalidInputError, match=r"not built on version 2: rows of fragment 0.*reopen"):
                broken.call("create_table_version", **request, naming_scheme="V2")

        broken.catalog.sweep()
        assert broken.again().ids(T) == [0, 2]


class TestP6RemovalsWaitForPromotion:
    def test_deregister_promotes_first_so_that_registering_again_finds_everything(
        self, broken: Ground, faults: FaultStore
    ) -> None:
        request = broken.stage(T, rows(3, 4))
        faults.fail(Fault.CRASH_BEFORE, when=is_promotion)
        with pytest.raises(Crashed):
            broken.batch(request)
        fresh = broken.again()
        assert fresh.canonical(T) == [1]

        location = fresh.location(T)
        fresh.call("deregister_table", id=T)
        fresh.call("register_table", id=["g", "back"], location=location)

        assert fresh.ids(["g", "back"]) == [0, 1, 2, 3]
        assert fresh.head(["g", "back"]) == 2


class TestP7VerdictsOnTheOverlayWait:
    def test_a_rejection_that_rests_on_a_batch_of_the_group_is_judged_again_when_the_flip_is_lost(
        self, tmp_path: Path, broken: Ground, faults: FaultStore
    ) -> None:
        """b1 declares g.n, so b2's declaration of g.n is refused; but a rival makes `g.n` a namespace meanwhile."""
        rival = Ground(tmp_path / "root")
        first = broken.namespace.prepare("declare_table", {"id": ["g", "n"]})
        second = broken.namespace.prepare("declare_table", {"id": ["g", "n"]})
        once(faults, is_flip, lambda: rival.make_namespace("g", "n"))

        answers = broken.namespace.commit_calls([first, second])

        assert [type(answer).__name__ for answer in answers] == ["NamespaceAlreadyExistsError"] * 2

    def test_a_rejection_on_an_unknown_flip_is_unknown(self, broken: Ground, faults: FaultStore) -> None:
        first = broken.namespace.prepare("declare_table", {"id": ["g", "n"]})
        second = broken.namespace.prepare("declare_table", {"id": ["g", "n"]})
        faults.fail(Fault.LOST_REQUEST, when=is_flip, times=1000)

        answers = broken.namespace.commit_calls([first, second])

        assert [type(answer) for answer in answers] == [BatchUnknown, BatchUnknown]

    def test_a_rejection_on_the_committed_snapshot_stands_whatever_becomes_of_the_flip(
        self, broken: Ground, faults: FaultStore
    ) -> None:
        rejected = broken.namespace.prepare("declare_table", {"id": T})
        other = broken.namespace.prepare("declare_table", {"id": ["g", "n"]})
        faults.fail(Fault.LOST_REQUEST, when=is_flip, times=1000)

        answers = broken.namespace.commit_calls([rejected, other])

        assert [type(answer).__name__ for answer in answers] == ["TableAlreadyExistsError", "BatchUnknown"]


class TestF4MergingIsPartOfTheFlip:
    def test_no_row_is_lost_or_doubled_when_a_merging_flip_is_lost(
        self, tmp_path: Path, broken: Ground, faults: FaultStore
    ) -> None:
        rival = Ground(tmp_path / "root")
        made: list[str] = []
        won: set[int] = set()

        def win_some(verb: str, path: str) -> None:
            number = len(made)
            if verb == "put_if_absent" and path.startswith("__manifest/_versions/") and number not in won:
                won.add(number)
                rival.make_namespace(f"r{number}")

        faults.before(win_some)
        for number in range(60):
            broken.make_namespace(f"n{number}")
            made.append(f"n{number}")
        names = broken.again().read("list_namespaces", id=[])["namespaces"]
        assert set(made) <= set(names)
        listed = lance.dataset(str(broken.root / "__manifest")).to_table()["object_id"].to_pylist()
        assert len(listed) == len(set(listed))
        lance.dataset(str(broken.root / "__manifest")).validate()


class TestF6NewestByListing:
    def test_a_server_idle_for_longer_than_the_retention_commits_onto_the_newest_version(
        self, tmp_path: Path, ground: Ground
    ) -> None:
        ground.make_table("g", "t")
        idle = ground.again()
        idle.catalog.snapshot()
        stale = idle.catalog.table.current.version
        for number in range(5):
            ground.make_namespace(f"n{number}")
        for version in range(stale + 1, stale + 4):  # the retention removed what the idle server would probe
            (ground.root / "__manifest" / "_versions" / f"{2**64 - 1 - version}.manifest").unlink()
        idle.catalog.table.current.listed_at = float("-inf")  # type: ignore[misc]

        idle.make_namespace("late")

        assert idle.catalog.snapshot().version == stale + 6
        assert "n4" in idle.read("list_namespaces", id=[])["namespaces"]


def test_batches_of_one_group_have_their_own_verdicts(ground: Ground) -> None:
    calls = [
        ground.namespace.prepare("declare_table", {"id": ["g", "a"]}),
        ground.namespace.prepare("declare_table", {"id": ["g", "a"]}),
        ground.namespace.prepare("declare_table", {"id": ["nowhere", "a"]}),
        ground.namespace.prepare("declare_table", {"id": ["g", "b"]}),
    ]
    before = ground.catalog.snapshot().version

    answers = ground.namespace.commit_calls(calls)

    kinds = [type(answer).__name__ for answer in answers]
    assert kinds == ["Answer", "TableAlreadyExistsError", "NamespaceNotFoundError", "Answer"]
    assert ground.catalog.snapshot().version == before + 1


def test_a_key_used_earlier_in_the_group_is_used(ground: Ground) -> None:
    person, city = ground.make_table("g", "person"), ground.make_table("g", "city")
    calls = [
        ground.namespace.prepare(
            "batch_commit_tables", {"operations": [ground.stage(table, rows(3, 4))]}, idempotency_key="k1"
        )
        for table in (person, city)
    ]

    first, second = ground.namespace.commit_calls(calls)

    assert not isinstance(first, Exception)
    assert "'k1' was used for another request" in str(second)
    assert (ground.head(person), ground.head(city)) == (2, 1)


def test_threads_share_flips_and_lose_nothing(ground: Ground) -> None:
    def work(number: int) -> None:
        for step in range(20):
            ground.make_namespace(f"w{number}_{step}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    names = ground.read("list_namespaces", id=[])["namespaces"]
    assert len([name for name in names if name.startswith("w")]) == 160


def test_an_internal_error_in_one_batch_fails_that_batch_alone(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    from namespace_server.directory.planning import transactions

    ground.make_table("g", "t")
    calls = [
        ground.namespace.prepare("batch_commit_tables", {"operations": [ground.transaction(T, rows(3, 4))]}),
        ground.namespace.prepare("declare_table", {"id": ["g", "n"]}),
    ]
    monkeypatch.setattr(transactions, "_prepare", lambda *_: 1 // 0)

    broken, fine = ground.namespace.commit_calls(calls)

    assert type(broken).__name__ == "InternalError"
    assert type(fine).__name__ == "Answer"
    assert ground.head(T) == 1


def test_an_internal_error_of_promotion_fails_the_batch_alone_that_builds_on_it(
    broken: Ground, faults: FaultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.fail(Fault.CRASH_BEFORE, when=is_promotion)
    with pytest.raises(Crashed):
        broken.batch(broken.stage(T, rows(3, 4)))
    fresh = broken.again()
    calls = [
        fresh.namespace.prepare("batch_commit_tables", {"operations": [fresh.transaction(T, rows(4, 5))]}),
        fresh.namespace.prepare("declare_table", {"id": ["g", "n"]}),
    ]
    with monkeypatch.context() as failing:
        failing.setattr(Promoter, "_promote_one", lambda *_: 1 // 0)
        on_top, apart = fresh.namespace.commit_calls(calls)

    assert isinstance(on_top, ServiceUnavailableError)
    assert "nothing was done" in str(on_top)
    assert type(apart).__name__ == "Answer"
    fresh.namespace.commit_calls(calls[:1])
    assert fresh.ids(T) == [0, 1, 2, 3, 4]

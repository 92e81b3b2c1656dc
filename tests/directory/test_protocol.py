"""The rules of docs/design/001-protocol.md that the model checked: break the rule, see the named failure."""

from __future__ import annotations

import threading
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    TableBranchAlreadyExistsError,
    TableVersionNotFoundError,
)

from lance_core.storage.local import LocalStore
from lance_core.testing.faults import Crashed, Fault, FaultStore, Write
from namespace_server.directory.errors import CatalogBusy, CommitOutcomeUnknown
from tests.directory.tables import Ground, rows


def is_flip(write: Write) -> bool:
    return write.path.startswith("__manifest/_versions/")


def is_promotion(write: Write) -> bool:
    return write.verb == "publish"


@pytest.fixture
def faults(tmp_path: Path) -> FaultStore:
    return FaultStore(LocalStore(tmp_path / "root", "none"))


@pytest.fixture
def broken(tmp_path: Path, faults: FaultStore) -> Ground:
    """A catalog with the table `g.t` at version 1, over a store that breaks on demand."""
    made = Ground(tmp_path / "root", faults)
    made.make_namespace("g")
    made.make_table("g", "t")
    made.catalog.sweep()
    return made


T = ["g", "t"]


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

    def test_silence_is_unknown_and_cleans_up_nothing(self, broken: Ground, faults: FaultStore) -> None:
        request = broken.stage(T, rows(3, 4))
        faults.fail(Fault.DELAYED, when=is_flip, times=1000)
        staged = broken.tree()

        with pytest.raises(CommitOutcomeUnknown) as caught:
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
        ground.catalog.upkeep.remove(ground.catalog.snapshot().records())
        ground.catalog.flip_upkeep()
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
        _once(faults, is_flip, lambda: rival.batch(winner))

        rejected, rebased = broken.namespace.commit(calls)

        assert isinstance(rejected, ConcurrentModificationError)
        assert rebased.body["results"][0]["commit_transaction"]["version"]["version"] == 3  # type: ignore[union-attr]
        assert broken.ids(T) == [0, 1, 2, 100, 300]
        broken.open(T).validate()


class TestP3Lineage:
    def test_a_version_built_on_a_foreign_commit_under_our_number_is_refused(
        self, broken: Ground, faults: FaultStore
    ) -> None:
        ours = broken.stage(T, rows(3, 4))
        broken.foreign_append(T, rows(100, 101))  # a foreign file under version 2's name
        stock = broken.open(T)
        assert stock.version == 2
        built_on_it = _stage_by_uri(broken, T, rows(101, 102))
        canonical = broken.root / broken.location(T) / "_versions" / f"{2**64 - 3}.manifest"
        foreign = canonical.read_bytes()
        canonical.unlink()
        broken.batch(ours)

        with pytest.raises(InvalidInputError, match=r"not built on version 2.*reopen"):
            broken.batch(built_on_it)

        assert foreign
        assert broken.ids(T) == [0, 1, 2, 3]


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
        _once(faults, is_flip, lambda: rival.make_namespace("g", "n"))

        answers = broken.namespace.commit([first, second])

        assert [type(answer).__name__ for answer in answers] == ["NamespaceAlreadyExistsError"] * 2

    def test_a_rejection_on_an_unknown_flip_is_unknown(self, broken: Ground, faults: FaultStore) -> None:
        first = broken.namespace.prepare("declare_table", {"id": ["g", "n"]})
        second = broken.namespace.prepare("declare_table", {"id": ["g", "n"]})
        faults.fail(Fault.LOST_REQUEST, when=is_flip, times=1000)

        answers = broken.namespace.commit([first, second])

        assert [type(answer) for answer in answers] == [CommitOutcomeUnknown, CommitOutcomeUnknown]

    def test_a_rejection_on_the_committed_snapshot_stands_whatever_becomes_of_the_flip(
        self, broken: Ground, faults: FaultStore
    ) -> None:
        rejected = broken.namespace.prepare("declare_table", {"id": T})
        other = broken.namespace.prepare("declare_table", {"id": ["g", "n"]})
        faults.fail(Fault.LOST_REQUEST, when=is_flip, times=1000)

        answers = broken.namespace.commit([rejected, other])

        assert [type(answer).__name__ for answer in answers] == ["TableAlreadyExistsError", "CommitOutcomeUnknown"]


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

    def test_describe_finishes_what_a_dead_server_left(self, broken: Ground, faults: FaultStore) -> None:
        request = broken.stage(T, rows(3, 4))
        faults.fail(Fault.CRASH_BEFORE, when=is_promotion)
        with pytest.raises(Crashed):
            broken.batch(request)
        fresh = broken.again()

        version = fresh.read("describe_table_version", id=T)["version"]

        assert version["manifest_path"].endswith(f"{2**64 - 3}.manifest")
        assert fresh.canonical(T) == [1, 2]


class TestM5GoneVersions:
    def test_what_a_client_cleaned_up_is_not_listed_and_never_promoted_again(self, ground: Ground) -> None:
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


class TestM6UsurpedNames:
    def test_the_row_stands_and_the_foreign_commit_is_committed_again(self, broken: Ground, faults: FaultStore) -> None:
        request = broken.stage(T, rows(3, 4))
        _once(faults, is_promotion, lambda: broken.foreign_append(T, rows(100, 101)))

        broken.batch(request)

        assert broken.ids(T) == [0, 1, 2, 3]  # by URI: ours is N again
        assert any("_staging/foreign/" in path for path in broken.tree())
        broken.catalog.sweep()
        assert broken.head(T) == 3
        assert broken.ids(T) == [0, 1, 2, 3, 100]
        broken.open(T).validate()
        reports = [record for record in broken.catalog.snapshot().records() if record.state == "foreign"]
        assert len(reports) == 1

    def test_what_was_built_on_the_usurper_is_set_aside_as_well(self, broken: Ground, faults: FaultStore) -> None:
        request = broken.stage(T, rows(3, 4))

        def usurp() -> None:
            broken.foreign_append(T, rows(100, 101))
            broken.foreign_append(T, rows(101, 102))

        _once(faults, is_promotion, usurp)
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

    def test_a_negative_end_deletes_up_to_the_version_before_the_head(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        ground.write(T, rows(3, 4))
        ground.write(T, rows(4, 5))

        answer = ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 0, "end_version": -1}])

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
        forks = [_stage_fork(ground, "dev", version) for version in (1, 2)]
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

    def test_a_manifest_that_a_client_cleaned_up_does_not_keep_the_others_from_being_synced(
        self, tmp_path: Path
    ) -> None:
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

    answers = ground.namespace.commit(calls)

    kinds = [type(answer).__name__ for answer in answers]
    assert kinds == ["Answer", "TableAlreadyExistsError", "NamespaceNotFoundError", "Answer"]
    assert ground.catalog.snapshot().version == before + 1


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


def _once(faults: FaultStore, when: object, act: object) -> None:
    """Let another actor act right before the first matching write."""
    done: list[bool] = []

    def hook(verb: str, path: str) -> None:
        if not done and when(Write(0, verb, path)):  # type: ignore[operator]
            done.append(True)
            act()  # type: ignore[operator]

    faults.before(hook)


def _stage_by_uri(ground: Ground, table_id: list[str], data: object) -> dict[str, object]:
    """A manifest staged by a stock client that took storage for the truth."""
    from tests.directory.tables import Capture

    class Storage(Capture):
        def list_table_versions(self, request: object) -> object:
            versions = ground.canonical(table_id)
            names = [f"{2**64 - 1 - version}.manifest" for version in versions[-1:]]
            base = str(ground.root / ground.location(table_id) / "_versions").lstrip("/")
            return {"versions": [{"version": versions[-1], "manifest_path": f"{base}/{names[0]}"}]}

    capture = Storage(ground.namespace)
    lance.write_dataset(data, mode="append", namespace_client=capture, table_id=table_id)  # type: ignore[arg-type]
    return {"create_table_version": capture.captured[-1]}


def _stage_fork(ground: Ground, branch: str, version: int) -> dict[str, object]:
    """What stock pylance sends to fork a branch; the client dies before it writes the ref."""
    from tests.directory.tables import Capture

    class Dying(Capture):
        def create_table_version(self, request: object) -> object:
            super().create_table_version(request)
            raise RuntimeError("the client dies here")

    capture = Dying(ground.namespace)
    dataset = lance.dataset(namespace_client=capture, table_id=T, version=version)
    with pytest.raises(Exception, match=r"(?s)."):
        dataset.create_branch(branch)
    return {"create_table_version": capture.captured[-1]}


def test_what_other_processes_closed_is_not_remembered_for_ever(ground: Ground) -> None:
    ground.make_table("g", "t")
    other = ground.again()
    other.catalog.sweep()
    assert ground.catalog.snapshot().open_records() == ()

    ground.catalog.promoter.forget_closed(ground.catalog.snapshot())

    assert ground.catalog.promoter._promoted == {}
    assert ground.ids(T) == [0, 1, 2]


def test_a_fault_of_ours_in_one_batch_fails_that_batch_alone(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    from namespace_server.directory import chains

    ground.make_table("g", "t")
    calls = [
        ground.namespace.prepare("batch_commit_tables", {"operations": [ground.transaction(T, rows(3, 4))]}),
        ground.namespace.prepare("declare_table", {"id": ["g", "n"]}),
    ]
    monkeypatch.setattr(chains, "_prepare", lambda *_: 1 // 0)

    broken, fine = ground.namespace.commit(calls)

    assert type(broken).__name__ == "InternalError"
    assert type(fine).__name__ == "Answer"
    assert ground.head(T) == 1

"""What a catalog reports of its work."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import StorageError
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.observation import BatchOutcome, FlipOutcome, Observer, Step
from tests.directory.tables import QUIET, Ground, rows
from tests.directory.taken_names import take_name
from tests.storage.faults import Fault, FaultStore

TABLE = ["g", "person"]
COMMIT_STEPS = ["verify", "plan", "stage", "flip", "prove"]


class Recorder(Observer):
    """Keeps what it is told. `before_flip` is done once, when a flip is about to be sent."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.groups: list[int] = []
        self.flips: list[tuple[str, int]] = []
        self.batches: list[str] = []
        self.conflicts: list[tuple[str, str]] = []
        self.versions = 0
        self.files = 0
        self.before_flip: list[Any] = []

    def step(self, step: Step) -> AbstractContextManager[object]:
        return self._step(step)

    @contextmanager
    def _step(self, step: Step) -> Any:
        self.steps.append(step)
        if step == "flip" and self.before_flip:
            self.before_flip.pop()()
        yield

    def group(self, batches: int) -> None:
        self.groups.append(batches)

    def flip(self, outcome: FlipOutcome, tries: int) -> None:
        self.flips.append((outcome, tries))

    def batch(self, outcome: BatchOutcome, seconds: float) -> None:
        assert 0 < seconds < 60
        self.batches.append(outcome)

    def conflict(self, operation: str, committed: str) -> None:
        self.conflicts.append((operation, committed))

    def adopted(self, versions: int) -> None:
        self.versions += versions

    def quarantined(self) -> None:
        self.files += 1


class Observed(Ground):
    """A catalog whose work is recorded."""

    def __init__(self, root: Path, store: ObjectStore | None = None) -> None:
        super().__init__(root, store)
        self.seen = Recorder()
        self.namespace = DirectoryNamespace(catalog=StoredCatalog(self.store, QUIET, observer=self.seen))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    made = Ground(tmp_path)
    made.make_namespace("g")
    made.make_table(*TABLE)
    return made


def test_a_batch_that_publishes(ground: Ground) -> None:
    observed = Observed(ground.root)
    observed.batch(observed.transaction(TABLE, rows(3, 4)))
    seen = observed.seen
    assert seen.steps == [*COMMIT_STEPS, "promote"]
    assert (seen.groups, seen.flips, seen.batches) == ([1], [("committed", 1)], ["committed"])


def test_a_batch_that_is_rejected_makes_no_flip(ground: Ground) -> None:
    observed = Observed(ground.root)
    with pytest.raises(LanceNamespaceError):
        observed.make_namespace("g")
    assert (observed.seen.flips, observed.seen.batches, observed.seen.conflicts) == ([], ["rejected"], [])


def test_a_lost_flip_is_a_try(ground: Ground) -> None:
    observed = Observed(ground.root)
    observed.seen.before_flip.append(lambda: ground.again().make_namespace("other"))
    observed.make_namespace("mine")
    assert observed.seen.flips == [("lost", 1), ("committed", 2)]
    assert observed.seen.steps == [*COMMIT_STEPS[:4], *COMMIT_STEPS[1:]]
    assert observed.seen.batches == ["committed"]


def test_conflicts_are_told_by_their_operations(ground: Ground) -> None:
    observed = Observed(ground.root)
    stale = observed.transaction(TABLE, rows(3, 4))
    staged = observed.stage(TABLE, rows(4, 5))
    ground.write(TABLE, rows(0, 1), "overwrite")
    for operation in (stale, staged, {"assert_table_version": {"id": TABLE, "version": 1}}):
        with pytest.raises(LanceNamespaceError):
            observed.batch(operation)
    assert observed.seen.conflicts == [
        ("append", "overwrite"),
        ("create_table_version", "unknown"),
        ("assert_table_version", "unknown"),
    ]
    assert observed.seen.batches == ["rejected"] * 3


def test_a_lost_answer_is_unknown(ground: Ground) -> None:
    store = FaultStore(LocalStore(ground.root, "none"))
    observed = Observed(ground.root, store)
    store.fail(Fault.LOST_REQUEST, when=lambda write: write.path.startswith("__manifest/_versions/"), times=100)
    with pytest.raises(LanceNamespaceError):
        observed.make_namespace("mine")
    assert (observed.seen.flips, observed.seen.batches) == ([("unknown", 1)], ["unknown"])


def test_a_store_that_refuses_is_a_failure(ground: Ground) -> None:
    store = FaultStore(LocalStore(ground.root, "none"))
    observed = Observed(ground.root, store)

    def refuse(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.startswith("__manifest/_versions/"):
            raise StorageError("refused")

    store.before(refuse)
    with pytest.raises(LanceNamespaceError):
        observed.make_namespace("mine")
    assert (observed.seen.flips, observed.seen.batches) == ([("failed", 1)], ["failed"])


def test_adopted_versions_are_counted_once_they_are_committed(ground: Ground) -> None:
    ground.unmanaged_append(TABLE, rows(3, 4))
    ground.unmanaged_append(TABLE, rows(4, 5))
    observed = Observed(ground.root)
    observed.seen.before_flip.append(lambda: ground.again().make_namespace("other"))
    observed.read("list_table_versions", id=TABLE)
    assert [outcome for outcome, _ in observed.seen.flips] == ["lost", "committed"]
    assert observed.seen.versions == 2


def test_quarantined_files_are_counted(ground: Ground) -> None:
    take_name(ground, then=lambda _: None)
    observed = Observed(ground.root)
    observed.catalog.sweep()
    assert observed.seen.files == 1


def test_the_state_is_told_without_a_look_at_storage(ground: Ground) -> None:
    store = FaultStore(LocalStore(ground.root, "none"))
    observed = Observed(ground.root, store)
    assert observed.namespace.state() is None
    observed.read("describe_table", id=TABLE)
    asked: list[str] = []
    store.before(lambda verb, path: asked.append(path))
    state = observed.namespace.state()
    assert asked == []
    assert state is not None
    assert state.version == ground.catalog.snapshot().version
    assert state.entries == {"namespace": 1, "table": 1, "record": 3}
    assert state.rows == 6
    assert state.unpromoted == 1  # it is promoted, but this process has not seen it


def test_the_backlog_is_what_was_not_promoted(ground: Ground) -> None:
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    store = FaultStore(LocalStore(ground.root, "none"))
    observed = Observed(ground.root, store)

    def refuse(verb: str, path: str) -> None:
        if verb == "publish":
            raise StorageError(f"{path}: refused")

    store.before(refuse)
    observed.batch(observed.transaction(TABLE, rows(3, 4)))
    state = observed.catalog.state()
    assert state is not None
    assert (state.open_records, state.unpromoted) == (1, 1)

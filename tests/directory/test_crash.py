"""A batch over several tables, with a fault at every storage write in turn, in it and in its recovery.

The batch publishes a client-staged version, a deletion that is rebased over another one, and the first version of a
table that it declares, and it deletes a version. Afterwards it is there as a whole or not at all (invariant 1), the
root is sound (2 to 7, 10), recovery leaves nothing open (11), and everybody can go on (12).
"""

from __future__ import annotations

import copy
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from lance_core.data import schema_fields, stage_fragments
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.testing.faults import Crashed, Fault, FaultStore, Write
from namespace_server.directory.errors import CommitOutcomeUnknown
from namespace_server.directory.snapshot import CatalogSnapshot
from tests.directory.invariants import check_always, check_progress, check_quiet, check_same
from tests.directory.tables import Ground, as_operation, rows

KEY = "one batch"
PERSON, KNOWS, OLD, MADE = (["g", name] for name in ("person", "knows", "old", "made"))
CRASHES = [Fault.CRASH_BEFORE, Fault.CRASH_AFTER]
SILENCES = [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.DELAYED]
FOR_EVER = 10**6


@dataclass(frozen=True)
class Scene:
    """A root on which everything is prepared for the batch, and the batch. `copy` gives a root to break."""

    root: Path
    operations: list[dict[str, Any]]
    before: int
    writes: tuple[Write, ...] = ()
    sweep_writes: tuple[Write, ...] = ()

    def copy(self, to: Path) -> Try:
        shutil.copytree(self.root, to)
        operations = copy.deepcopy(self.operations)
        for operation in operations:
            for request in operation.values():
                for field in ("manifest_path", "location"):
                    if field in request:
                        request[field] = request[field].replace(str(self.root)[1:], str(to)[1:])
        return Try(to, operations, self.before)

    @property
    def flip(self) -> int:
        """The number of the write that is the commit point."""
        [number] = [write.number for write in self.writes if write.path.startswith("__manifest/_versions/")]
        return number


@dataclass(frozen=True)
class Try:
    """The batch on a root of its own. Every `open` is another process."""

    root: Path
    operations: list[dict[str, Any]]
    before: int

    def open(self) -> Ground:
        return Ground(self.root)

    def faulty(self) -> tuple[Ground, FaultStore]:
        store = FaultStore(LocalStore(self.root, "none"))
        return Ground(self.root, store), store

    def send(self, ground: Ground) -> dict[str, Any]:
        return ground.batch(*self.operations, key=KEY)

    def applied(self) -> bool:
        """Whether the batch is there, the same for every part of it, at every catalog version (invariant 1)."""
        ground = self.open()
        newest = ground.catalog.snapshot()
        history = [_parts(ground.catalog.snapshot(version)) for version in range(self.before, newest.version + 1)]
        torn = [parts for parts in history if len(set(parts.values())) > 1]
        assert not torn, f"1: {torn[0]}"
        there = [all(parts.values()) for parts in history]
        assert there == sorted(there), f"3: the batch came and went: {there}"
        return there[-1]

    def check_applied_once(self) -> None:
        """The batch is there, once, and its rows are."""
        assert self.applied()
        ground = self.open()
        assert ground.ids(PERSON) == [0, 1, 2, 3, 4]
        assert ground.ids(KNOWS) == [2]
        assert ground.ids(MADE) == [0, 1]
        assert [ground.head(table) for table in (PERSON, KNOWS, MADE, OLD)] == [2, 3, 1, 2]

    def recover(self) -> None:
        self.open().catalog.sweep()


def _parts(snapshot: CatalogSnapshot) -> dict[str, bool]:
    """What the batch does, part by part: whether it is done."""
    heads = {table[-1]: snapshot.head(tuple(table)) for table in (PERSON, KNOWS, OLD, MADE)}
    old = snapshot.version_entry(tuple(OLD), None, 1)
    return {
        "person": heads["person"] is not None and heads["person"].version >= 2,
        "knows": heads["knows"] is not None and heads["knows"].version >= 3,
        "declared": snapshot.table(tuple(MADE)) is not None,
        "made": heads["made"] is not None,
        "deleted": heads["old"] is not None and heads["old"].version == 2 and old is None,
        "record": snapshot.record_by_key(KEY) is not None,
    }


def _delete_elsewhere(ground: Ground, table: list[str], predicate: str, workshop: Path) -> pb.Transaction:
    """The Delete that stock pylance makes of a predicate on the table's head, its deletion file put in place."""
    home = ground.root / ground.location(table)
    shutil.copytree(home, workshop)
    dataset = lance.dataset(str(workshop))
    dataset.delete(predicate)
    file = parse_manifest_file((workshop / "_versions" / manifest_name(dataset.version)).read_bytes())
    shutil.copytree(workshop / "_deletions", home / "_deletions", dirs_exist_ok=True)
    shutil.rmtree(workshop)
    assert file.transaction is not None
    return file.transaction


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    place = tmp_path_factory.mktemp("scene")
    ground = Ground(place / "root")
    ground.make_namespace("g")
    for table in (PERSON, KNOWS, OLD):
        ground.make_table(*table)
    ground.write(OLD, rows(3, 4))
    delete = _delete_elsewhere(ground, KNOWS, "id = 1", place / "workshop")
    dataset = lance.dataset(namespace_client=ground.namespace, table_id=KNOWS)
    dataset.delete("id = 0")
    location = "0a1b2c3d_g$made"
    first = pb.Transaction(uuid=str(uuid.uuid4()))
    first.overwrite.fragments.extend(stage_fragments(rows(0, 2), str(ground.root / location), mode="create"))
    first.overwrite.schema.extend(schema_fields(rows(0, 2).schema))
    operations = [
        ground.stage(PERSON, rows(3, 5)),
        as_operation(KNOWS, delete),
        {"declare_table": {"id": MADE, "location": f"{ground.catalog.store.uri}/{location}"}},
        as_operation(MADE, first),
        {"delete_table_versions": {"id": OLD, "ranges": [{"start_version": 1, "end_version": 2}]}},
    ]
    ground.catalog.sweep()
    bare = Scene(ground.root, operations, check_quiet(ground.root).version)
    dry = bare.copy(place / "dry")
    ground, store = dry.faulty()
    dry.send(ground)
    sent = len(store.writes)
    ground.catalog.sweep()
    check_same(ground.catalog.snapshot(), check_quiet(dry.root))
    dry.check_applied_once()
    return Scene(bare.root, operations, bare.before, tuple(store.writes[:sent]), tuple(store.writes[sent:]))


@pytest.fixture
def fresh(scene: Scene, tmp_path: Path) -> Callable[[str], Try]:
    """Roots for the batch to be tried on."""
    return lambda name: scene.copy(tmp_path / name)


def test_the_batch_makes_every_kind_of_write(scene: Scene) -> None:
    """What the tests below break: a batch that wrote less would prove less."""
    kinds = [(write.verb, _kind(write.path)) for write in scene.writes]
    flip = scene.flip
    assert set(kinds[:flip]) == {
        ("put", "staged manifest"),
        ("put", "transaction file"),
        ("put", "deletion file"),
        ("put", "catalog rows"),
        ("put", "catalog deletions"),
    }
    assert kinds[flip] == ("put_if_absent", "catalog version")
    assert kinds[flip + 1 :] == [("publish", "canonical manifest")] * 3
    swept = {(write.verb, _kind(write.path)) for write in scene.sweep_writes}
    assert swept >= {
        ("delete", "staged manifest"),
        ("put", "catalog rows"),
        ("put_if_absent", "catalog version"),
    }


def _kind(path: str) -> str:
    first, _, rest = path.partition("/")
    place = "catalog " if first == "__manifest" else ""
    directory = rest.partition("/")[0]
    if first == "_staging" or ".manifest-" in path:
        return "staged manifest"
    return {
        "_versions": "catalog version" if place else "canonical manifest",
        "_transactions": "transaction file",
        "_deletions": "catalog deletions" if place else "deletion file",
        "data": f"{place}rows",
    }[directory]


@pytest.mark.parametrize("fault", CRASHES)
def test_a_crash_at_any_write(scene: Scene, fresh: Callable[[str], Try], fault: Fault) -> None:
    for write in scene.writes:
        attempt = fresh(f"{write.number}")
        ground, store = attempt.faulty()
        store.fail(fault, nth=write.number)

        with pytest.raises(Crashed):
            attempt.send(ground)

        flipped = write.number > scene.flip or (write.number == scene.flip and fault is Fault.CRASH_AFTER)
        check_always(attempt.root, since=attempt.before)
        assert attempt.applied() == flipped, f"{fault.name} at {write}"
        attempt.recover()
        check_quiet(attempt.root, since=attempt.before)
        assert attempt.applied() == flipped, f"{fault.name} at {write}, recovered"
        attempt.send(attempt.open())
        attempt.check_applied_once()
        check_progress(attempt.root)


@pytest.mark.parametrize("fault", CRASHES)
def test_the_next_batch_comes_before_the_sweep(scene: Scene, fresh: Callable[[str], Try], fault: Fault) -> None:
    """Recovery is nobody's privilege: whoever comes next finishes what it builds on (M1, M7)."""
    for write in scene.writes[scene.flip :]:
        attempt = fresh(f"{write.number}")
        ground, store = attempt.faulty()
        store.fail(fault, nth=write.number)
        with pytest.raises(Crashed):
            attempt.send(ground)

        flipped = write.number > scene.flip or fault is Fault.CRASH_AFTER
        assert attempt.applied() == flipped, f"{fault.name} at {write}"

        check_progress(attempt.root)

        ground = attempt.open()
        assert (4 in ground.ids(PERSON), 1 in ground.ids(KNOWS)) == (flipped, not flipped)


@pytest.mark.parametrize("fault", CRASHES)
def test_a_crash_at_any_write_of_recovery(scene: Scene, fresh: Callable[[str], Try], fault: Fault) -> None:
    """Nothing is promoted yet, recovery dies at each of its writes, and the next one finishes."""
    number = 0
    while True:
        attempt = fresh(f"{number}")
        ground, store = attempt.faulty()
        store.fail(Fault.CRASH_AFTER, nth=scene.flip)
        with pytest.raises(Crashed):
            attempt.send(ground)
        ground, store = attempt.faulty()
        store.fail(fault, nth=number)
        try:
            ground.catalog.sweep()
        except Crashed:
            assert store.crashed
        else:
            assert number == len(store.writes) > len(scene.sweep_writes), "promotion is part of this recovery"
            break
        check_always(attempt.root, since=attempt.before)
        assert attempt.applied()
        attempt.recover()
        check_quiet(attempt.root, since=attempt.before)
        attempt.check_applied_once()
        check_progress(attempt.root)
        number += 1


@pytest.mark.parametrize("times", [1, FOR_EVER], ids=["once", "for ever"])
@pytest.mark.parametrize(
    ("fault", "late"),
    [*((fault, "before the repeat") for fault in SILENCES), (Fault.DELAYED, "after the repeat")],
)
def test_an_answer_that_does_not_come(
    scene: Scene, fresh: Callable[[str], Try], fault: Fault, times: int, late: str
) -> None:
    """What is answered agrees with what is there; unknown deletes nothing (F1); a repeat is one application (P1)."""
    outcomes = set()
    for write in scene.writes:
        attempt = fresh(f"{write.number}")
        ground, store = attempt.faulty()
        store.fail(fault, when=_from(write), times=times)
        answer, error = _ask(attempt, ground)
        outcomes.add(type(error))

        if answer is not None:
            assert attempt.applied(), f"{fault.name} at {write}: acknowledged, not there"
        else:
            assert not [done for done in store.writes if done.verb == "delete"], f"{fault.name} at {write}"
        if isinstance(error, LanceNamespaceError) and not isinstance(error, ServiceUnavailableError):
            raise AssertionError(f"{fault.name} at {write}: a silence is no rejection") from error
        if isinstance(error, ServiceUnavailableError) and not isinstance(error, CommitOutcomeUnknown):
            assert not attempt.applied(), f"{fault.name} at {write}: nothing was done, it said"
        if late == "before the repeat":
            store.deliver()
        check_always(attempt.root, since=attempt.before)

        again = attempt.send(attempt.open())
        if late == "after the repeat":
            store.deliver()
        attempt.recover()
        check_quiet(attempt.root, since=attempt.before)
        attempt.check_applied_once()
        if answer is not None:
            assert again["transaction_id"] == answer["transaction_id"]
    assert type(None) in outcomes
    if times == FOR_EVER and fault is not Fault.LOST_ANSWER:
        assert CommitOutcomeUnknown in outcomes


def _from(write: Write) -> Callable[[Write], bool]:
    """This write and all that are made to the same place: names that nobody else uses are fresh in each run."""
    return lambda made: made.number >= write.number and _kind(made.path) == _kind(write.path)


def _ask(attempt: Try, ground: Ground) -> tuple[dict[str, Any] | None, LanceNamespaceError | None]:
    try:
        return attempt.send(ground), None
    except LanceNamespaceError as error:
        return None, error


@pytest.mark.parametrize("fault", SILENCES)
def test_recovery_that_gets_no_answer(scene: Scene, fresh: Callable[[str], Try], fault: Fault) -> None:
    """A sweep that a store leaves without an answer has harmed nothing, and another one finishes."""
    for number in range(len(scene.sweep_writes) + 3):
        attempt = fresh(f"{number}")
        ground, store = attempt.faulty()
        store.fail(Fault.CRASH_AFTER, nth=scene.flip)
        with pytest.raises(Crashed):
            attempt.send(ground)
        ground, store = attempt.faulty()
        store.fail(fault, nth=number)
        ground.catalog.sweep()
        check_always(attempt.root, since=attempt.before)
        ground.catalog.sweep()
        attempt.recover()
        store.deliver()
        check_quiet(attempt.root, since=attempt.before)
        attempt.check_applied_once()

"""A batch over several tables, with a fault at every storage write in turn, in it and in its recovery.

Afterwards it is there as a whole or not at all (invariant 1), the root is sound (2 to 7, 10), recovery leaves nothing
open (11), and every writer can go on (12).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from namespace_server.directory.model.errors import BatchUnknown
from tests.directory.invariants import check_always, check_progress, check_quiet
from tests.directory.scene import KNOWS, MADE, PERSON, Scene, Try, make_scene
from tests.directory.tables import Ground, rows
from tests.steps import SOME_OR_EVERY, numbers
from tests.storage.faults import Crashed, Fault, Write

pytestmark = pytest.mark.slow

CRASHES = [Fault.CRASH_BEFORE, Fault.CRASH_AFTER]
SILENCES = [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.DELAYED]
FOR_EVER = 10**6


@pytest.fixture(scope="module", params=["directory", "bucket"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make_scene(tmp_path_factory.mktemp("scene"), bucket=request.param == "bucket")


SILENT_SCENES = pytest.mark.parametrize(
    "scene", [pytest.param("directory", marks=pytest.mark.long), "bucket"], indirect=True, scope="module"
)
"""Answers are lost on the way to a bucket. What a directory writes otherwise is crashed at each write as well."""


@pytest.fixture
def fresh(scene: Scene, tmp_path: Path) -> Callable[[str], Try]:
    """Roots for the batch to be tried on."""
    return lambda name: scene.copy(tmp_path / name)


def test_the_batch_makes_every_kind_of_write(scene: Scene) -> None:
    """What the tests below break: a batch that wrote less would prove less."""
    kinds = [(write.verb, _kind(write.path)) for write in scene.writes]
    flip = scene.flip
    bundles = [write for write in scene.writes if write.path.endswith(".manifests")]
    assert len(bundles) == scene.bucket  # of the three manifests that the server builds
    assert set(kinds[:flip]) == {
        ("put", "staged manifest"),
        ("put", "transaction file"),
        ("put", "deletion file"),
        ("put", "catalog rows"),
        ("put", "catalog deletions"),
    }
    assert kinds[flip] == ("put_if_absent", "catalog version")
    assert kinds[flip + 1 :] == [("publish", "canonical manifest")] * 4 + [("put_if_absent", "branch file")]
    swept = {(write.verb, _kind(write.path)) for write in scene.sweep_writes}
    assert swept >= {
        ("delete", "staged manifest"),
        ("put", "catalog rows"),
        ("put_if_absent", "catalog version"),
    }


def _kind(path: str) -> str:
    first, _, rest = path.partition("/")
    place = "catalog " if first == "__manifest" else ""
    directory = rest.removeprefix("tree/dev/").partition("/")[0]
    if first == "_staging" or ".manifest-" in path:
        return "staged manifest"
    return {
        "_refs": "branch file",
        "_versions": "catalog version" if place else "canonical manifest",
        "_transactions": "transaction file",
        "_deletions": "catalog deletions" if place else "deletion file",
        "data": f"{place}rows",
    }[directory]


@SOME_OR_EVERY
@pytest.mark.parametrize("fault", CRASHES)
def test_a_crash_at_any_write(scene: Scene, fresh: Callable[[str], Try], fault: Fault, step: int) -> None:
    for number in numbers(len(scene.writes), step, scene.flip):
        write = scene.writes[number]
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
    """Any process recovers: the next batch finishes what it builds on (rules M1, M7: promote before a new version)."""
    for write in scene.writes[scene.flip :]:
        attempt = fresh(f"{write.number}")
        ground, store = attempt.faulty()
        store.fail(fault, nth=write.number)
        with pytest.raises(Crashed):
            attempt.send(ground)

        flipped = write.number > scene.flip or fault is Fault.CRASH_AFTER
        assert attempt.applied() == flipped, f"{fault.name} at {write}"

        ground = attempt.open()
        ground.batch(*(ground.transaction(table, rows(9, 10), 1) for table in (PERSON, KNOWS)))
        check_always(attempt.root, since=attempt.before)  # nothing stands above what is not promoted (M1)
        check_progress(attempt.root)

        assert (4 in ground.ids(PERSON), 1 in ground.ids(KNOWS)) == (flipped, not flipped)


@SOME_OR_EVERY
@pytest.mark.parametrize("fault", CRASHES)
def test_a_crash_at_any_write_of_recovery(scene: Scene, fresh: Callable[[str], Try], fault: Fault, step: int) -> None:
    """Nothing is promoted yet, recovery dies at each of its writes, and the next one finishes."""
    for number in itertools.count(step=step):
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
            assert number >= len(store.writes) > len(scene.sweep_writes), "promotion is part of this recovery"
            break
        check_always(attempt.root, since=attempt.before)
        assert attempt.applied()
        attempt.recover()
        check_quiet(attempt.root, since=attempt.before)
        attempt.check_applied_once()
        check_progress(attempt.root)


@SOME_OR_EVERY
@SILENT_SCENES
@pytest.mark.parametrize("times", [1, FOR_EVER], ids=["once", "for ever"])
@pytest.mark.parametrize(
    ("fault", "late"),
    [*((fault, "before the repeat") for fault in SILENCES), (Fault.DELAYED, "after the repeat")],
)
def test_an_answer_that_does_not_come(
    scene: Scene, fresh: Callable[[str], Try], fault: Fault, times: int, late: str, step: int
) -> None:
    """What is answered agrees with what is there; unknown deletes nothing (F1); a repeat is one application (P1)."""
    outcomes = set()
    for number in numbers(len(scene.writes), step, scene.flip):
        write = scene.writes[number]
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
        if isinstance(error, ServiceUnavailableError) and not isinstance(error, BatchUnknown):
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
        assert BatchUnknown in outcomes


def _from(write: Write) -> Callable[[Write], bool]:
    """This write and all that are made to the same place: names that are unique differ in each run."""
    return lambda made: made.number >= write.number and _kind(made.path) == _kind(write.path)


def _ask(attempt: Try, ground: Ground) -> tuple[dict[str, Any] | None, LanceNamespaceError | None]:
    try:
        return attempt.send(ground), None
    except LanceNamespaceError as error:
        return None, error


@SOME_OR_EVERY
@SILENT_SCENES
@pytest.mark.parametrize("fault", SILENCES)
def test_recovery_that_gets_no_answer(scene: Scene, fresh: Callable[[str], Try], fault: Fault, step: int) -> None:
    """A sweep that a store leaves without an answer has harmed nothing, and another one finishes."""
    for number in numbers(len(scene.sweep_writes) + 3, step):
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


def test_a_table_that_is_dropped_before_its_version_is_promoted(scene: Scene, fresh: Callable[[str], Try]) -> None:
    """The drop promotes it first: an undrop finds it, and the catalog versions before it name it (6, G2, G13)."""
    attempt = fresh("root")
    ground, store = attempt.faulty()
    store.fail(Fault.CRASH_AFTER, nth=scene.flip)
    with pytest.raises(Crashed):
        attempt.send(ground)

    ground = attempt.open()
    ground.call("drop_table", id=MADE)
    ground.catalog.sweep()

    check_quiet(attempt.root, since=attempt.before)
    check_progress(attempt.root)

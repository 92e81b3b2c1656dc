"""A process is held before any of its storage calls while others work and clean up, and then goes on, or dies (G7-G9,
G21, G22).

Each scene is run once per call, but for calls before which it leaves the same as before the one that precedes (see
`Run.is_the_hold_before`). What the others do while it is held is what a minute brings on a busy root: commits, sweeps,
compaction, and stock pylance's own clean-up of the tables and of `__manifest`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import LanceNamespaceError

from lance_core.format.naming import manifest_name
from lance_core.storage.local import LocalStore
from tests.directory.invariants import check_progress, check_quiet
from tests.directory.tables import Ground, rows
from tests.directory.taken_names import TABLE, append_above, take_name
from tests.storage.faults import WRITES, Crashed, Fault, FaultStore

pytestmark = pytest.mark.slow

PERSON, KNOWS = TABLE, ["g", "knows"]
KEY = "held"
DIES = pytest.mark.parametrize(
    ("die", "step"),
    [
        pytest.param(False, 3, id="held at some"),
        pytest.param(False, 1, marks=pytest.mark.long, id="held"),
        pytest.param(True, 1, marks=pytest.mark.long, id="dies"),
    ],
)
"""Whether the call before which the process is held is its last. That it dies at a write, `test_crash` has as well."""


def clean(ground: Ground, *tables: list[str]) -> None:
    """Stock pylance's clean-up of everything that is superseded."""
    for place in ("__manifest", *map(ground.location, tables)):
        lance.dataset(str(ground.root / place)).cleanup_old_versions(older_than=timedelta(0))


def work_and_clean(ground: Ground) -> None:
    """Batches over both tables, sweeps, a compaction, and clean-ups of all of it."""
    for number in range(2):
        table = ground.transaction(PERSON, rows(300 + number, 301 + number))
        other = ground.transaction(KNOWS, rows(400 + number, 401 + number))
        ground.batch(table, other)
        ground.catalog.sweep()
    lance.dataset(namespace_client=ground.namespace, table_id=PERSON).optimize.compact_files()
    ground.catalog.sweep()
    clean(ground, PERSON, KNOWS)
    ground.batch(ground.transaction(PERSON, rows(302, 303)), ground.transaction(KNOWS, rows(402, 403)))
    ground.catalog.flush_record_housekeeping()


def work_only(ground: Ground) -> None:
    """A repair by another process, and batches on what it repaired."""
    ground.catalog.sweep()
    ground.catalog.sweep()
    ground.batch(ground.transaction(PERSON, rows(300, 301)))
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()


@dataclass
class Run:
    """One try at a scene: what the held process does, what the others do, and what has to hold."""

    root: Path
    meanwhile: Callable[[Ground], None]
    verbs: list[str] = field(default_factory=list)
    """The calls of the held process, in order."""

    def hold(self, act: Callable[[Ground], None], at: int, *, die: bool) -> bool:
        """Let a process `act`, held before call `at`; others work meanwhile. `die`: that call is its last.

        False if nothing was held: it made fewer calls, or the run would be the same as the one before.
        """
        store = FaultStore(LocalStore(self.root, "none"))
        ground = Ground(self.root, store)
        ground.catalog.snapshot()
        held = False

        def arrive(verb: str, path: str) -> None:
            nonlocal held
            number = len(self.verbs)
            self.verbs.append(verb)
            if number == at:
                if self.is_the_hold_before(die=die):
                    store.crashed = True
                    return
                held = True
                self.meanwhile(Ground(self.root))
                if die:
                    store.fail(Fault.CRASH_AFTER)
            elif number > at and die:
                store.crashed = True

        store.before(arrive)
        with suppress(Crashed):
            act(ground)
        return held

    def is_the_hold_before(self, *, die: bool) -> bool:
        """Whether to be held before the last call comes to the same as to be held before the call that precedes it.

        What a process read before it dies leaves no trace. This store's `sync` does nothing.
        """
        *_, before, verb = [None, *self.verbs]
        if before is None:
            return False
        return before not in WRITES and verb not in WRITES if die else before == "sync"

    def check(self, *tables: list[str]) -> None:
        """All is as after quiet recovery: two processes sweep, rows of removed versions go, a fresh write works."""
        for _ in range(2):
            ground = Ground(self.root)
            ground.catalog.sweep()
            for table in tables:
                ground.read("list_table_versions", id=table)
            ground.catalog.flush_record_housekeeping()
        newest = ground.catalog.snapshot().version
        check_quiet(self.root, since=newest, cleaned=True)
        for table in tables:
            dataset = ground.open(table)
            for version in dataset.versions():
                dataset.checkout_version(version["version"]).to_table()
        check_progress(self.root, cleaned=True)


def held_everywhere(
    tmp_path: Path,
    root: Path,
    act: Callable[[Ground], None],
    meanwhile: Callable[[Ground], None],
    check: Callable[[Run], None],
    *,
    die: bool,
    step: int,
) -> int:
    """Run a scene held before each of its calls in turn, or before some of them; returns how many there are."""
    at = 0
    while True:
        place = tmp_path / f"held-{at}"
        shutil.copytree(root, place)
        run = Run(place, meanwhile)
        held = run.hold(act, at, die=die)
        if len(run.verbs) <= at:
            return len(run.verbs)
        if held:
            try:
                check(run)
            except BaseException as error:
                error.add_note(f"held before call {at} of {len(run.verbs)}")
                raise
        shutil.rmtree(place)
        at += step


@pytest.fixture
def two_tables(ground: Ground) -> Ground:
    for table in (PERSON, KNOWS):
        ground.make_table(*table)
    ground.write(PERSON, rows(3, 4))
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    return ground


@DIES
def test_a_batch_held_anywhere_is_applied_once_or_not_at_all(
    tmp_path: Path, two_tables: Ground, die: bool, step: int
) -> None:
    answers: list[Exception | None] = []
    operations = [
        two_tables.transaction(PERSON, rows(100, 101)),
        two_tables.transaction(KNOWS, rows(200, 201)),
        {"declare_table": {"id": ["g", "made"]}},
    ]

    def act(ground: Ground) -> None:
        answers.clear()
        try:
            ground.batch(*operations, key=KEY)
            answers.append(None)
        except LanceNamespaceError as error:
            answers.append(error)

    def check(run: Run) -> None:
        ground = Ground(run.root)
        ground.catalog.sweep()
        person, knows = ground.ids(PERSON), ground.ids(KNOWS)
        applied = {
            100 in person,
            200 in knows,
            ground.catalog.snapshot().record_by_key(KEY) is not None,
            ground.catalog.snapshot().table(("g", "made")) is not None,
        }
        assert len(applied) == 1, "1: half of it is there"
        if answers:
            assert applied == {answers.pop() is None}, "3: the answer was another one"
        expected = sorted([0, 1, 2, 3, 300, 301, 302, *([100] if applied == {True} else [])])
        assert sorted(set(person)) == expected, "3: rows are lost"
        assert sorted(set(knows)) == sorted([0, 1, 2, 400, 401, 402, *([200] if applied == {True} else [])])
        assert len(set(person)) == len(person), "3: applied twice"
        if applied == {True}:  # it has no version, and no name for a fresh writer's table
            ground.call("drop_table", id=["g", "made"])
        run.check(PERSON, KNOWS)

    calls = held_everywhere(tmp_path, two_tables.root, act, work_and_clean, check, die=die, step=step)
    assert calls > 20


@DIES
def test_a_repair_held_anywhere_loses_nothing(tmp_path: Path, ground: Ground, die: bool, step: int) -> None:
    ground.make_table(*PERSON)
    ground.catalog.sweep()
    take_name(ground, then=append_above)

    def act(ground: Ground) -> None:
        ground.catalog.sweep()

    def check(run: Run) -> None:
        for _ in range(2):
            Ground(run.root).catalog.sweep()
        assert Ground(run.root).ids(PERSON) == [0, 1, 2, 3, 4, 10, 11, 300]
        run.check(PERSON)

    calls = held_everywhere(tmp_path, ground.root, act, work_only, check, die=die, step=step)
    assert calls > 10


def finish_and_clean(ground: Ground) -> None:
    """All of it, after a sweep that promotes, removes the staged names and closes the record."""
    ground.catalog.sweep()
    work_and_clean(ground)


def hurry(ground: Ground) -> None:
    """The same, but nothing is swept: what was promoted to be answered is superseded while its record is open."""
    for table, first in ((PERSON, 300), (KNOWS, 400)):
        ground.read("list_table_versions", id=table)
        for number in range(3):
            ground.write(table, rows(first + number, first + number + 1))
        lance.dataset(namespace_client=ground.namespace, table_id=table).optimize.compact_files()
    clean(ground, PERSON, KNOWS)


@DIES
@pytest.mark.parametrize("meanwhile", [finish_and_clean, hurry])
def test_a_promotion_held_anywhere_brings_no_removed_version_back(
    tmp_path: Path, two_tables: Ground, meanwhile: Callable[[Ground], None], die: bool, step: int
) -> None:
    """A process finishes what another one had flipped; others finish it first, compact, and clean up (G21)."""
    store = FaultStore(LocalStore(two_tables.root, "none"))
    store.fail(Fault.CRASH_AFTER, when=lambda write: write.path.startswith("__manifest/_versions/"))
    operations = two_tables.transaction(PERSON, rows(4, 6)), two_tables.transaction(KNOWS, rows(4, 6))
    with pytest.raises(Crashed):
        two_tables.again(store).batch(*operations)

    def act(ground: Ground) -> None:
        ground.catalog.sweep()

    def check(run: Run) -> None:
        run.check(PERSON, KNOWS)
        ground = Ground(run.root)
        assert sorted(set(ground.ids(PERSON))) == [0, 1, 2, 3, 4, 5, 300, 301, 302]
        assert sorted(set(ground.ids(KNOWS))) == [0, 1, 2, 4, 5, 400, 401, 402]

    calls = held_everywhere(tmp_path, two_tables.root, act, meanwhile, check, die=die, step=step)
    assert calls > 8


def test_a_staged_name_that_is_left_brings_no_removed_version_back(two_tables: Ground) -> None:
    """M5: the record is open, the manifest is staged, the version was promoted, superseded and removed."""
    two_tables.batch(two_tables.transaction(PERSON, rows(4, 6)))
    two_tables.write(PERSON, rows(6, 7))
    clean(two_tables, PERSON)
    assert two_tables.catalog.snapshot().open_records()

    two_tables.again().catalog.sweep()

    assert two_tables.canonical(PERSON) == [4]
    assert two_tables.ids(PERSON) == list(range(7))


def test_a_branch_that_was_deleted_meanwhile_does_not_get_its_ref_back(two_tables: Ground) -> None:
    """Its creator died before the ref file; a server that is held before it writes that is overtaken by another one."""
    lance.dataset(namespace_client=two_tables.namespace, table_id=PERSON).create_branch("dev")
    two_tables.catalog.sweep()
    [ref] = (two_tables.root / two_tables.location(PERSON) / "_refs").rglob("*.json")
    ref.unlink()
    store = FaultStore(LocalStore(two_tables.root, "none"))
    held = two_tables.again(store)
    snapshot = held.catalog.snapshot()

    def overtake(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.endswith(ref.name):
            go_on()
            other = two_tables.again()
            assert other.catalog.branch_refs.complete(snapshot, tuple(PERSON), "dev", after=timedelta(0))
            two_tables.open(PERSON).branches.delete("dev")

    go_on = store.before(overtake)
    assert held.catalog.branch_refs.complete(snapshot, tuple(PERSON), "dev", after=timedelta(0))

    assert not ref.exists()
    assert two_tables.open(PERSON).branches.list() == {}


@pytest.mark.parametrize("dead", [True, False])
def test_a_head_is_never_gone(ground: Ground, dead: bool) -> None:
    """Its name was taken by a stock writer, another one built on that, and a clean-up removed what had the name."""
    ground.make_table(*PERSON)
    ground.catalog.sweep()
    take_name(ground, then=append_above)
    [taker] = [path for path in ground.root.rglob(f"*/_versions/{2**64 - 3}.manifest") if "__manifest" not in str(path)]
    taker.unlink()
    if dead:
        other = ground.again()
        other.catalog.sweep()
        other.catalog.sweep()
    else:
        ground.again().read("list_table_versions", id=PERSON)
        ground.again().catalog.sweep()

    assert {3, 4} <= set(ground.ids(PERSON)), "3: an acknowledged batch is gone"
    run = Run(ground.root, work_only)
    run.check(PERSON)


def test_a_head_that_gets_its_name_late_is_the_newest_again(ground: Ground) -> None:
    """Meanwhile its name was taken, another version built on that, and a clean-up removed what had the name."""
    ground.make_table(*PERSON)
    ground.catalog.sweep()
    transaction = ground.transaction(PERSON, rows(3, 5))
    name = f"{ground.location(PERSON)}/_versions/{manifest_name(2)}"
    store = FaultStore(LocalStore(ground.root, "none"))
    held = ground.again(store)

    def hold(_verb: str, path: str) -> None:
        if path == name:
            go_on()
            ground.unmanaged_append(PERSON, rows(10, 11))
            append_above(ground)
            (ground.root / name).unlink()

    go_on = store.before(hold)
    held.batch(transaction)

    assert ground.canonical(PERSON) == [1, 2]
    assert ground.ids(PERSON) == list(range(5))


def test_a_version_that_is_promoted_between_two_looks_keeps_its_row(two_tables: Ground) -> None:
    two_tables.batch(two_tables.transaction(PERSON, rows(4, 5)))
    head = two_tables.head(PERSON)
    two_tables.batch(two_tables.transaction(PERSON, rows(5, 6)))
    reader = two_tables.again()
    snapshot = reader.catalog.snapshot()
    entry = snapshot.version_entry(tuple(PERSON), None, head)
    assert entry is not None
    store = reader.store
    listed = store.list

    def late(prefix: str, **options: object):
        found = [meta for meta in listed(prefix, **options) if meta.path != entry.canonical_path]
        store.list = listed
        reader.catalog.promoter.promote([entry], snapshot)
        return iter(found)

    store.list = late
    answer = reader.read("list_table_versions", id=PERSON)

    assert head in [version["version"] for version in answer["versions"]]
    reader.catalog.flush_record_housekeeping()
    assert two_tables.catalog.snapshot().version_entry(tuple(PERSON), None, head) is not None


def test_a_version_that_a_repair_has_quarantined_keeps_its_row(two_tables: Ground) -> None:
    head = two_tables.head(PERSON)
    path = two_tables.root / two_tables.location(PERSON) / "_versions" / f"{2**64 - 1 - head}.manifest"
    two_tables.write(PERSON, rows(5, 6))
    two_tables.catalog.sweep()
    two_tables.catalog.flush_record_housekeeping()
    aside = (
        two_tables.root
        / "_staging/foreign"
        / "a4b1c2d3-0000-4000-8000-000000000000"
        / path.relative_to(two_tables.root)
    )
    aside.parent.mkdir(parents=True)
    path.rename(aside)
    other = two_tables.again()

    listed = other.read("list_table_versions", id=PERSON)["versions"]
    other.catalog.flush_record_housekeeping()
    other.catalog.sweep()

    assert [version["version"] for version in listed] == [1, 2, 3]
    assert path.exists()
    Run(two_tables.root, work_only).check(PERSON)


def test_a_look_behind_removes_no_other_manifest(two_tables: Ground) -> None:
    """Of the name a branch was made anew while the process was held."""
    entry = two_tables.catalog.snapshot().head(tuple(PERSON))
    assert entry is not None
    theirs = two_tables.store.get(entry.canonical_path)
    two_tables.catalog.promoter._take_back(entry, theirs + b"x")
    assert two_tables.store.get(entry.canonical_path) == theirs
    two_tables.catalog.promoter._take_back(entry, theirs)
    assert two_tables.store.find(entry.canonical_path) is None

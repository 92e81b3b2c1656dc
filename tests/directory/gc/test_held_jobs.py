"""A long job is held before its storage calls while two collections pass, more than the grace time apart; or it dies.

The job is a doctor, a run of maintenance, or a transaction of the client with an intent or without. Afterwards each
kept and pinned version is there with its files, no acknowledged batch is lost, and the doctor finds nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import table_data.table_changes
from lance_core.cleanup.reachability import names_used
from lance_core.format.manifest import parse_manifest_file
from lance_core.storage.local import LocalStore
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore
from namespace_client import Catalog, CommitRejected
from namespace_server.directory.doctor import Examination, Severity
from namespace_server.directory.gc.history import copy_versions, list_catalog_versions, needed_versions
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.manifest_reader import is_row
from tests.directory.gc.collecting import collect, forget_history, let_pass
from tests.directory.gc.test_history_is_whole import Rows, check_rows, read_kept
from tests.directory.gc.test_mark import leave_fragment
from tests.directory.tables import Ground, rows
from tests.maintenance.tables import contents, maintain, make_table
from tests.storage.faults import Crashed, FaultStore

pytestmark = pytest.mark.long

T, U, V = ["g", "t"], ["g", "u"], ["g", "v"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with deleted versions, one with six small fragments, a dropped one, a pin, and garbage."""
    ground = Ground(tmp_path_factory.mktemp("jobs") / "root")
    ground.make_namespace("g")
    ground.make_table(*T)
    ground.make_table(*U)
    make_table(ground, *V)
    for first in (3, 6):
        ground.write(T, rows(first, first + 3))
    ground.catalog.sweep()
    ground.call("pin_catalog_version", name="audit")
    ground.write(T, rows(0, 4), "overwrite")
    ground.call("drop_table", id=U)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 4}])
    leave_fragment(ground, T)
    copy_versions(ground.store, list_catalog_versions(ground.store), needed_versions(ground.catalog.snapshot()))
    forget_history(ground)
    let_pass(ground)
    return ground.root


HOUR = timedelta(hours=1)
GRACE = timedelta(days=7)


def two_collections(root: Path) -> None:
    """All files become two hours older, and two collections come whose horizons lie after them."""
    for path in root.rglob("*"):
        written = path.stat().st_mtime - (2 * HOUR).total_seconds()
        os.utime(path, (written, written))
    now = datetime.now(UTC).replace(microsecond=0)
    for time in (now - HOUR, now):
        collector = Collector(Ground(root).catalog, settle=timedelta(0), clock=lambda *_, at=time + GRACE: at)
        collector.collect({"gc.dropped.window": "60d", "gc.catalog.age": "30d"})


class StoreOfAnHourAgo(WrappedStore):
    """Dates objects two hours back, until collections have come: a process remembers dates that it has read."""

    def __init__(self, inner: ObjectStore, is_over: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._is_over = is_over

    def _dated(self, meta: ObjectMeta) -> ObjectMeta:
        return meta if self._is_over() else meta._replace(last_modified=meta.last_modified - 2 * HOUR)

    def head(self, path: str) -> ObjectMeta:
        return self._dated(super().head(path))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        return iter([self._dated(meta) for meta in super().list(prefix, start_after=start_after)])


class Process:
    """A process whose stores, of the catalog and of its tables, share one count of calls.

    Before call number `at` two collections pass. With `die` that call is its last.
    """

    def __init__(self, root: Path, at: int, *, die: bool) -> None:
        self.root = root
        self.calls = 0
        self._at = at
        self._die = die
        self._stores: list[FaultStore] = []

    @property
    def ground(self) -> Ground:
        return Ground(self.root, self.store(LocalStore(self.root, "none")))

    def store(self, inner: ObjectStore) -> FaultStore:
        made = FaultStore(StoreOfAnHourAgo(inner, lambda: self.calls > self._at))
        made.before(self._arrive)
        self._stores.append(made)
        return made

    def _arrive(self, _verb: str, _path: str) -> None:
        number = self.calls
        self.calls += 1
        if number == self._at:
            two_collections(self.root)
        if number > self._at and self._die:
            for store in self._stores:
                store.crashed = True


Job = Callable[[Process], str]


def examines(process: Process) -> str:
    return said(process.store(LocalStore(process.root, "none")))


def said(store: ObjectStore) -> str:
    """What a doctor finds to be wrong."""
    report = Examination(store, sleep=lambda _seconds: None).examine()
    return "" if report.worst is Severity.NOTE else "\n".join(report.lines())


def maintains(process: Process) -> str:
    return answer_of(" ".join(outcome.reason or "done" for outcome in maintain(process.ground).outcomes))


def writes_with_an_intent(process: Process) -> str:
    return writes(process, registered=True)


def writes_without(process: Process) -> str:
    return writes(process, registered=False)


def writes(process: Process, *, registered: bool) -> str:
    with Catalog.connect(process.ground.namespace, namespace=["g"]) as catalog:
        try:
            with catalog.begin() as tx:
                assert all([tx.exists("t"), tx.exists("v")])
                if registered:
                    tx._intent._seconds = int(timedelta(days=30).total_seconds())  # the clock of collections is ahead
                    tx.register_intent()
                tx.append("t", rows(100, 102))
                tx.append("v", rows(100, 102))
        except CommitRejected as error:
            return answer_of(str(error))
    return "done"


def answer_of(text: str) -> str:
    return "stage again" if "stage again" in text else text


def check_whole(root: Path, before: Rows) -> None:
    """Kept catalog versions have the rows they had, and the manifests and files of all of them are there."""
    check_rows(root, before)
    table = ManifestTable(LocalStore(root, "none"))
    newest = table.refresh()
    files = {"/".join(path.parts[-2:]) for path in root.rglob("*") if path.is_file()}
    kept = {*range(newest.collector.oldest, newest.version + 1), *needed_versions(newest)}
    snapshots = [table.kept(version) for version in kept]
    found = {
        row.canonical_path: row
        for snapshot in snapshots
        for table_id in snapshot.all_tables()
        for row in snapshot.versions(table_id, None)
    }
    for path, row in found.items():
        data = (root / path).read_bytes()
        assert is_row(row, data)
        assert set(names_used(parse_manifest_file(data))) <= files, row


def check(root: Path, before: Rows, rows_of_v: pa.Table) -> None:
    ground = Ground(root)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    assert said(ground.store) == ""
    new = [100, 101] if 100 in ground.ids(T) else []
    assert ground.ids(T) == [0, 1, 2, 3, *new]
    assert ground.ids(V)[rows_of_v.num_rows :] == new
    assert contents(ground.open(V)).slice(0, rows_of_v.num_rows) == rows_of_v
    ground.batch(ground.transaction(T, rows(200, 201)))
    ground.call("undrop_table", id=U)
    ground.catalog.sweep()
    collect(ground)
    assert ground.ids(U) == [0, 1, 2]
    check_whole(root, before)


@pytest.mark.parametrize(
    ("job", "step", "die", "answers"),
    [
        (examines, 13, False, {""}),
        (maintains, 12, False, {"done", "stage again"}),
        (maintains, 17, True, {"died"}),
        (writes_with_an_intent, 11, False, {"done"}),
        (writes_with_an_intent, 29, True, {"died"}),
        (writes_without, 12, False, {"done", "stage again"}),
        (writes_without, 29, True, {"died"}),
    ],
)
def test_a_job_is_held_while_collections_pass(
    scene: Path, tmp_path: Path, job: Job, step: int, die: bool, answers: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, rows_of_v = read_kept(scene), contents(Ground(scene).open(V))
    found: set[str] = set()
    for at in range(1, 10_000, step):
        root = tmp_path / f"{at}"
        shutil.copytree(scene, root)
        process = Process(root, at, die=die)
        with monkeypatch.context() as patch:
            over = process.store
            patch.setattr(table_data.table_changes, "open_store", lambda *given, over=over: over(open_store(*given)))
            answer = "died"
            with suppress(Crashed):
                answer = job(process)
        if process.calls <= at:
            break
        found.add(answer)
        try:
            check(root, before, rows_of_v)
        except BaseException as error:
            error.add_note(f"held before call {at} of {process.calls}, which then answered {answer!r}")
            raise
        shutil.rmtree(root)
    assert found == answers

"""What a rejected batch, or a lost attempt, has staged goes with the next sweep; what may be in the catalog stays."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import StorageError
from lance_core.storage.local import LocalStore
from namespace_server.directory.manifest_table.flip import Flip, FlipClaimed, FlipOutcome, FlipSuperseded
from namespace_server.directory.model.errors import BatchUnknown
from tests.directory.tables import Ground, rows
from tests.storage.faults import Fault, FaultStore

T, U = ["g", "t"], ["g", "u"]


@pytest.fixture
def two(ground: Ground) -> Ground:
    """Two tables; everything is promoted and closed."""
    for table in (T, U):
        ground.make_table(*table)
    ground.catalog.sweep()
    return ground


def staged(ground: Ground) -> set[str]:
    """The staged manifests, and the row files of `__manifest` that no version names."""
    store = LocalStore(ground.root, "none")
    found = {meta.path for meta in store.list("_staging") if meta.path.count("/") == 1}
    return found - {"_staging/newest.json"}


def row_files(ground: Ground) -> set[str]:
    return {path.name for path in (ground.root / "__manifest/data").iterdir()}


def named_row_files(ground: Ground) -> set[str]:
    """The row files that some version of `__manifest` names, by stock pylance."""
    import lance

    catalog = lance.dataset(str(ground.root / "__manifest"))
    found = set()
    for version in catalog.versions():
        for fragment in lance.dataset(catalog.uri, version=version["version"]).get_fragments():
            found |= {Path(file.path).name for file in fragment.data_files()}
    return found


def meeting(ground: Ground, where: str, act: Callable[[], object]) -> tuple[Ground, FaultStore]:
    """A server that is held at its first write below `where` until another has acted."""
    store = FaultStore(LocalStore(ground.root, "none"))
    waiting = [act]

    def hold(verb: str, path: str) -> None:
        if waiting and verb.startswith("put") and path.startswith(where):
            waiting.pop()()

    store.before(hold)
    return ground.again(store), store


def check_nothing_left(ground: Ground) -> None:
    assert staged(ground) == set()
    assert row_files(ground) == named_row_files(ground)


def test_a_batch_that_is_rejected_after_it_was_staged(two: Ground) -> None:
    """Another server drops a table while the manifests are written."""
    held, _ = meeting(two, "_staging/", lambda: two.again().call("drop_table", id=U))
    operations = [two.transaction(table, rows(3, 6)) for table in (T, U)]
    with pytest.raises(LanceNamespaceError):
        held.batch(*operations)
    assert staged(two)
    held.catalog.sweep()
    check_nothing_left(two)
    assert two.again().ids(T) == [0, 1, 2]


@pytest.mark.parametrize("by_path", [False, True])
def test_an_attempt_that_is_planned_again(two: Ground, monkeypatch: pytest.MonkeyPatch, by_path: bool) -> None:
    """Another server, or a client by path, commits when the attempt is planned: it is seen beside staging."""
    held = two.again()
    plan, others = held.catalog.committer._planner.plan, [two.transaction(T, rows(3, 6))]

    def meet(*given: Any) -> Any:
        planned = plan(*given)
        if others:
            other = others.pop()
            two.unmanaged_append(T, rows(3, 6)) if by_path else two.again().batch(other)
        return planned

    monkeypatch.setattr(held.catalog.committer._planner, "plan", meet)
    held.batch(*(two.transaction(table, rows(6, 9)) for table in (T, U)))
    held.catalog.sweep()
    held.again().catalog.sweep()
    check_nothing_left(two)
    assert two.ids(T) == list(range(9))
    assert two.ids(U) == [0, 1, 2, 6, 7, 8]


def test_a_flip_that_is_lost(two: Ground) -> None:
    held, _ = meeting(two, "__manifest/_versions/", lambda: two.again().batch(two.transaction(T, rows(3, 6))))
    held.batch(*(two.transaction(table, rows(6, 9)) for table in (T, U)))
    held.catalog.sweep()
    held.again().catalog.sweep()
    check_nothing_left(two)
    assert two.ids(T) == list(range(9))


def test_a_flip_that_the_store_refuses(two: Ground) -> None:
    store = FaultStore(LocalStore(two.root, "none"))

    def refuse(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.startswith("__manifest/_versions/"):
            raise StorageError("permission denied")

    go_on, held = store.before(refuse), two.again(store)
    with pytest.raises(LanceNamespaceError):
        held.batch(*(two.transaction(table, rows(6, 9)) for table in (T, U)))
    go_on()
    held.catalog.sweep()
    check_nothing_left(two)


def test_what_a_flip_wrote_that_is_superseded_stays(two: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its slot was free because a clean-up had removed its version; other processes may have followed it (G9)."""
    held = two.again()
    table, flips = held.catalog.table, list[Flip]()
    claim, prove = table.claim, table.prove

    def claim_later(flip: Flip) -> object:
        flips.append(flip)
        return FlipClaimed(flip, 0.0, 0.0, never_taken=False) if len(flips) == 1 else claim(flip)

    def supersede_first(claimed: FlipClaimed) -> FlipOutcome:
        return FlipSuperseded(table.refresh()) if claimed.flip is flips[0] else prove(claimed)

    monkeypatch.setattr(table, "claim", claim_later)
    monkeypatch.setattr(table, "prove", supersede_first)
    held.batch(*(two.transaction(each, rows(6, 9)) for each in (T, U)))
    held.catalog.sweep()
    assert all((two.root / path).exists() for path, _ in flips[0].files)
    assert len(staged(two)) == 2


def test_each_is_removed_once_and_transaction_files_stay(two: Ground) -> None:
    """Another process may be committing the same transaction."""
    held, store = meeting(two, "_staging/", lambda: two.again().call("drop_table", id=U))
    before = set(two.root.rglob("*.txn"))
    with pytest.raises(LanceNamespaceError):
        held.batch(*(two.transaction(table, rows(3, 6)) for table in (T, U)))
    written = set(two.root.rglob("*.txn")) - before
    for _ in range(2):
        held.catalog.sweep()
    deleted = [each.path for each in store.writes if each.verb == "delete"]
    assert deleted
    assert len(deleted) == len(set(deleted))
    assert written
    assert all(path.exists() for path in written)


def test_a_full_disk(two: Ground) -> None:
    store = FaultStore(LocalStore(two.root, "none"))
    full = StorageError("no space")
    full.__cause__ = OSError(errno.ENOSPC, "no space")

    def refuse(verb: str, path: str) -> None:
        if verb.startswith("put") and path.startswith("__manifest/data/"):
            raise full

    store.before(refuse)
    held = two.again(store)
    with pytest.raises(LanceNamespaceError, match="nothing was done"):
        held.batch(*(two.transaction(table, rows(6, 9)) for table in (T, U)))
    assert staged(two)
    held.catalog.sweep()
    check_nothing_left(two)


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST])
def test_what_may_be_committed_stays(two: Ground, fault: Fault) -> None:
    """The flip is not answered, and the catalog cannot be read: the outcome is unknown."""
    store = FaultStore(LocalStore(two.root, "none"))
    held = two.again(store)
    before = two.catalog.snapshot().version
    operations = [two.transaction(table, rows(3, 6)) for table in (T, U)]
    store.fail(fault, when=lambda write: write.path.startswith("__manifest/_versions/"), times=99)
    down: list[bool] = []

    def fail(verb: str, path: str) -> None:
        if down:
            raise StorageError("unreachable")
        if verb == "put_if_absent" and path.startswith("__manifest/_versions/"):
            down.append(True)

    store.before(fail)
    with pytest.raises(BatchUnknown):
        held.batch(*operations)
    down.clear()
    left = staged(two)
    files = row_files(two)
    assert len(left) == 2
    held.catalog.sweep()
    assert row_files(two) >= files
    committed = two.again().catalog.snapshot().version > before
    assert committed == (fault is Fault.LOST_ANSWER)
    if committed:  # and promoted by the sweep
        assert two.ids(T) == two.ids(U) == list(range(6))
        two.open(T).validate()
    else:
        assert staged(two) == left


def test_a_removal_that_fails_is_no_problem(two: Ground) -> None:
    held, store = meeting(two, "_staging/", lambda: two.again().call("drop_table", id=U))
    with pytest.raises(LanceNamespaceError):
        held.batch(*(two.transaction(table, rows(3, 6)) for table in (T, U)))

    def refuse(verb: str, _path: str) -> None:
        if verb == "delete":
            raise StorageError("not now")

    store.before(refuse)
    held.catalog.sweep()
    assert staged(two)
    held.make_namespace("h")

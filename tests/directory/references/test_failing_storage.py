"""Storage that refuses calls while a tag, a branch or a note is changed: the answer says whether nothing was done."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import StorageError, StorageUnknown
from lance_core.storage.local import LocalStore
from namespace_server.outcomes import outcome_of
from tests.directory.tables import Ground, rows
from tests.storage.faults import WRITES, FaultStore

T = ["g", "t"]


class Change(NamedTuple):
    operation: str
    request: dict[str, Any]


def note(*parts: str) -> dict[str, Any]:
    return {"id": list(parts), "actions": [{"setPropertyAction": {"key": "k", "value": "v"}}]}


CHANGES = {
    "create a tag": Change("create_table_tag", {"id": T, "tag": "new", "version": 2}),
    "move a tag": Change("update_table_tag", {"id": T, "tag": "old", "version": 2}),
    "delete a tag": Change("delete_table_tag", {"id": T, "tag": "old"}),
    "delete a branch": Change("delete_table_branch", {"id": T, "name": "dev"}),
    "note on a transaction": Change("alter_transaction", note(*T, "1")),
    "note on a transaction with notes": Change("alter_transaction", note(*T, "2")),
    "note on a batch": Change("alter_transaction", {}),
}
REASONS = [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """A table with two versions, a tag, a branch and a note."""
    ground = Ground(tmp_path_factory.mktemp("scene") / "root")
    ground.make_namespace("g")
    ground.make_table(*T)
    ground.write(T, rows(3, 5))
    made = ground.namespace.change("create_table_tag", {"id": T, "tag": "old", "version": 1}).body
    CHANGES["note on a batch"].request.update(note(made["transaction_id"]))
    ground.call("create_table_branch", id=T, name="dev")
    actions = [{"setPropertyAction": {"key": "first", "value": "v"}}]
    ground.namespace.change("alter_transaction", {"id": [*T, "2"], "actions": actions})
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    return ground


def state(root: Path) -> dict[str, object]:
    """What a change of these changes, as another process reads it."""
    ground = Ground(root)
    noted = CHANGES["note on a batch"].request["id"]
    return {
        "tags": {name: tag["version"] for name, tag in ground.read("list_table_tags", id=T)["tags"].items()},
        "branches": ground.read("list_table_branches", id=T)["branches"],
        **{
            " ".join(parts): ground.read("describe_transaction", id=parts)["properties"].get("k")
            for parts in ([*T, "1"], [*T, "2"], noted)
        },
    }


def outcomes(
    scene: Ground, tmp_path: Path, change: Change, fails: Callable[[int, int], bool], code: int
) -> Iterator[tuple[str, dict[str, object], str, list[tuple[str, str]]]]:
    """Make the change with call `n` failing, for each n: the call, the state after it, what was answered, the calls."""
    number = 0
    while True:
        root = tmp_path / f"{number}"
        shutil.copytree(scene.root, root)
        store = FaultStore(LocalStore(root, "none"))
        ground = Ground(root, store)
        calls: list[tuple[str, str]] = []

        def fail(verb: str, path: str) -> None:
            calls.append((verb, path))  # noqa: B023
            if fails(len(calls) - 1, number):  # noqa: B023
                raise StorageError(f"{path}: no") from OSError(code, os.strerror(code))

        store.before(fail)
        try:
            ground.namespace.change(change.operation, change.request)
        except ServiceUnavailableError as error:
            answer = f"{outcome_of(error)}: {error}"
        except LanceNamespaceError as error:
            raise AssertionError(f"{calls[number]}: a fault of storage is no verdict") from error
        else:
            answer = "done"
        if number >= len(calls):
            return
        yield " ".join(calls[number]), state(root), answer, calls
        shutil.rmtree(root)
        number += 1


@pytest.mark.parametrize("fails", [lambda call, n: call == n, lambda call, n: call >= n], ids=["once", "for ever"])
@pytest.mark.parametrize("what", CHANGES)
def test_what_is_answered_is_what_is_there(
    scene: Ground, tmp_path: Path, what: str, fails: Callable[[int, int], bool]
) -> None:
    before = state(scene.root)
    done = tmp_path / "done"
    shutil.copytree(scene.root, done)
    Ground(done).namespace.change(*CHANGES[what])
    after = state(done)
    assert after != before
    counts: Counter[str] = Counter()
    for call, now, answer, _ in outcomes(scene, tmp_path, CHANGES[what], fails, errno.ENOSPC):
        if answer == "done":
            assert now == after, call
            counts["done"] += 1
        elif answer.startswith("nothing_done: "):
            assert os.strerror(errno.ENOSPC) in answer, (call, answer)
            assert now == before, (call, answer)
            counts["nothing"] += 1
        else:
            assert answer.startswith("unknown: "), (call, answer)
            # The deletion of a tag is recorded before its file goes, and does not count as done before it went.
            assert now != before or what == "delete a tag", f"{call}: nothing was done, and it said {answer}"
            counts["unknown"] += 1
    assert counts["nothing"] > 3, counts


@pytest.mark.parametrize("code", REASONS, ids=[errno.errorcode[code] for code in REASONS])
@pytest.mark.parametrize("what", CHANGES)
def test_a_first_write_that_is_refused_is_told_with_its_reason(
    scene: Ground, tmp_path: Path, what: str, code: int
) -> None:
    root = tmp_path / "root"
    shutil.copytree(scene.root, root)
    store = FaultStore(LocalStore(root, "none"))

    def refuse(verb: str, path: str) -> None:
        if verb in WRITES:
            raise StorageError(f"{path}: no") from OSError(code, os.strerror(code))

    store.before(refuse)
    with pytest.raises(ServiceUnavailableError, match=f"nothing was done: .*: {os.strerror(code)}"):
        Ground(root, store).namespace.change(*CHANGES[what])
    assert state(root) == state(scene.root)


@pytest.mark.parametrize("what", [what for what in CHANGES if "transaction" in what or "create" in what])
def test_a_first_write_that_is_not_answered_leaves_the_outcome_unknown(
    scene: Ground, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_core.commit.slot.LONGEST_WAIT", 0.0)
    root = tmp_path / "root"
    shutil.copytree(scene.root, root)
    store = FaultStore(LocalStore(root, "none"))

    def lose(verb: str, path: str) -> None:
        if verb in WRITES:
            raise StorageUnknown(f"{path}: no answer")

    store.before(lose)
    with pytest.raises(ServiceUnavailableError, match="the outcome is unknown"):
        Ground(root, store).namespace.change(*CHANGES[what])

"""Unmanaged commits under the names of committed versions (M6): the repair dies at each of its writes.

A batch has flipped and is not promoted. Two stock writers, without the catalog, commit by URI: one takes the batch's
number, the other builds on it. What the catalog committed stands (3), what they committed does not disappear (13),
and no writer is stuck (12).
"""

from __future__ import annotations

import itertools
import shutil
import uuid
from dataclasses import replace
from pathlib import Path

import lance
import orjson
import pytest

from lance_core.errors import StorageError
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.storage.local import LocalStore
from tests.directory.invariants import check_progress, check_quiet
from tests.directory.tables import QUIET, Ground, rows
from tests.directory.taken_names import TABLE, append_above, delete_above, take_name
from tests.steps import SOME_OR_EVERY
from tests.storage.faults import Crashed, Fault, FaultStore


def _reports(ground: Ground) -> list[dict[str, object]]:
    records = ground.again().catalog.snapshot().records()
    return [orjson.loads(record.results) for record in records if record.state == "foreign"]


@pytest.mark.slow
@SOME_OR_EVERY
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_crash_at_any_write_of_the_repair(tmp_path: Path, ground: Ground, fault: Fault, step: int) -> None:
    ground.make_table(*TABLE)
    ground.catalog.sweep()
    take_name(ground, then=append_above)
    for number in itertools.count(step=step):
        root = tmp_path / f"{number}"
        shutil.copytree(ground.root, root)
        store = FaultStore(LocalStore(root, "none"))
        store.fail(fault, nth=number)
        try:
            Ground(root, store).catalog.sweep()
        except Crashed:
            pass
        else:
            break
        again = Ground(root)
        again.catalog.sweep()
        again.catalog.sweep()

        assert again.ids(TABLE) == [0, 1, 2, 3, 4, 10, 11], f"{fault.name} at {store.writes[-1]}"
        assert {report["path"] for report in _reports(again)} == _names(again, 2, 3), store.writes[-1]
        check_quiet(root)
        check_progress(root)
    assert number > 10


def _names(ground: Ground, *versions: int) -> set[str]:
    return {f"{ground.location(TABLE)}/_versions/{2**64 - 1 - version}.manifest" for version in versions}


def test_nothing_is_lost_where_a_fence_does_not_hold(ground: Ground) -> None:
    """Nobody looks for what was committed around the catalog until its name is needed."""
    ground.make_table(*TABLE)
    ground.catalog.sweep()
    fenced = Ground(ground.root, options=replace(QUIET, sole_writer=True))
    for start in (10, 11):
        lance.write_dataset(rows(start, start + 1), str(ground.root / ground.location(TABLE)), mode="append")
    assert fenced.head(TABLE) == 1

    fenced.batch(fenced.transaction(TABLE, rows(20, 21), 1))
    fenced.catalog.sweep()
    fenced.catalog.sweep()

    assert fenced.ids(TABLE) == [0, 1, 2, 10, 11, 20]
    check_quiet(ground.root)
    check_progress(ground.root)


def test_a_version_built_on_the_taken_name_follows_it(ground: Ground) -> None:
    """Its fragments have the numbers of ours: its deletion as it is would remove what the catalog committed."""
    ground.make_table(*TABLE)
    take_name(ground, then=delete_above)

    again = ground.again()
    again.catalog.sweep()
    again.catalog.sweep()

    assert {3, 4} <= set(again.ids(TABLE)), "3: an acknowledged batch is gone"
    assert again.ids(TABLE) == [0, 1, 2, 3, 4]
    assert {report["path"] for report in _reports(again)} == _names(again, 2, 3)
    check_quiet(ground.root)
    check_progress(ground.root)


@pytest.mark.parametrize("operation", ["describe_table_version", "list_table_versions"])
def test_nothing_is_adopted_above_a_name_that_is_taken(ground: Ground, operation: str) -> None:
    """The same, met by a read of the head, which adopts what is above it."""
    ground.make_table(*TABLE)
    ground.catalog.sweep()
    store = FaultStore(LocalStore(ground.root, "none"))
    ground = ground.again(store)

    def refuse(verb: str, path: str) -> None:
        if verb == "publish":
            raise StorageError(f"{path}: not now")

    allow = store.before(refuse)
    ground.batch(ground.transaction(TABLE, rows(3, 5)))
    allow()
    ground.unmanaged_append(TABLE, rows(10, 11))
    delete_above(ground)

    ground.read(operation, id=TABLE)

    assert ground.head(TABLE) == 2
    ground.catalog.sweep()
    ground.catalog.sweep()
    assert ground.ids(TABLE) == [0, 1, 2, 3, 4]
    check_quiet(ground.root)
    check_progress(ground.root)


def test_a_version_built_on_the_row_is_not_unmanaged(ground: Ground) -> None:
    """Ours was promoted and built upon; then a stock reader copied a stale file over its name (C7)."""
    ground.make_table(*TABLE)
    transaction = ground.transaction(TABLE, rows(3, 5))
    ground.batch(transaction)
    [name] = _names(ground, 2)
    ours = (ground.root / name).read_bytes()
    ground.unmanaged_append(TABLE, rows(11, 12))
    (ground.root / name).unlink()
    [third] = _names(ground, 3)
    built = (ground.root / third).read_bytes()
    (ground.root / third).unlink()
    lance.write_dataset(rows(10, 11), str(ground.root / ground.location(TABLE)), mode="append")
    assert (ground.root / name).read_bytes() != ours
    (ground.root / third).write_bytes(built)

    again = ground.again()
    again.catalog.sweep()
    again.batch(again.transaction(TABLE, rows(20, 21), 1))
    again.catalog.sweep()

    assert again.ids(TABLE) == [0, 1, 2, 3, 4, 10, 11, 20]
    assert {report["path"] for report in _reports(again)} == _names(again, 2)
    check_quiet(ground.root)


@pytest.mark.parametrize("are_there", [True, False])
def test_a_version_in_quarantine_is_put_back_if_its_files_are_there(ground: Ground, are_there: bool) -> None:
    """A clean-up removed the others."""
    ground.make_table(*TABLE)
    ground.write(TABLE, rows(7, 8), "overwrite")
    ground.catalog.sweep()
    first = ground.root / ground.location(TABLE) / "_versions" / manifest_name(1)
    aside = ground.root / f"_staging/foreign/{uuid.UUID(int=1)}" / first.relative_to(ground.root)
    aside.parent.mkdir(parents=True)
    if not are_there:
        for fragment in ground.open(TABLE, 1).get_fragments():
            for file in fragment.data_files():
                (first.parent.parent / "data" / file.path).unlink()
    first.rename(aside)
    ground.again().catalog.sweep()
    assert (first.exists(), aside.exists()) == (are_there, not are_there)


def test_another_manifest_with_the_transaction_of_a_row_is_not_put_back(ground: Ground) -> None:
    """A client committed its transaction by path as well, as the same version."""
    ground.make_table(*TABLE)
    ground.write(TABLE, rows(3, 5))
    ground.catalog.sweep()
    [name] = _names(ground, 2)
    ours = (ground.root / name).read_bytes()
    file = parse_manifest_file(ours)
    file.manifest.timestamp.seconds += 1
    aside = ground.root / f"_staging/foreign/{uuid.UUID(int=1)}" / name
    aside.parent.mkdir(parents=True)
    aside.write_bytes(encode_manifest_file(file.manifest, file.transaction, file.indices))
    for _ in range(2):
        ground.again().catalog.sweep()
    assert (ground.root / name).read_bytes() == ours
    assert aside.exists()
    assert {report["path"] for report in _reports(ground)} == {name}
    assert ground.ids(TABLE) == [0, 1, 2, 3, 4]

"""After any history the orphans are the files on storage less those that pylance needs, and can go."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance.fragment import write_fragments
from lance_namespace.errors import InvalidInputError, LanceNamespaceError

from tests.directory.gc.unreferenced import check_and_remove
from tests.directory.tables import Ground, rows

T, U = ["g", "t"], ["g", "u"]


class History:
    """Two tables, and what may happen to the first."""

    def __init__(self, root: Path) -> None:
        self.ground = Ground(root)
        self.ground.make_namespace("g")
        self.ground.make_table(*T)
        self.ground.make_table(*U)
        self.next = 100

    @property
    def table(self) -> lance.LanceDataset:
        return lance.dataset(namespace_client=self.ground.namespace, table_id=T)

    @property
    def uri(self) -> str:
        return str(self.ground.root / self.ground.location(T))

    def new_rows(self) -> pa.Table:
        self.next += 3
        return rows(self.next, self.next + 3)

    def append(self) -> None:
        self.ground.write(T, self.new_rows())

    def overwrite(self) -> None:
        self.ground.write(T, self.new_rows(), "overwrite")

    def append_around_the_catalog(self) -> None:
        self.ground.unmanaged_append(T, self.new_rows())

    def delete(self) -> None:
        self.table.delete(f"id % 3 = {self.next % 3}")

    def upsert(self) -> None:
        found = self.table.to_table()["id"].to_pylist()[:1]
        changed = pa.concat_tables([rows(found[0], found[0] + 1) if found else rows(0, 0), self.new_rows()])
        self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(changed)

    def compact(self) -> None:
        self.table.optimize.compact_files()

    def index(self) -> None:
        self.table.create_scalar_index("id", "BTREE", replace=True)

    def restore(self) -> None:
        old = self.table
        old.checkout_version(max(1, old.version - 1)).restore()

    def tag(self) -> None:
        self.next += 1
        self.table.tags.create(f"t{self.next}", self.table.version)

    def branch(self) -> None:
        self.next += 1
        name = f"dev/{self.next}"
        self.ground.call("create_table_branch", id=T, name=name)
        lance.write_dataset(self.new_rows(), f"{self.uri}/tree/{name}", mode="append")

    def drop_branch(self) -> None:
        names = sorted(self.table.branches.list())
        if names:
            self.ground.namespace.delete_table_branch({"id": T, "name": names[0]})

    def clean_up(self) -> None:
        if self.table.branches.list():
            return  # stock clean-up removes deletion files that branches need
        with suppress(OSError):  # stock clean-up reads versions that the catalog has deleted
            self.table.cleanup_old_versions(retain_versions=2, error_if_tagged_old_versions=False)

    def delete_versions(self) -> None:
        end = self.ground.head(T) - 2
        if end > 0:  # without a head the table gets a new location
            ranges = [{"start_version": 1, "end_version": end}]
            self.ground.call("batch_delete_table_versions", id=T, ranges=ranges)

    def drop(self) -> None:
        self.ground.call("drop_table", id=T)
        self.ground.make_table(*T)

    def batch(self) -> None:
        both = [self.ground.transaction(table, self.new_rows()) for table in (T, U)]
        self.ground.batch(*both)

    def rejected_batch(self) -> None:
        staged = [self.ground.transaction(U, self.new_rows()), self.ground.stage(T, self.new_rows())]
        wrong = {"assert_table_version": {"id": U, "version": 1_000}}
        with pytest.raises(LanceNamespaceError):
            self.ground.batch(*staged, wrong)

    def aborted_write(self) -> None:
        write_fragments(self.new_rows(), self.uri, mode="append")

    def aborted_stage(self) -> None:
        self.ground.stage(T, self.new_rows())

    def lost_race(self) -> None:
        late = self.table
        self.delete()
        self.ground.write(T, self.new_rows(), "overwrite")
        with suppress(OSError, RuntimeError, ValueError):
            late.update({"name": "'late'"})


STEPS = [name for name, member in vars(History).items() if callable(member) and not name.startswith("_")]
STEPS.remove("new_rows")


def play(place: Path, steps: list[str]) -> None:
    history = History(place / "root")
    for step in steps:
        act: Callable[[], Any] = getattr(history, step)
        with suppress(InvalidInputError):  # versions that a tag or branch needs cannot be deleted
            act()
        history.ground.catalog.sweep()
    check_and_remove(history.ground.root)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(STEPS), min_size=4, max_size=14))
def test_orphans_are_what_pylance_does_not_need(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        play(Path(place), steps)


def test_every_step_once(tmp_path: Path) -> None:
    play(tmp_path, STEPS)

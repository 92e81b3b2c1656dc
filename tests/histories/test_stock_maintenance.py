"""Stock clients clean up, compact, tag and branch beside a server and a collector whose horizon is always now."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path

import lance
from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import LanceCoreError
from lance_core.storage.local import LocalStore
from tests.directory.gc.unreferenced import list_orphans
from tests.directory.tables import Ground, rows
from tests.histories.collections import collect_now, collect_rest

TABLES = [["g", "t"], ["g", "u"]]
SECONDS = 8.0
MOST = 120.0
"""Seconds on a machine that is busy with other work."""
KINDS = {"batch", "compact", "clean", "tag", "branch", "collection"}


def _new_cleaners() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def _clean(uri: str, kept: int) -> None:
    lance.dataset(uri).cleanup_old_versions(older_than=None, retain_versions=kept)


class Stage:
    """A root on which actors work until the time is over, and each of `KINDS` was done.

    `done` counts what they did, `rows` has what was acknowledged.
    """

    def __init__(self, root: Path) -> None:
        self.ground = Ground(root)
        self.done: Counter[str] = Counter()
        self.errors: list[BaseException] = []
        self.rows: dict[str, set[int]] = {}
        self.uris: dict[str, str] = {}
        self.ground.make_namespace("g")
        for table in TABLES:
            self.ground.make_table(*table)
            self.rows[table[1]] = {0, 1, 2}
            self.uris[table[1]] = str(root / self.ground.location(table))
        self.ground.catalog.sweep()
        self._over = threading.Event()
        self._cleaners = _new_cleaners()
        self._replacing = threading.Lock()

    def run(self, *actors: Callable[[random.Random], str]) -> None:
        threads = [threading.Thread(target=self._act, args=(actor, number)) for number, actor in enumerate(actors)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        while (taken := time.monotonic() - began) < SECONDS or (taken < MOST and not set(self.done) >= KINDS):
            time.sleep(0.1)
        self._over.set()
        for thread in threads:
            thread.join()
        self._cleaners.shutdown()
        if self.errors:
            raise self.errors[0]

    def _act(self, actor: Callable[[random.Random], str], number: int) -> None:
        chance = random.Random(number)
        while not self._over.is_set():
            try:
                self.done[actor(chance)] += 1
            except (LanceNamespaceError, LanceCoreError, OSError, ValueError, RuntimeError) as error:
                self.done[f"refused {actor.__name__}"] += 1  # overtaken: a conflict, or a version that went
                if "panic" in str(error):
                    self.errors.append(error)
            except BaseException as error:
                self.errors.append(error)
                raise
            time.sleep(chance.uniform(0, 0.02))

    def commit(self, chance: random.Random) -> str:
        """A batch of appends to both tables."""
        ground, first = self.ground.again(), chance.randrange(10**12)
        ground.batch(*(ground.transaction(table, rows(first, first + 2)) for table in TABLES))
        for table in TABLES:
            self.rows[table[1]] |= {first, first + 1}
        ground.catalog.sweep()
        return "batch"

    def maintain(self, chance: random.Random) -> str:
        """What stock clients do to look after a table: compaction through the catalog, the rest by path."""
        table = chance.choice(TABLES)
        dataset = lance.dataset(self.uris[table[1]])
        what = chance.choice(["compact", "clean", "tag", "untag", "branch", "branch"])
        if what == "compact":
            lance.dataset(namespace_client=self.ground.again().namespace, table_id=table).optimize.compact_files()
        elif what == "clean":
            self._clean(self.uris[table[1]], chance.randrange(2, 5))
        elif what == "tag":
            dataset.tags.create(f"tag{chance.randrange(10**6)}", chance.choice(dataset.versions())["version"])
        elif what == "untag" and (tags := list(dataset.tags.list())):
            dataset.tags.delete(chance.choice(tags))
        elif what == "branch":
            self._branch(chance, table)
        return what

    def _branch(self, chance: random.Random, table: list[str]) -> None:
        namespace, name = self.ground.again().namespace, f"b{chance.randrange(3)}"
        try:
            namespace.change("delete_table_branch", {"id": table, "name": name})
        except LanceNamespaceError:
            namespace.write("create_table_branch", {"id": table, "name": name})

    def _clean(self, uri: str, kept: int) -> None:
        """Clean up in a process of its own: a thread of pylance once overflowed its stack in this test."""
        cleaners = self._cleaners
        try:
            cleaners.submit(_clean, uri, kept).result()
        except BrokenProcessPool as error:
            with self._replacing:
                if self._cleaners is cleaners:
                    self._cleaners = _new_cleaners()
            raise RuntimeError("the process of a clean-up died") from error

    def collect(self, chance: random.Random) -> str:
        collect_now(LocalStore(self.ground.root, "none"), everywhere=chance.random() < 0.5)
        return "collection"


def test_stock_clients_look_after_tables_beside_a_collector(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "root")
    stage.run(stage.commit, stage.commit, stage.maintain, stage.maintain, stage.collect)
    assert set(stage.done) >= KINDS, stage.done
    ground = stage.ground.again()
    for table in TABLES:
        with suppress(LanceNamespaceError):
            ground.read("list_table_versions", id=table)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    for table in TABLES:
        dataset = ground.open(table)
        dataset.validate()
        found = dataset.to_table()["id"].to_pylist()
        assert len(found) == len(set(found))
        assert set(found) >= stage.rows[table[1]], stage.done
        for tag in dataset.tags.list():
            dataset.checkout_version(tag).validate()
            assert dataset.checkout_version(tag).to_table().num_rows
        for branch in dataset.branches.list():
            dataset.checkout_version((branch, None)).validate()
    collect_rest(ground.root)
    collect_rest(ground.root)
    report = list_orphans(ground.root)
    assert (report.orphans, report.not_judged) == ((), {})
    for table in TABLES:
        ground.again().write(table, rows(1, 2))
        ground.open(table).validate()

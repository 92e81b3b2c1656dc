"""Deletes the objects of stored plans (rules G17 and G27).

Before the manifest of an expired version is deleted a copy of it is written,

    _staging/gc/<run>/expiring/<uuid>/<former key>

and one that a reference names by the time it is gone is put back. Until that is decided its files stay: a run that
finds no manifest looks for copies afterwards, as the mark phase does below `_staging/`. The process that wrote a copy
deletes it if it does not put the manifest back. Others go a day later, with the files of the run.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final

from lance_core.cleanup.reachability import file_name, read_needs
from lance_core.errors import AlreadyExists, CorruptFile, NotFound, StorageError, StorageUnknown
from lance_core.storage.port import ObjectMeta, ObjectStore
from namespace_server.directory.gc.directories import place_of_manifest
from namespace_server.directory.gc.lost_versions import references_of
from namespace_server.directory.gc.plan import (
    Deleted,
    Removal,
    finish_plan,
    plans_up_to,
    read_plan,
    remove_all,
    run_of,
)
from namespace_server.directory.gc.report import EXPIRED, SUPERSEDED
from namespace_server.directory.model.root_layout import EXPIRING, GC_RUNS
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.observability.observation import Progress

_MANIFESTS_AT_ONCE: Final = 64
_FILES_AT_ONCE: Final = 1_024


@dataclass(slots=True)
class Budget:
    """How much a run may do; None is without bound. Counts down."""

    removals: int | None = None
    until: float | None = None
    """By `time.monotonic`."""

    @property
    def is_spent(self) -> bool:
        """Whether the run ends here; the next one goes on with its plans."""
        return (self.removals is not None and self.removals <= 0) or (
            self.until is not None and time.monotonic() > self.until
        )

    def spend(self, removals: int) -> None:
        """Note that so many objects were dealt with."""
        if self.removals is not None:
            self.removals -= removals


class Deleter:
    """Carries out plans.

    By `snapshot`, any of the catalog, it finds the manifests that stay beside expired ones. `newest` is the key of the
    newest version of the catalog. `progress` is called with the files of each plan.

    Attributes:
        outcome: What became of the objects.
        damaged: By the keys of plans that could not be read, why.
    """

    def __init__(
        self,
        store: ObjectStore,
        snapshot: CatalogSnapshot,
        newest: str,
        budget: Budget,
        progress: Progress,
    ) -> None:
        self.outcome = Deleted()
        self.damaged: dict[str, str] = {}
        self._newest = newest
        self._store = store
        self._snapshot = snapshot
        self._budget = budget
        self._progress = progress
        self._begun: set[str] = set()

    def carry_out(self, plans: Sequence[str]) -> bool:
        """Delete the objects of these plans, in order; True if all of them are done. Raises `StorageError`.

        A damaged plan is given up, and so are those of its run that follow and have files: manifests that it names may
        need them. All of it is found anew.
        """
        for key in plans:
            try:
                if not self._carry_out(key):
                    return False
            except CorruptFile as error:
                self.damaged[key] = str(error)
                finish_plan(self._store, key)
        return True

    def forget(self, keys: Sequence[str]) -> None:
        """Remove files of runs that are done. What the store refuses to remove stays, and is reported."""
        try:
            self._store.delete_all(keys)
        except StorageUnknown:
            raise
        except StorageError as error:
            self.outcome.refused[keys[0]] = str(error)

    def _carry_out(self, plan: str) -> bool:
        removals = read_plan(self._store, plan)
        expired = [item for item in removals if item.reason == EXPIRED]
        superseded = [item for item in removals if item.reason == SUPERSEDED]
        others = [item for item in removals if item.reason not in {EXPIRED, SUPERSEDED}]
        for location, items in groupby(expired, lambda item: item.path.partition("/")[0]):
            group = list(items)
            for first in range(0, len(group), _MANIFESTS_AT_ONCE):
                if self._budget.is_spent:
                    return False
                self._remove_versions(run_of(plan), location, group[first : first + _MANIFESTS_AT_ONCE])
        for first in range(0, len(superseded), _MANIFESTS_AT_ONCE):
            if self._budget.is_spent:
                return False
            self._progress("delete", len(expired) + first, len(removals), "files")
            self._remove_catalog_versions(superseded[first : first + _MANIFESTS_AT_ONCE])
        self._begun.add(plan)
        needed = self._needs_of_standing(plan) if others else frozenset()
        for first in range(0, len(others), _FILES_AT_ONCE):
            if self._budget.is_spent:
                return False
            self._progress("delete", len(expired) + len(superseded) + first, len(removals), "files")
            part = others[first : first + _FILES_AT_ONCE]
            going = [item for item in part if _name_of(item) not in needed]
            self.outcome.kept += (item.path for item in part if _name_of(item) in needed)
            remove_all(self._store, going, self.outcome)
            self._budget.spend(len(part))
        finish_plan(self._store, plan)
        return True

    def _needs_of_standing(self, plan: str) -> frozenset[str]:
        """The names that manifests need which are there nevertheless: of this plan and those before it.

        A reference named an expired version after it was planned, or it was put back, or another run may put it back:
        it has written a copy before it removed it, so copies are looked at afterwards. A version of the catalog that
        the store did not remove keeps its rows.
        """
        planned = [(key, item) for key in plans_up_to(plan) for item in read_plan(self._store, key)]
        expired = [item for _, item in planned if item.reason == EXPIRED]
        superseded = [
            item
            for key, item in planned
            if item.reason == SUPERSEDED and (key not in self._begun or item.path in self.outcome.refused)
        ]
        if not expired and not superseded:
            return frozenset()
        needed: set[str] = set()
        standing = (ObjectMeta(item.path, item.size, None, item.written) for item in (*expired, *superseded))
        for meta, data in self._read(standing):
            needed |= read_needs(self._store, meta, data)[1]
        for meta, data in self._read(_copies_of(self._store, {item.path for item in expired})):
            needed |= read_needs(self._store, meta, data)[1]
        return frozenset(needed)

    def _read(self, metas: Iterable[ObjectMeta]) -> Iterator[tuple[ObjectMeta, bytes]]:
        """Those of the objects that are there, with their bytes."""
        left = iter(metas)
        while part := list(islice(left, _MANIFESTS_AT_ONCE)):
            for meta, data in zip(part, self._store.map(self._find, [meta.path for meta in part]), strict=True):
                if data is not None:
                    yield meta, data

    def _remove_versions(self, run: str, location: str, removals: Sequence[Removal]) -> None:
        """Remove manifests of expired versions, none that a reference names.

        References are read again afterwards, and a manifest that was named meanwhile is put back. Its files are there,
        since no run removes them that finds its copy. So only what was there beside its copy is put back, and then the
        copy stays.
        """
        self._budget.spend(len(removals))
        going = self._without_references(location, removals)
        paths = [item.path for item in going]
        found = zip(paths, self._store.map(self._find, paths), strict=True)
        data = {path: content for path, content in found if content is not None}
        copies = _write_copies(self._store, run, str(uuid.uuid4()), data)
        there = remove_all(self._store, going, self.outcome, names_come_back=True) & data.keys()
        self._sync(location)
        unnamed = {item.path for item in self._without_references(location, going)}
        for path in there - unnamed:
            if self._find(copies[path]) is not None:  # else this process was held for a day
                self._put_back(path, data[path])
        with suppress(StorageError):  # what the store refuses to remove goes with the files of the run
            self._store.delete_all([key for path, key in copies.items() if path in unnamed or path not in there])

    def _remove_catalog_versions(self, removals: Sequence[Removal]) -> None:
        """Remove versions of the catalog, the lowest first, durably: those from the oldest kept one on are one run.

        One that the store does not remove stays below them, with its rows. Nothing follows it (design note 018, 4).
        """
        self._budget.spend(len(removals))
        remove_all(self._store, removals, self.outcome)
        with suppress(NotFound):  # another run is further
            self._store.sync([self._newest])

    def _without_references(self, location: str, removals: Sequence[Removal]) -> list[Removal]:
        try:
            referred = references_of(self._store, location)
        except CorruptFile:
            return []
        return [item for item in removals if place_of_manifest(location, item.path) not in referred]

    def _find(self, path: str) -> bytes | None:
        return self._store.find(path)

    def _put_back(self, path: str, data: bytes) -> None:
        try:
            self._store.put_if_absent(path, data)
        except AlreadyExists:
            return
        self.outcome.kept.append(path)

    def _sync(self, location: str) -> None:
        """Make removals of manifests durable before their files go: a version that is listed can be read."""
        table_id = self._snapshot.table_at(location)
        if table_id is None:
            return
        for branch in self._snapshot.chains(table_id):
            head = self._snapshot.head(table_id, branch)
            if head is not None:
                with suppress(NotFound):
                    self._store.sync([head.canonical_path])  # and with it the directory


def _name_of(item: Removal) -> str:
    """The name by which a manifest would need a file; empty for one that none could name."""
    parts = item.path.split("/")
    # A table may lie in directories that the key does not distinguish from those of a branch.
    names = (file_name("/".join(parts[begin:])) for begin in range(1, len(parts)))
    return next((name for name in names if name is not None), "")


def _write_copies(store: ObjectStore, run: str, writer: str, manifests: Mapping[str, bytes]) -> dict[str, str]:
    """Write copies of manifests, by key, for the run whose files lie at `run`; returns their keys, by the same.

    `writer` is a new uuid. Raises `StorageError`.
    """
    keys = {path: f"{run}/{EXPIRING}/{writer}/{path}" for path in manifests}
    store.map(lambda path: store.put_if_absent(keys[path], manifests[path], durable=False), list(manifests))
    return keys


def _copies_of(store: ObjectStore, paths: Collection[str]) -> Iterator[ObjectMeta]:
    """The copies of manifests that were at one of these keys, of all runs. One listing. Raises `StorageError`."""
    for meta in store.list(GC_RUNS):
        _, found, copy = meta.path.partition(f"/{EXPIRING}/")
        if found and copy.partition("/")[2] in paths:
            yield meta

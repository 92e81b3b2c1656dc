"""The garbage collector: census, plan, second census, remove versions, third census, remove files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from lance_core.cleanup.census import Census, check_branch_exists, store_clock, take_census
from lance_core.cleanup.guard import check_unmanaged, split_table_uri
from lance_core.cleanup.plan import (
    Garbage,
    GarbageCollectionPlan,
    dead_scratch,
    identity,
    make_plan,
    pins,
    standing_manifests,
)
from lance_core.cleanup.reachability import file_name
from lance_core.cleanup.retention import Retention
from lance_core.commit.handlers.handler import CommitHandler, handle
from lance_core.errors import AlreadyExists, NotFound
from lance_core.format.naming import MAIN_BRANCH, branch_base
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectMeta, ObjectStore

GRACE = timedelta(days=7)
"""Minimum age of a file that no version ever needed: a writer may be about to commit it."""

SETTLE = timedelta(seconds=5)
"""Pause between removing versions and removing files, for references to those versions that are being written."""

_ROUND_BYTES = 256 << 20
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """The result of a clean-up, or of a dry run.

    Attributes:
        versions: The manifests removed, ascending by version.
        files: The other files removed.
        kept: By version, why each remaining version is kept.
        dry_run: Whether nothing was removed.
    """

    versions: tuple[Garbage, ...]
    files: tuple[Garbage, ...]
    kept: Mapping[int, str]
    dry_run: bool

    @property
    def size(self) -> int:
        """Total size of the removed files in bytes."""
        return sum(garbage.size for garbage in (*self.versions, *self.files))


def cleanup(
    uri: str | os.PathLike[str],
    retention: Retention,
    *,
    branch: str | None = None,
    grace: timedelta = GRACE,
    dry_run: bool = False,
    storage_options: Mapping[str, str] | None = None,
    commit_handler: CommitHandler | None = None,
    settle: timedelta = SETTLE,
) -> CleanupReport:
    """Remove old versions of a table or branch, and files that no version needs.

    The newest version, versions named by a tag or forked by a branch, and every file that a version of any branch, a
    staged manifest or a detached manifest needs are always kept. Files of unknown kinds are never removed. All ages
    are by the store's clock. After a crash at any point all listed versions are complete, and the clean-up can be run
    again.

    A shallow clone at another root leaves no reference in its source: tag the version that it was made from.

    Args:
        uri: The URI or path of the table's root.
        retention: Which versions are kept.
        branch: The branch; None for main.
        grace: Minimum age of a removed file that no version ever needed.
        dry_run: Report what would be removed, and remove nothing.
        storage_options: Options of the store, by Lance's own keys.
        commit_handler: The commit handler of the table.
        settle: Pause between removing versions and removing files.

    Returns:
        What was removed and what was kept.

    Raises:
        UnsupportedFeature: A catalog manages the versions of the table, or the files that a manifest needs cannot be
            determined. Nothing was removed.
        CorruptFile: A manifest or reference cannot be decoded. Nothing was removed.
        ReferenceNotFound: There is no such table or branch.
        StorageError: The store failed. Some files may have been removed.
    """
    top, location = split_table_uri(os.fspath(uri))
    whole = open_store(top, storage_options)
    try:
        check_unmanaged(whole, location)
    finally:
        whole.close()
    return cleanup_table(
        handle(open_store(uri, storage_options), commit_handler),
        "",
        retention,
        branch=branch,
        grace=grace,
        dry_run=dry_run,
        settle=settle,
    )


def cleanup_table(
    store: ObjectStore,
    location: str,
    retention: Retention,
    *,
    branch: str | None = None,
    grace: timedelta = GRACE,
    dry_run: bool = False,
    settle: timedelta = SETTLE,
    sleep: Callable[[float], None] = time.sleep,
) -> CleanupReport:
    """As `cleanup`, for the table at the key `location`. A catalog is looked for in all parents up to the store's root.

    `sleep` waits for the given number of seconds.
    """
    if grace < timedelta(0):
        raise ValueError(f"grace {grace}: expected a duration of at least 0")
    check_unmanaged(store, location)
    run = _Run(store, location, None if branch == MAIN_BRANCH else branch, retention, grace, settle, sleep)
    if dry_run:
        plan = run.look(None)[1]
        return CleanupReport(tuple(plan.manifests), tuple(plan.files), plan.kept, True)
    versions: list[Garbage] = []
    files: list[Garbage] = []
    while True:
        census, plan = run.look(_ROUND_BYTES)
        gone, kept = run.remove_versions(census, plan)
        files += run.remove_files(census, plan, gone)
        versions += (garbage for garbage in plan.manifests if garbage.version in gone)
        if plan.complete or not gone:
            return CleanupReport(tuple(versions), tuple(files), kept, False)


class _Run:
    """One clean-up of one branch."""

    def __init__(
        self,
        store: ObjectStore,
        location: str,
        branch: str | None,
        retention: Retention,
        grace: timedelta,
        settle: timedelta,
        sleep: Callable[[float], None],
    ) -> None:
        self._store = store
        self._location = location
        self._branch = branch
        self._retention = retention
        self._grace = grace
        self._settle = settle
        self._sleep = sleep
        self._now = store_clock(store, location)

    def look(self, max_manifest_bytes: int | None) -> tuple[Census, GarbageCollectionPlan]:
        """Take a census and make a plan. Retries if a concurrent clean-up removes a manifest meanwhile."""

        def look() -> tuple[Census, GarbageCollectionPlan]:
            census = self._take_census()
            return census, make_plan(
                self._store,
                self._branch,
                census,
                self._retention,
                now=self._now,
                grace=self._grace,
                max_manifest_bytes=max_manifest_bytes,
            )

        return _retrying()(look)

    def remove_versions(self, census: Census, plan: GarbageCollectionPlan) -> tuple[set[int], Mapping[int, str]]:
        """Remove manifests, the oldest first. Returns the removed versions, and why each other version is kept.

        Reading all manifests takes time, so a second census before the removal drops versions that were named
        meanwhile from the plan. A third census follows the removal: a version that was named meanwhile is put back,
        and none of its files has been removed yet.
        """
        kept = dict(plan.kept)
        if not plan.manifests:
            return set(), kept
        going = {garbage.path for garbage in plan.manifests}
        recent = self._take_later_census(plan, going)
        pinned = pins(recent, self._branch, plan.needs)
        planned, here = dict(census.versions[self._branch]), dict(recent.versions[self._branch])
        removed: dict[int, tuple[ObjectMeta, bytes]] = {}
        for version in sorted(version for version, meta in planned.items() if meta.path in going):
            meta = here.get(version)
            if version in pinned:
                kept[version] = pinned[version]
            elif meta is not None and identity(meta) == identity(planned[version]):
                data = self._store.get(meta.path)
                self._store.delete(meta.path)
                removed[version] = meta, data
        self._store.sync([here[max(here)].path])  # syncs the directory: removed manifests must not reappear
        after = self._take_later_census(plan)
        pinned = pins(after, self._branch, plan.needs)
        for version in sorted(removed.keys() & pinned.keys()):
            meta, data = removed.pop(version)
            self._put_back(meta, data)
            kept[version] = pinned[version]  # the census before files go reads it
        return set(removed), kept

    def remove_files(self, census: Census, plan: GarbageCollectionPlan, gone: set[int]) -> list[Garbage]:
        """Remove the planned files that are still unneeded and unchanged. Returns the removed files."""
        if not plan.files:
            return []
        if gone:
            self._sleep(self._settle.total_seconds())
        after = self._take_later_census(plan)
        prefix = f"{self._location}/" if self._location else ""
        base = branch_base("", self._branch)
        root = f"{base}/" if base else ""
        taken = {version for version, _ in after.versions[self._branch]}
        going: list[Garbage] = []
        for garbage in plan.files:
            key = garbage.path.removeprefix(prefix)
            name = file_name(key.removeprefix(root))
            unchanged = key in after.files and identity(after.files[key]) == identity(census.files[key])
            if unchanged and (name is None or name not in plan.needs.names) and garbage.needs_version in {None, *taken}:
                going.append(garbage)
        self._store.delete_all([garbage.path for garbage in going])
        return going

    def _take_later_census(self, plan: GarbageCollectionPlan, going: Collection[str] = ()) -> Census:
        """Take another census, and add the needs of new manifests, except those `going`, to the plan."""

        def look() -> Census:
            census = self._take_census()
            standing = standing_manifests(census, dead_scratch(census, self._now, self._grace))
            plan.needs.add(self._store, [meta for meta in standing if meta.path not in going])
            return census

        return _retrying()(look)

    def _take_census(self) -> Census:
        census = take_census(self._store, self._location)
        check_branch_exists(self._store, self._location, self._branch, census)
        return census

    def _put_back(self, meta: ObjectMeta, data: bytes) -> None:
        try:
            self._store.put_if_absent(meta.path, data)
        except AlreadyExists:
            if self._store.get(meta.path) != data:
                raise


def _retrying() -> Retrying:
    """Retries a look at the table during which a concurrent clean-up removed an object."""
    return Retrying(stop=stop_after_attempt(_ATTEMPTS), retry=retry_if_exception_type(NotFound), reraise=True)

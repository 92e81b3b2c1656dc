"""Cleaning a table up: look, decide, look again, remove versions, look again, remove files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from lance_core.cleanup.census import Census, check_branch_exists, store_clock, take_census
from lance_core.cleanup.guard import check_unmanaged
from lance_core.cleanup.plan import (
    Garbage,
    GarbageCollectionPlan,
    dead_scratch,
    identity,
    make_plan,
    pins,
    read_needs,
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
"""How old a file must be that no version ever needed: a writer may be about to commit it."""

SETTLE = timedelta(seconds=5)
"""Between removing versions and removing files: whoever was about to refer to one of those versions has done so."""

_ROUND_BYTES = 256 << 20
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """What went, or would go in a dry run: the manifests of `versions`, ascending, and `files`.

    `kept` says why each other version stays.
    """

    versions: tuple[Garbage, ...]
    files: tuple[Garbage, ...]
    kept: Mapping[int, str]
    dry_run: bool

    @property
    def size(self) -> int:
        """Bytes in all."""
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
    """Remove versions of the table at `uri`, or of its `branch`, that `retention` does not keep, and unneeded files.

    Kept in any case are the newest version, versions that a tag names or a branch began from, and every file that a
    version of any branch, a staged or a detached manifest needs. Files that no version ever needed go when they are
    older than `grace`. What is of no known kind is never touched. All ages are by the store's clock. A crash at any
    point leaves every version that is listed whole; running it again goes on.

    A shallow clone at another place leaves no trace in its source: name the version that it was made from by a tag.

    Raises `UnsupportedFeature` for a table whose versions a catalog keeps, and, like `CorruptFile`, when the needs of
    one manifest or reference cannot be known: nothing was removed. Raises `ReferenceNotFound` for a table or branch
    that is not there, `StorageError`; of those that come from a removal, some may have been made.
    """
    top, location = _split(os.fspath(uri))
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
    """As `cleanup`, for the table at the key `location`; a catalog is looked for as far up as the store goes."""
    if grace < timedelta(0):
        raise ValueError(f"grace {grace}: expected no negative time")
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
    """One cleanup of one branch."""

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
        """What is there, and what may go of it. Looks again when another cleanup is at work at the same time."""

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
        """Remove manifests, the oldest first; the versions that went, and why the others stayed.

        Reading all manifests took its time, so references and versions are looked at once more before, and again
        after: a version that somebody has named meanwhile is put back, with all its files still there.
        """
        kept = dict(plan.kept)
        if not plan.manifests:
            return set(), kept
        going = {garbage.path for garbage in plan.manifests}
        recent = self._look_again(plan, going)
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
        self._store.sync([here[max(here)].path])  # the directory: manifests are gone for good before files go
        after = self._look_again(plan)
        pinned = pins(after, self._branch, plan.needs)
        for version in sorted(removed.keys() & pinned.keys()):
            meta, data = removed.pop(version)
            self._put_back(meta, data)
            plan.needs.names.update(read_needs(self._store, meta, data)[1])
            kept[version] = pinned[version]
        return set(removed), kept

    def remove_files(self, census: Census, plan: GarbageCollectionPlan, gone: set[int]) -> list[Garbage]:
        """Remove the files that nothing needs, as it is now; those that went."""
        if not plan.files:
            return []
        if gone:
            self._sleep(self._settle.total_seconds())
        after = self._look_again(plan)
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
        self._store.map(lambda garbage: self._store.delete(garbage.path), going)
        return going

    def _look_again(self, plan: GarbageCollectionPlan, going: Collection[str] = ()) -> Census:
        """Another look; what manifests need that were not read before, except those `going`, the plan's needs learn."""

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


def _split(uri: str) -> tuple[str, str]:
    """The top of the store that a table's URI leads to, and the table's key in there. Links on a disk are resolved."""
    if "://" not in uri or uri.startswith("file://"):
        path = unquote(urlsplit(uri).path) if uri.startswith("file://") else uri
        return "/", str(Path(path).resolve()).strip("/")
    parts = urlsplit(uri)
    if parts.scheme == "memory":
        return uri, ""
    return f"{parts.scheme}://{parts.netloc}", unquote(parts.path).strip("/")

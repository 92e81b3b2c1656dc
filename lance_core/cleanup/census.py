"""Census of a table: all its files, and which of them are versions, references or unfinished work."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lance_core.cleanup.kinds import UUID_PATTERN, detached_version
from lance_core.commit.staged import STAGING_DIRECTORY
from lance_core.errors import ReferenceNotFound, UnsupportedFeature
from lance_core.format.naming import (
    BRANCHES_DIRECTORY,
    MAIN_BRANCH,
    VERSIONS_DIRECTORY,
    branch_base,
    join_key,
    parse_manifest_name,
    parse_staged_name,
)
from lance_core.format.refs import BranchContents, TagContents
from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.tables.branches import Branches
from lance_core.tables.tags import Tags

_SCRATCH = re.compile(rf"({STAGING_DIRECTORY}/{UUID_PATTERN}/{UUID_PATTERN})/{VERSIONS_DIRECTORY}/[^/]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class FoundManifest:
    """A manifest that is not a version of one of the table's branches, or not yet.

    `version` is its number. `branch` is the branch that its directory belongs to, None for main or if it shows none.
    """

    meta: ObjectMeta
    version: int
    staged: bool
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Census:
    """The content of a table, listed once.

    Attributes:
        files: All objects by key relative to the table's root.
        versions: The committed versions of every branch (None is main), ascending.
        others: Manifests under any other name or directory: staged, detached, of datasets nested in the table.
        scratch: Directories of running or interrupted compactions.
        tags: All tags by name.
        branches: All branches by name.
    """

    files: Mapping[str, ObjectMeta]
    versions: Mapping[str | None, Sequence[tuple[int, ObjectMeta]]]
    others: Sequence[FoundManifest]
    scratch: Sequence[str]
    tags: Mapping[str, TagContents]
    branches: Mapping[str, BranchContents]


def take_census(store: ObjectStore, location: str) -> Census:
    """List the table at the key `location`. References are listed before files, so versions they name are listed too.

    Raises `CorruptFile` for a reference that cannot be read, `UnsupportedFeature` for manifests of both naming schemes
    on one branch.
    """
    tags, branches = Tags(store, location).list(), Branches(store, location).list()
    prefix = f"{location}/" if location else ""
    files = {meta.path.removeprefix(prefix): meta for meta in store.list(location)}
    versions: dict[str | None, list[tuple[int, ObjectMeta]]] = {None: []}
    others: list[FoundManifest] = []
    scratch: dict[str, None] = {}
    for key, meta in files.items():
        directory, _, name = key.rpartition("/")
        in_scratch = _SCRATCH.fullmatch(key)
        if in_scratch is not None:
            scratch[in_scratch[1]] = None
            continue
        known, branch = _branch_of(directory)
        canonical = parse_manifest_name(name)
        if known and canonical is not None:
            versions.setdefault(branch, []).append((canonical[0], meta))
        elif _in_versions(key) or directory.startswith(f"{STAGING_DIRECTORY}/"):
            found = _other(name, meta, branch)
            if found is not None:
                others.append(found)
    for branch, entries in versions.items():
        entries.sort(key=lambda entry: entry[0])
        _check_names(branch, entries)
    return Census(files, versions, others, tuple(scratch), tags, branches)


def store_clock(store: ObjectStore, location: str) -> datetime:
    """The current time by the store's own clock: the modification time of an object written now."""
    path = join_key(location, STAGING_DIRECTORY, str(uuid.uuid4()), "clock")
    store.put(path, b"", durable=False)
    try:
        return store.head(path).last_modified
    finally:
        store.delete(path)


def is_older_than(meta: ObjectMeta, now: datetime, grace: timedelta) -> bool:
    """Whether an object is older than the grace time, so that its writer has finished or crashed."""
    return now - meta.last_modified > grace


def check_branch_exists(store: ObjectStore, location: str, branch: str | None, census: Census) -> None:
    """Raise `ReferenceNotFound` if the branch has no version."""
    if not census.versions.get(branch):
        base = store.object_uri(branch_base(location, branch))
        raise ReferenceNotFound(f"{base}: expected a manifest, found none")


def read_all(store: ObjectStore, metas: Sequence[ObjectMeta]) -> Iterator[tuple[ObjectMeta, bytes]]:
    """The objects with their bytes, read in batches. Raises `NotFound` if one was removed."""
    step = 64
    for first in range(0, len(metas), step):
        part = metas[first : first + step]
        yield from zip(part, store.map(lambda meta: store.get(meta.path), part), strict=True)


def _in_versions(key: str) -> bool:
    return key.rpartition("/")[0].rpartition("/")[2] == VERSIONS_DIRECTORY


def _branch_of(directory: str) -> tuple[bool, str | None]:
    """Whether a directory holds the versions of a branch, and which branch (None is main)."""
    if directory == VERSIONS_DIRECTORY:
        return True, None
    if directory.startswith(f"{BRANCHES_DIRECTORY}/") and directory.endswith(f"/{VERSIONS_DIRECTORY}"):
        name = directory.removeprefix(f"{BRANCHES_DIRECTORY}/").removesuffix(f"/{VERSIONS_DIRECTORY}")
        return bool(name) and name != MAIN_BRANCH, name
    return False, None


def _other(name: str, meta: ObjectMeta, branch: str | None) -> FoundManifest | None:
    staged = parse_staged_name(name)
    if staged is not None:
        return FoundManifest(meta, staged[0], True, branch)
    canonical = parse_manifest_name(name)
    if canonical is not None:  # in `_staging/`, or of a dataset nested in this table
        return FoundManifest(meta, canonical[0], f"/{STAGING_DIRECTORY}/" in f"/{meta.path}", branch)
    detached = detached_version(name)
    return None if detached is None else FoundManifest(meta, detached, False, branch)


def _check_names(branch: str | None, entries: Sequence[tuple[int, ObjectMeta]]) -> None:
    schemes = {parse_manifest_name(meta.path.rpartition("/")[2]) for _, meta in entries}
    kinds = {parsed[1] for parsed in schemes if parsed is not None}
    if len(kinds) > 1:
        raise UnsupportedFeature(f"branch {branch or MAIN_BRANCH} has manifests of both naming schemes: expected one")

"""Tags and branches of a table, as files below its root."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from lance_core.commit.slot import Lost, Unknown, claim_slot
from lance_core.errors import AlreadyExists, CorruptFile, NotFound, OutcomeUnknown, ReferenceNotFound
from lance_core.format.naming import MAIN_BRANCH, branch_base, join_key
from lance_core.format.refs import (
    BRANCHES_DIRECTORY,
    TAGS_DIRECTORY,
    BranchContents,
    TagContents,
    branch_path,
    check_branch_name,
    check_tag_name,
    decode_branch,
    decode_tag,
    encode_branch,
    encode_tag,
    format_timestamp,
    parse_ref_name,
    tag_path,
)
from lance_core.storage.port import ObjectStore
from lance_core.versions import read_version

Contents = TypeVar("Contents")


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of the table at the key `location`; they may name versions of any of its branches.

    `clock` gives nanoseconds since the epoch.
    """

    store: ObjectStore
    location: str
    clock: Callable[[], int] = time.time_ns

    def list(self) -> dict[str, TagContents]:
        """All tags by name, in byte order of their file names. Raises `CorruptFile`."""
        return _list_refs(self.store, join_key(self.location, TAGS_DIRECTORY), decode_tag)

    def get(self, name: str) -> TagContents:
        """One tag. Raises `ReferenceNotFound`, `CorruptFile`."""
        return _read_ref(self.store, tag_path(self.location, name), f"tag {name}", decode_tag)

    def create(
        self, name: str, version: int, branch: str | None = None, *, metadata: Mapping[str, str] | None = None
    ) -> TagContents:
        """Name a version that exists; of all concurrent callers one succeeds.

        Raises `ValueError` for a name that stock clients refuse, `ReferenceNotFound` for the version,
        `AlreadyExists`, and `OutcomeUnknown` when the store never answered.
        """
        path = tag_path(self.location, check_tag_name(name))
        branch, size = self._measure(version, branch)
        now = format_timestamp(self.clock())
        tag = TagContents(version, size, branch, now, now, dict(metadata or {}))
        _create_ref(self.store, path, f"tag {name}", encode_tag(tag))
        return tag

    def update(self, name: str, version: int, branch: str | None = None) -> TagContents:
        """Move a tag to another version that exists; of concurrent moves the last one stays.

        Raises `ReferenceNotFound` for the tag and for the version.
        """
        old = self.get(name)
        branch, size = self._measure(version, branch)
        now = format_timestamp(self.clock())
        tag = replace(old, version=version, branch=branch, manifest_size=size, updated_at=now)
        self.store.put(tag_path(self.location, name), encode_tag(tag))
        return tag

    def delete(self, name: str) -> None:
        """Remove a tag. Raises `ReferenceNotFound`."""
        path = tag_path(self.location, name)
        try:
            self.store.head(path)
        except NotFound as error:
            raise ReferenceNotFound(f"tag {name} at {self.store.object_uri(path)}: expected a file") from error
        self.store.delete(path)

    def _measure(self, version: int, branch: str | None) -> tuple[str | None, int]:
        branch = None if branch == MAIN_BRANCH else branch
        _, file = read_version(self.store, branch_base(self.location, branch), version)
        return branch, file.identity.size


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of the table at the key `location`, main excepted. `clock` gives nanoseconds since the epoch."""

    store: ObjectStore
    location: str
    clock: Callable[[], int] = time.time_ns

    def list(self) -> dict[str, BranchContents]:
        """All branches by name, in byte order of their file names. Raises `CorruptFile`."""
        return _list_refs(self.store, join_key(self.location, BRANCHES_DIRECTORY), decode_branch)

    def get(self, name: str) -> BranchContents:
        """One branch. Raises `ReferenceNotFound`, `CorruptFile`."""
        return _read_ref(self.store, branch_path(self.location, name), f"branch {name}", decode_branch)

    def create(
        self,
        name: str,
        parent_version: int,
        parent_branch: str | None = None,
        *,
        metadata: Mapping[str, str] | None = None,
    ) -> BranchContents:
        """Make a branch known whose first version, a clone of `parent_version`, is committed already.

        In that order a branch that is listed can always be opened. Of all concurrent callers one succeeds. Raises
        `ValueError` for a name that stock clients refuse, `ReferenceNotFound` when the first version or the parent is
        missing, `AlreadyExists`, and `OutcomeUnknown` when the store never answered.
        """
        path = branch_path(self.location, check_branch_name(name))
        parent = None if parent_branch == MAIN_BRANCH else parent_branch
        ancestors = () if parent is None else self.get(parent).identifier or ()
        _, forked = read_version(self.store, branch_base(self.location, parent), parent_version)
        read_version(self.store, branch_base(self.location, name), parent_version)
        branch = BranchContents(
            parent_version=parent_version,
            manifest_size=forked.identity.size,
            parent_branch=parent,
            identifier=(*ancestors, (parent_version, uuid.uuid4().hex)),
            created_at=self.clock() // 1_000_000_000,
            metadata=dict(metadata or {}),
        )
        _create_ref(self.store, path, f"branch {name}", encode_branch(branch))
        return branch


def _create_ref(store: ObjectStore, path: str, what: str, data: bytes) -> None:
    outcome = claim_slot(store, path, data)
    if isinstance(outcome, Lost):
        raise AlreadyExists(f"{what} at {store.object_uri(path)}: expected none, found one")
    if isinstance(outcome, Unknown):
        raise OutcomeUnknown(f"{what}: {outcome.reason}")


def _read_ref(store: ObjectStore, path: str, what: str, decode: Callable[[bytes], Contents]) -> Contents:
    try:
        data = store.get(path)
    except NotFound as error:
        raise ReferenceNotFound(f"{what} at {store.object_uri(path)}: expected a file, found none") from error
    try:
        return decode(data)
    except CorruptFile as error:
        raise CorruptFile(f"{store.object_uri(path)}: {error}") from error


def _list_refs(store: ObjectStore, directory: str, decode: Callable[[bytes], Contents]) -> dict[str, Contents]:
    paths: dict[str, str] = {}
    for meta in store.list(directory):
        name = parse_ref_name(meta.path.removeprefix(f"{directory}/"))
        if name is not None:
            paths[name] = meta.path

    def read(name: str) -> Contents | None:
        try:
            return _read_ref(store, paths[name], name, decode)
        except ReferenceNotFound:  # removed since it was listed
            return None

    found = zip(paths, store.map(read, list(paths)), strict=True)
    return {name: contents for name, contents in found if contents is not None}

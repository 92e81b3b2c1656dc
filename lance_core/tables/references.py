"""Resolves a reference (version, time, tag or branch) to a committed version."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, Generic, TypeAlias, TypeVar

from lance_core.errors import NotFound
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import MAIN_BRANCH, NamingScheme, branch_base, join_key
from lance_core.format.refs import decode_tag, tag_path
from lance_core.storage.port import ObjectStore
from lance_core.tables.ref_files import list_refs, read_ref
from lance_core.tables.time_travel import find_as_of
from lance_core.versions import ManifestLocation, find_latest, get_listed, parse_found, read_version

Position: TypeAlias = int | datetime | None
"""A position on a branch: a version number, a timestamp (the newest version at or before it), or None (the latest)."""

Reference: TypeAlias = Position | str | tuple[str | None, Position]
"""A position on the current branch; a tag name; or (branch, position), where None and `main` are the main branch."""


@dataclass(frozen=True, slots=True)
class FoundVersion:
    """A committed version, on `branch` (None is main).

    The `e_tag` of the location is None if the store has none, or if the version was not found by listing.
    """

    branch: str | None
    location: ManifestLocation
    file: ManifestFile


def resolve(
    store: ObjectStore, location: str, ref: Reference, branch: str | None = None
) -> tuple[str | None, Position]:
    """Resolve `ref` on `branch` of the table at the key `location` to a branch and position.

    Only a tag causes I/O. Raises `ReferenceNotFound` and `CorruptFile` for a tag.
    """
    match ref:
        case str():
            tag = read_ref(store, tag_path(location, ref), f"tag {ref}", decode_tag)
            return None if tag.branch == MAIN_BRANCH else tag.branch, tag.version
        case (name, position):
            return None if name == MAIN_BRANCH else name, position
        case _:
            return branch, ref


def find(
    store: ObjectStore,
    location: str,
    branch: str | None,
    position: Position,
    *,
    scheme: NamingScheme | None = None,
) -> FoundVersion:
    """Find and lazily read a version of the table at `location`. `scheme` is the branch's naming scheme, if known.

    Raises:
        ReferenceNotFound: There is no such version.
        CorruptFile: The manifest cannot be decoded.
        UnsupportedFeature: The branch has manifests of both naming schemes.
    """
    base = branch_base(location, branch)
    match position:
        case datetime():
            found, file = find_as_of(store, base, position)
        case None:
            return read_found(store, branch, find_latest(store, base))
        case _:
            found, file = read_version(store, base, position, scheme, lazily=True)
    return _found(branch, found, file)


def find_from(
    store: ObjectStore, location: str, ref: Reference, branch: str | None, version: int | None
) -> FoundVersion:
    """Resolve and read `ref` relative to `version` of `branch`: None stands for that version (None: the latest).

    Raises as `resolve` and `find` do.
    """
    if ref is None:
        return find(store, location, branch, version)
    return find(store, location, *resolve(store, location, ref, branch))


def read_found(store: ObjectStore, branch: str | None, location: ManifestLocation) -> FoundVersion:
    """Read a version that was listed. Raises `ReferenceNotFound` if it was removed since, `CorruptFile`."""
    return _found(branch, location, parse_found(store, location, get_listed(store, location), lazily=True))


def was_removed(store: ObjectStore, found: FoundVersion) -> bool:
    """Whether a version was removed since it was found.

    To be called after a reference to the version is written. A clean-up lists references again before it removes a
    version, so one of the two operations sees the other.
    """
    try:
        store.head(found.location.path)
    except NotFound:
        return True
    return False


def _found(branch: str | None, location: ManifestLocation, file: ManifestFile) -> FoundVersion:
    """The version, with the listed e_tag only if the file has the listed size: it may have been replaced since."""
    if location.size not in {None, file.size}:
        location = replace(location, e_tag=None)
    return FoundVersion(branch, replace(location, size=file.size), file)


Contents = TypeVar("Contents")


@dataclass(frozen=True, slots=True)
class NamedReferences(ABC, Generic[Contents]):
    """The reference files of one kind of the table at the key `location`.

    Attributes:
        store: The store that holds the table.
        location: The key of the table's root.
        branch: The branch on which references are resolved; None for main.
        version: The version that the reference None stands for; None for the latest.
        clock: Returns nanoseconds since the epoch.
    """

    store: ObjectStore
    location: str
    branch: str | None = None
    version: int | None = None
    clock: Callable[[], int] = field(default=time.time_ns, kw_only=True)

    _kind: ClassVar[str]
    """Names the kind in errors: `tag`, `branch`."""
    _directory: ClassVar[str]
    """The directory of the reference files, below the table's root."""

    def list(self) -> dict[str, Contents]:
        """All references by name, in byte order of their file names. Raises `CorruptFile`."""
        return list_refs(self.store, join_key(self.location, self._directory), self._decode)

    def get(self, name: str) -> Contents:
        """One reference. Raises `ReferenceNotFound`, `CorruptFile`."""
        return read_ref(self.store, self._path(name), f"{self._kind} {name}", self._decode)

    def _find(self, ref: Reference) -> FoundVersion:
        """The version that a new reference is to name. Raises `ReferenceNotFound`, `CorruptFile`."""
        return find_from(self.store, self.location, ref, self.branch, self.version)

    @abstractmethod
    def _path(self, name: str) -> str:
        """The key of the file of the reference `name`."""

    @staticmethod
    @abstractmethod
    def _decode(data: bytes) -> Contents:
        """Decode the content of a reference file. Raises `CorruptFile`."""

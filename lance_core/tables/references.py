"""From a reference to the committed version that it stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from lance_core.errors import NotFound, ReferenceNotFound
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import MAIN_BRANCH, NamingScheme, branch_base
from lance_core.format.refs import decode_tag, tag_path
from lance_core.storage.port import ObjectStore
from lance_core.tables.ref_files import read_ref
from lance_core.tables.time_travel import find_as_of
from lance_core.versions import ManifestLocation, find_latest, read_manifest, read_version

Position: TypeAlias = int | datetime | None
"""A place on a branch: a version number, a moment (the newest version at or before it), or None for the latest."""

Reference: TypeAlias = Position | str | tuple[str | None, Position]
"""A position on the current branch; a tag; or (branch, position), where None and `main` are the default branch."""


@dataclass(frozen=True, slots=True)
class FoundVersion:
    """A committed version, on `branch` (None is main).

    The location's `e_tag` is None where the store has none, or told none because nothing was listed.
    """

    branch: str | None
    location: ManifestLocation
    file: ManifestFile


def resolve(
    store: ObjectStore, location: str, ref: Reference, branch: str | None = None
) -> tuple[str | None, Position]:
    """The branch and position that `ref` means to somebody on `branch` of the table at the key `location`.

    Only a tag has to be read. Raises `ReferenceNotFound`, `CorruptFile` for one.
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
    """Find and read (lazily) a version of the table at `location`. `scheme` is how the branch names it, if known.

    Raises `ReferenceNotFound`, `CorruptFile`, and `UnsupportedFeature` for a mixture of naming schemes.
    """
    base = branch_base(location, branch)
    match position:
        case datetime():
            found, file = find_as_of(store, base, position)
        case None:
            return read_found(store, branch, find_latest(store, base))
        case _:
            found, file = read_version(store, base, position, scheme, lazily=True)
    return _vouched(branch, found, file)


def find_from(
    store: ObjectStore, location: str, ref: Reference, branch: str | None, version: int | None
) -> FoundVersion:
    """Find what `ref` means to somebody at `version` (None is the latest) of `branch`, to whom None means that one.

    Raises as `resolve` and `find` do.
    """
    if ref is None:
        return find(store, location, branch, version)
    return find(store, location, *resolve(store, location, ref, branch))


def read_found(store: ObjectStore, branch: str | None, location: ManifestLocation) -> FoundVersion:
    """Read a version that was listed. Raises `ReferenceNotFound` when it is gone, `CorruptFile`."""
    try:
        file = read_manifest(store, location, lazily=True)
    except NotFound as error:
        raise ReferenceNotFound(f"{store.object_uri(location.path)}: listed, and gone when it was read") from error
    return _vouched(branch, location, file)


def was_removed(store: ObjectStore, found: FoundVersion) -> bool:
    """Whether a version was removed since. Asked by who makes a ref to it, once that is written: a clean-up looks again
    for refs before it removes anything, so that one of the two sees the other.
    """
    try:
        store.head(found.location.path)
    except NotFound:
        return True
    return False


def _vouched(branch: str | None, location: ManifestLocation, file: ManifestFile) -> FoundVersion:
    """The e_tag of a listing is kept only for a file of the listed size: it may have been replaced since."""
    if location.size not in {None, file.size}:
        location = replace(location, e_tag=None)
    return FoundVersion(branch, replace(location, size=file.size), file)

"""Reads, lists and claims reference files: the small files that tags and branches are stored in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lance_core.commit.slot import SlotLost, SlotUnknown, claim_slot
from lance_core.errors import AlreadyExists, CorruptFile, NotFound, ReferenceNotFound, StorageUnknown
from lance_core.format.refs import parse_ref_name
from lance_core.storage.port import ObjectStore

Contents = TypeVar("Contents")


def claim_ref(store: ObjectStore, path: str, what: str, data: bytes) -> None:
    """Write the file of a new reference; of all concurrent callers one succeeds. `what` names it in errors.

    Raises:
        AlreadyExists: There is a reference of that name.
        StorageUnknown: The store did not answer.
    """
    outcome = claim_slot(store, path, data)
    if isinstance(outcome, SlotLost):
        raise AlreadyExists(f"{what} at {store.object_uri(path)}: expected none, found one")
    if isinstance(outcome, SlotUnknown):
        raise StorageUnknown(f"{what}: {outcome.reason}")


def read_ref(store: ObjectStore, path: str, what: str, decode: Callable[[bytes], Contents]) -> Contents:
    """Read one reference. Raises `ReferenceNotFound`, `CorruptFile`."""
    try:
        data = store.get(path)
    except NotFound as error:
        raise ReferenceNotFound(f"{what} at {store.object_uri(path)}: expected a file, found none") from error
    try:
        return decode(data)
    except CorruptFile as error:
        raise CorruptFile(f"{store.object_uri(path)}: {error}", key=path, reason=str(error)) from error


def list_refs(store: ObjectStore, directory: str, decode: Callable[[bytes], Contents]) -> dict[str, Contents]:
    """The references in a directory by name, in byte order of their file names, read in parallel.

    Raises `CorruptFile`.
    """
    paths: dict[str, str] = {}
    for meta in store.list(directory):
        name = parse_ref_name(meta.path.removeprefix(f"{directory}/"))
        if name is not None:
            paths[name] = meta.path

    def read(name: str) -> Contents | None:
        try:
            return read_ref(store, paths[name], name, decode)
        except ReferenceNotFound:  # removed since it was listed
            return None

    found = zip(paths, store.map(read, list(paths)), strict=True)
    return {name: contents for name, contents in found if contents is not None}

"""Commits through an external manifest store, by the four steps of the Lance transaction specification.

    stage         put `<final name>-<uuid>`, which no reader opens
    commit        put the row (base_uri, version) -> staged path if there is none      <- the commit point
    finalise      put the same bytes under the final name
    update        replace the row by one with the final path, then delete the staged file

A reader or writer that finds a row with a staged path completes the last two steps. No version is read, listed or
built on before that, so a copy of the directory holds every version that was ever read from it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar
from urllib.parse import unquote

from lance_core.commit.handlers.handler import CommitHandler, ExclusiveStore
from lance_core.commit.handlers.manifest_store import ManifestRow, ManifestStore
from lance_core.commit.handlers.slots import Slot, find_slot, root_of, slot_number, uri_of
from lance_core.errors import (
    AlreadyExists,
    ManifestNotSynchronized,
    NotFound,
    PreconditionFailed,
    StorageError,
    StorageUnknown,
)
from lance_core.format.naming import VERSIONS_DIRECTORY
from lance_core.storage.keys import check_key, check_prefix
from lance_core.storage.overlap import Overlap
from lance_core.storage.port import ObjectMeta, ObjectStore, Results
from lance_core.storage.retries import put_with_retries

T = TypeVar("T")
R = TypeVar("R")

logger = logging.getLogger(__name__)

_WORKERS = 16


class ExternalManifestHandler(CommitHandler):
    """Claims names through rows of `manifests`, on an object store without exclusive writes.

    Every writer of a table must use the same manifest store and the same URI of the object store (symbolic links on a
    local disk are resolved). Versions older than the manifest store remain valid: a version without a row is what the
    object store holds. The caller closes `manifests`.
    """

    def __init__(self, manifests: ManifestStore) -> None:
        self.manifests = manifests

    def over(self, store: ObjectStore) -> ObjectStore:
        """`store`, with manifests and all other exclusive names committed in the manifest store."""
        return ExternalManifestStore(store, self.manifests)


class ExternalManifestStore(ExclusiveStore):
    """`inner`, with exclusive writes decided by `manifests`.

    Reading a manifest looks up its row first, and listing looks up staged rows. Both finalise staged versions that they
    find, and raise `ManifestNotSynchronized` if they cannot. Other keys (tags, branches) are claimed by the same steps
    but read directly: they are visible once they are finalised.

    A row whose file was removed by a clean-up counts as vacant, and is claimed by replacing that row. All writes are
    durable regardless of `durable`, because a row must not outlive its file.
    """

    def __init__(self, inner: ObjectStore, manifests: ManifestStore) -> None:
        super().__init__(inner)
        self._manifests = manifests
        self._root = root_of(inner)
        self.local = inner.local and manifests.local
        self._overlap = Overlap(_WORKERS, "manifests") if inner.local and not manifests.local else None

    def get(self, path: str, *, at_most: int | None = None) -> bytes:
        self._finalise_if_staged(path)
        return self.inner.get(path, at_most=at_most)

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        self._finalise_if_staged(path)
        return self.inner.get_range(path, offset, length)

    def head(self, path: str) -> ObjectMeta:
        self._finalise_if_staged(path)
        return self.inner.head(path)

    def put(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        self._finalise_if_staged(path)
        return self.inner.put(path, data, durable=durable)

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:  # noqa: ARG002
        slot = self._slot(path)
        e_tag, finished = self._put_if_absent(slot, data)
        if not finished and not slot.is_manifest:
            raise StorageUnknown(f"{slot.uri}: claimed, but not visible yet")
        return e_tag

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str | None:  # noqa: ARG002
        check_key(staged)
        slot = self._slot(target)
        e_tag, finished = self._put_if_absent(slot, data)
        if not finished:  # the caller hands the final name to clients that may not use the manifest store
            raise StorageUnknown(f"{slot.uri}: claimed, but not visible yet")
        return e_tag

    def replace(self, path: str, data: bytes, *, if_match: str) -> str | None:
        slot = self._slot(path)
        there = self._row(slot)
        if there is not None and there.staged:
            self._synchronise(slot, there)
            there = there.finished()
        found = self.inner.head(path).e_tag
        if found != if_match:
            raise PreconditionFailed(f"{slot.uri}: expected e_tag {if_match}, found {found}")
        row = self._stage(slot, data)
        if not self._decide(slot, row, lambda: self._swap(there, row)):
            raise PreconditionFailed(f"{slot.uri}: expected e_tag {if_match}, but another writer replaced the object")
        e_tag, finished = self._conclude(slot, row, data)
        if not finished:
            raise StorageUnknown(f"{slot.uri}: replaced, but not visible yet")
        return e_tag

    def copy(self, source: str, target: str, *, origin: ObjectStore | None = None, durable: bool = True) -> None:
        self._finalise_if_staged(target)
        if slot_number(source):
            (origin or self).head(source)  # finalises the source, which a copy inside the store would not do
        super().copy(source, target, origin=origin, durable=durable)

    def delete(self, path: str) -> None:
        """See `ObjectStore.delete`. Also removes the row of a manifest."""
        slot = self._slot(path)
        row = self._row(slot) if slot.is_manifest else None
        if row is not None and row.staged and (self._exists(path) or self._exists(_staged_key(slot, row))):
            self._synchronise(slot, row)
            row = row.finished()
        # The file is removed first: while it exists the name cannot be claimed, and a row without a file is vacant.
        self.inner.delete(path)
        if row is not None:
            self._attempt(slot, lambda: self._manifests.remove(row))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        check_prefix(prefix)
        base, _, name = prefix.rpartition("/")
        if name == VERSIONS_DIRECTORY:
            rows = self._manifests.staged(uri_of(self._root, base))
        else:
            rows = self._manifests.staged(uri_of(self._root, prefix), below=True)
        for row in rows:
            slot = self._slot_of(row)
            if slot.is_manifest:
                self._synchronise(slot, row)
            else:
                self._attempt(slot, partial(self._synchronise, slot, row))
        return self.inner.list(prefix, start_after=start_after)

    first = ObjectStore.first  # by listing, which finalises staged versions

    def close(self) -> None:
        if self._overlap is not None:
            self._overlap.close()
        super().close()

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        return super().map(call, items) if self._overlap is None else self._overlap.map(call, items)

    def beside(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        return super().beside(call) if self._overlap is None else self._overlap.beside(call)

    def _slot(self, path: str) -> Slot:
        check_key(path)
        return find_slot(self._root, path)

    def _slot_of(self, row: ManifestRow) -> Slot:
        return find_slot(self._root, unquote(row.final_path.removeprefix(f"{self._root}/")))

    def _row(self, slot: Slot) -> ManifestRow | None:
        """The row of a slot; None also if its version is committed under another name."""
        row = self._manifests.get(slot.base_uri, slot.number)
        return row if row is not None and row.final_path == slot.uri else None

    def _finalise_if_staged(self, path: str) -> None:
        """Finalise the version at `path` if it is committed but staged. Does nothing for other keys."""
        if slot_number(path):
            slot = self._slot(path)
            row = self._row(slot)
            if row is not None and row.staged:
                self._synchronise(slot, row)

    def _put_if_absent(self, slot: Slot, data: bytes) -> tuple[str | None, bool]:
        """Commit. Returns the e_tag, and whether the final name exists. Raises `AlreadyExists`, `StorageUnknown`."""
        if slot.is_manifest:
            # Versions become visible in ascending order: stock writers fail on a table with version 6 and not 5.
            for row in self._manifests.staged(slot.base_uri):
                self._synchronise(self._slot_of(row), row)
        if self._exists(slot.key):
            raise AlreadyExists(f"{slot.uri}: expected a vacant key")
        row = self._stage(slot, data)
        if not self._decide(slot, row, lambda: self._manifests.put_if_absent(row) or self._reclaim(slot, row)):
            raise AlreadyExists(f"{slot.uri}: expected a vacant key, found the row of another writer")
        return self._conclude(slot, row, data)

    def _stage(self, slot: Slot, data: bytes) -> ManifestRow:
        name = str(uuid.uuid4())
        row = ManifestRow(slot.base_uri, slot.number, f"{slot.uri}-{name}", len(data), name)
        put_with_retries(self.inner, _staged_key(slot, row), data)
        return row

    def _decide(self, slot: Slot, row: ManifestRow, write: Callable[[], bool]) -> bool:
        """Write the row of a staged file. The file is removed only if no row names it, now or later."""
        try:
            won = write()
        except StorageUnknown:
            raise
        except StorageError:
            self._attempt(slot, lambda: self.inner.delete(_staged_key(slot, row)))
            raise
        if not won:
            self._attempt(slot, lambda: self.inner.delete(_staged_key(slot, row)))
        return won

    def _reclaim(self, slot: Slot, row: ManifestRow) -> bool:
        """Claim a name whose row has no file any more. Returns whether that succeeded.

        The row of a version whose only file was staged and is lost is never replaced, because the loss must be
        reported. That of a tag or branch is.
        """
        there = self._manifests.get(slot.base_uri, slot.number)
        if there is None:
            return False
        if there.final_path != slot.uri:
            raise StorageError(f"{slot.uri}: its version is already committed under the name {there.final_path}")
        if there.staged and (slot.is_manifest or self._exists(_staged_key(slot, there))):
            self._attempt(slot, lambda: self._synchronise(slot, there))
            return False
        return not self._exists(slot.key) and self._manifests.replace(there, row)

    def _swap(self, there: ManifestRow | None, row: ManifestRow) -> bool:
        return self._manifests.put_if_absent(row) if there is None else self._manifests.replace(there, row)

    def _conclude(self, slot: Slot, row: ManifestRow, data: bytes) -> tuple[str | None, bool]:
        """Make the last two steps as the writer. The commit is valid even if they fail."""
        try:
            return self._finalise(slot, row, data), True
        except ManifestNotSynchronized as error:
            logger.warning("%s; the next read retries", error)
            return None, False

    def _synchronise(self, slot: Slot, row: ManifestRow) -> None:
        """Make the last two steps as a reader, from the staged file. Raises `ManifestNotSynchronized`."""
        staged = _staged_key(slot, row)
        try:
            data = self.inner.get(staged)
        except NotFound as error:
            if self._was_finalised(slot, row):
                return
            raise _not_synchronised(row, "the staged file is missing") from error
        except StorageError as error:
            raise _not_synchronised(row, f"the staged file cannot be read: {error}") from error
        if len(data) != row.size:
            raise _not_synchronised(row, f"the staged file has {len(data)} bytes, not {row.size}")
        self._finalise(slot, row, data)

    def _finalise(self, slot: Slot, row: ManifestRow, data: bytes) -> str | None:
        """Put the final name, then update the row. Idempotent: every caller puts the same bytes."""
        try:
            e_tag = put_with_retries(self.inner, slot.key, data)
        except StorageError as error:
            raise _not_synchronised(row, f"the final name cannot be written: {error}") from error
        self._attempt(slot, lambda: self._finish(slot, row))
        return e_tag

    def _finish(self, slot: Slot, row: ManifestRow) -> None:
        self._manifests.replace(row, row.finished())
        self.inner.delete(_staged_key(slot, row))

    def _was_finalised(self, slot: Slot, row: ManifestRow) -> bool:
        """Whether a version without a staged file has its final name, or was removed."""
        if self._manifests.get(row.base_uri, row.version) != row:
            return True
        try:
            found = self.inner.head(slot.key)
        except NotFound:
            return False
        if found.size != row.size:
            return False
        self._attempt(slot, lambda: self._manifests.replace(row, row.finished()))
        return True

    def _exists(self, key: str) -> bool:
        try:
            self.inner.head(key)
        except NotFound:
            return False
        return True

    def _attempt(self, slot: Slot, tidy: Callable[[], object]) -> None:
        """Make an optional step; a failure is logged, and a later call makes the step."""
        try:
            tidy()
        except StorageError as error:
            logger.warning("%s: %s", slot.uri, error)


def _staged_key(slot: Slot, row: ManifestRow) -> str:
    return f"{slot.key}-{row.uuid}"


def _not_synchronised(row: ManifestRow, reason: str) -> ManifestNotSynchronized:
    return ManifestNotSynchronized(
        f"{row.final_path}: committed in the external manifest store, but not in the object store: {reason}. "
        f"Reading works again once {row.path} can be copied there; removing the row abandons the version"
    )

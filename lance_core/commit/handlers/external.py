"""The external manifest store of the Lance transaction specification: four steps, which readers finish if need be.

    stage         put `<final name>-<uuid>`; nobody looks there
    commit        put the row (base_uri, version) -> staged path, if there is none      <- the commit point
    finalise      put the same bytes under the final name
    update        replace the row by one with the final path, then delete the staged file

A row with a staged path tells whoever meets it that the last two steps are to be done. No version is read, listed or
built on before they are: a copy of the directory then holds all that was ever read from it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar
from urllib.parse import unquote

from lance_core.commit.durability import put_with_retries
from lance_core.commit.handlers.exclusion import ExclusiveStore
from lance_core.commit.handlers.handler import CommitHandler
from lance_core.commit.handlers.manifest_store import ManifestRow, ManifestStore
from lance_core.commit.handlers.slots import Slot, find_slot, root_of, slot_number, uri_of
from lance_core.errors import (
    AlreadyExists,
    ManifestNotSynchronized,
    NotFound,
    OutcomeUnknown,
    PreconditionFailed,
    StorageError,
)
from lance_core.format.naming import VERSIONS_DIRECTORY
from lance_core.storage.keys import check_key, check_prefix
from lance_core.storage.overlap import Overlap
from lance_core.storage.port import ObjectMeta, ObjectStore, Results

T = TypeVar("T")
R = TypeVar("R")

logger = logging.getLogger(__name__)

_WORKERS = 16


class ExternalManifestHandler(CommitHandler):
    """Lets `manifests` decide who has a name, on a store that need not have any exclusive write.

    Every writer of a table must use the same manifest store and, of several URIs that lead there, the same one (links
    on a local disk excepted). Tables whose manifests are older than the store go on as they are: a version without a
    row is what the object store has. The caller closes `manifests`.
    """

    def __init__(self, manifests: ManifestStore) -> None:
        self.manifests = manifests

    def over(self, store: ObjectStore) -> ObjectStore:
        """`store`, whose manifests are committed in the manifest store; other exclusive names are, too."""
        return ExternalManifestStore(store, self.manifests)


class ExternalManifestStore(ExclusiveStore):
    """`inner` with its exclusive writes decided by `manifests`.

    Reading a manifest asks `manifests` first, listing asks for what is staged below; both finish what they meet, and
    raise `ManifestNotSynchronized` if they cannot. Keys that are no manifests (tags, branches) are claimed by the same
    steps, but read without asking: they appear when they are finalised.

    A row whose file is gone, removed by whoever cleaned up, holds nothing: the name is vacant, and is claimed by
    replacing that very row. What is written is durable, whatever `durable` says: a row must not outlive its file.
    """

    def __init__(self, inner: ObjectStore, manifests: ManifestStore) -> None:
        super().__init__(inner)
        self._manifests = manifests
        self._root = root_of(inner)
        self.local = inner.local and manifests.local
        self._overlap = Overlap(_WORKERS, "manifests") if inner.local and not manifests.local else None

    def get(self, path: str) -> bytes:
        self._finalise_if_staged(path)
        return self.inner.get(path)

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
            raise OutcomeUnknown(f"{slot.uri}: claimed, but not to be seen yet")
        return e_tag

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str | None:  # noqa: ARG002
        check_key(staged)
        slot = self._slot(target)
        e_tag, finished = self._put_if_absent(slot, data)
        if not finished:  # who publishes tells others the final name, and they may not know the manifest store
            raise OutcomeUnknown(f"{slot.uri}: claimed, but not to be seen yet")
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
            raise PreconditionFailed(f"{slot.uri}: expected e_tag {if_match}, and somebody replaced it")
        e_tag, finished = self._conclude(slot, row, data)
        if not finished:
            raise OutcomeUnknown(f"{slot.uri}: replaced, but not to be seen yet")
        return e_tag

    def copy(self, source: str, target: str, *, origin: ObjectStore | None = None, durable: bool = True) -> None:
        self._finalise_if_staged(target)
        if slot_number(source):
            (origin or self).head(source)  # the stores' own copy asks nobody what is staged
        super().copy(source, target, origin=origin, durable=durable)

    def delete(self, path: str) -> None:
        """See `ObjectStore.delete`. Of a version whose files are all gone it removes the row."""
        slot = self._slot(path)
        row = self._row(slot) if slot.is_manifest else None
        if row is not None and row.staged and (self._exists(path) or self._exists(_staged_key(slot, row))):
            self._synchronise(slot, row)
            row = row.finished()
        # The file goes first: while it is there nobody claims the name, and without it the row holds nothing.
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

    first = ObjectStore.first  # listing finishes what is staged

    def close(self) -> None:
        if self._overlap is not None:
            self._overlap.close()
        super().close()

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        return super().map(call, items) if self._overlap is None else self._overlap.map(call, items)

    def _slot(self, path: str) -> Slot:
        check_key(path)
        return find_slot(self._root, path)

    def _slot_of(self, row: ManifestRow) -> Slot:
        return find_slot(self._root, unquote(row.final_path.removeprefix(f"{self._root}/")))

    def _row(self, slot: Slot) -> ManifestRow | None:
        """The row of a slot; None also when its version is committed under another name."""
        row = self._manifests.get(slot.base_uri, slot.number)
        return row if row is not None and row.final_path == slot.uri else None

    def _finalise_if_staged(self, path: str) -> None:
        """Bring a committed version under its final name; nothing to do for other keys."""
        if slot_number(path):
            slot = self._slot(path)
            row = self._row(slot)
            if row is not None and row.staged:
                self._synchronise(slot, row)

    def _put_if_absent(self, slot: Slot, data: bytes) -> tuple[str | None, bool]:
        """Commit; the e_tag, and whether the name is there. Raises `AlreadyExists`, `OutcomeUnknown`."""
        if slot.is_manifest:
            # Versions become visible upward: a table that shows 6 and not 5 makes stock writers fail.
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
        """Write the row of a staged file. The file goes only when it is known that no row names it or ever will."""
        try:
            won = write()
        except OutcomeUnknown:
            raise
        except StorageError:
            self._attempt(slot, lambda: self.inner.delete(_staged_key(slot, row)))
            raise
        if not won:
            self._attempt(slot, lambda: self.inner.delete(_staged_key(slot, row)))
        return won

    def _reclaim(self, slot: Slot, row: ManifestRow) -> bool:
        """Take a name whose row holds nothing: its file was there, and somebody removed it.

        A version whose only file was staged, and is gone, is a loss that nobody may pass over; a tag is not.
        """
        there = self._manifests.get(slot.base_uri, slot.number)
        if there is None:
            return False
        if there.final_path != slot.uri:
            raise StorageError(f"{slot.uri}: its version is committed already, under the name {there.final_path}")
        if there.staged and (slot.is_manifest or self._exists(_staged_key(slot, there))):
            self._attempt(slot, lambda: self._synchronise(slot, there))
            return False
        return not self._exists(slot.key) and self._manifests.replace(there, row)

    def _swap(self, there: ManifestRow | None, row: ManifestRow) -> bool:
        return self._manifests.put_if_absent(row) if there is None else self._manifests.replace(there, row)

    def _conclude(self, slot: Slot, row: ManifestRow, data: bytes) -> tuple[str | None, bool]:
        """The last two steps by the writer. The commit stands, however they end."""
        try:
            return self._finalise(slot, row, data), True
        except ManifestNotSynchronized as error:
            logger.warning("%s; whoever reads it next tries again", error)
            return None, False

    def _synchronise(self, slot: Slot, row: ManifestRow) -> None:
        """The last two steps by a reader, from the staged file. Raises `ManifestNotSynchronized`."""
        staged = _staged_key(slot, row)
        try:
            data = self.inner.get(staged)
        except NotFound as error:
            if self._was_finalised(slot, row):
                return
            raise _not_synchronised(row, "the staged file is gone") from error
        except StorageError as error:
            raise _not_synchronised(row, f"the staged file cannot be read: {error}") from error
        if len(data) != row.size:
            raise _not_synchronised(row, f"the staged file has {len(data)} bytes, not {row.size}")
        self._finalise(slot, row, data)

    def _finalise(self, slot: Slot, row: ManifestRow, data: bytes) -> str | None:
        """Put the final name, and once it is there, say so. Idempotent: everybody puts the same bytes."""
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
        """Whether a version whose staged file is gone stands under its final name, or is no version any more."""
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
        """Do what may as well be done later, by whoever comes next."""
        try:
            tidy()
        except StorageError as error:
            logger.warning("%s: %s", slot.uri, error)


def _staged_key(slot: Slot, row: ManifestRow) -> str:
    return f"{slot.key}-{row.uuid}"


def _not_synchronised(row: ManifestRow, reason: str) -> ManifestNotSynchronized:
    return ManifestNotSynchronized(
        f"{row.final_path}: committed in the external manifest store, and not in the object store: {reason}. "
        f"Reading works again once {row.path} can be copied there; removing the row gives the version up"
    )

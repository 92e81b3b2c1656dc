"""Stores that break one promise each, over a store in memory, and the code that a root check has for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from lance_core.errors import AlreadyExists, NotFound, PreconditionFailed, StorageError, StorageUnknown
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore
from tests.storage.limited import OverwritingStore

R = TypeVar("R")


class RefusingStore(WrappedStore):
    """Refuses some methods, where `when` holds for their key."""

    def __init__(self, *verbs: str, when: Callable[[str], bool] = lambda _path: True) -> None:
        super().__init__(MemoryStore())
        self.verbs = verbs
        self.when = when

    def _call(self, verb: str, path: str, request: Callable[[], R]) -> R:
        if verb in self.verbs and self.when(path):
            raise StorageError(f"{verb} {path}: AccessDenied")
        return request()


class AbsenceStore(WrappedStore):
    """Answers a vacant key as S3 does without the permission to list."""

    def get(self, path: str, *, at_most: int | None = None) -> bytes:
        try:
            return self.inner.get(path, at_most=at_most)
        except NotFound as error:
            raise StorageError(f"{path}: AccessDenied") from error


class LookingStore(WrappedStore):
    """Looks at the key and then writes, as gateways without conditional writes do that accept the header."""

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        if self.find(path) is not None:
            raise AlreadyExists(path)
        time.sleep(0.01)
        return self.put(path, data, durable=durable)


class ResendingStore(WrappedStore):
    """A proxy that sends a write again when its answer was lost, and so tells the winner that it lost."""

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        self.inner.put_if_absent(path, data, durable=durable)
        return self.inner.put_if_absent(path, data, durable=durable)


class ConfusedStore(WrappedStore):
    """Writes the bytes of a writer that it refuses in place of those of the winner."""

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        try:
            return self.inner.put_if_absent(path, data, durable=durable)
        except AlreadyExists:
            self.inner.put(path, data)
            raise


class SilentStore(WrappedStore):
    """Makes the first conditional write without an answer."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self._is_answered = False

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        e_tag = self.inner.put_if_absent(path, data, durable=durable)
        if not self._is_answered:
            self._is_answered = True
            raise StorageUnknown(f"{path}: connection reset")
        return e_tag


class RepeatingStore(WrappedStore):
    """Replaces whatever e_tag is given."""

    def replace(self, path: str, data: bytes, *, if_match: str) -> str | None:
        return self.put(path, data)


class TaglessStore(WrappedStore):
    """Has no e_tags."""

    def head(self, path: str) -> ObjectMeta:
        return self.inner.head(path)._replace(e_tag=None)


class OldReadsStore(WrappedStore):
    """A cache that keeps the first bytes that it has read of a key."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self._cached: dict[str, bytes] = {}

    def get(self, path: str, *, at_most: int | None = None) -> bytes:
        return self._cached.setdefault(path, self.inner.get(path, at_most=at_most))


class OldListingsStore(WrappedStore):
    """Lists what was there at the listing before."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self._before: dict[str, list[ObjectMeta]] = {}

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        before = self._before.get(prefix, [])
        self._before[prefix] = list(self.inner.list(prefix, start_after=start_after))
        return iter(before)


class LingeringStore(WrappedStore):
    """Lists what was deleted."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self._gone: dict[str, ObjectMeta] = {}

    def delete(self, path: str) -> None:
        if self.inner.find(path) is not None:
            self._gone[path] = self.inner.head(path)
        self.inner.delete(path)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        below = [meta for meta in self._gone.values() if meta.path.startswith(f"{prefix}/")]
        return iter(sorted([*self.inner.list(prefix, start_after=start_after), *below]))


class UnorderedStore(WrappedStore):
    """Lists without regard to case."""

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        found = self.inner.list(prefix, start_after=start_after)
        return iter(sorted(found, key=lambda meta: meta.path.lower()))


class FromTheStartStore(WrappedStore):
    """Ignores where a listing is to begin."""

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        return self.inner.list(prefix)


class LastFirstStore(WrappedStore):
    """Has another first key than its listings."""

    def first(self, prefix: str) -> ObjectMeta | None:
        return list(self.inner.list(prefix))[-1]


class UnconditionalDeletesStore(WrappedStore):
    """Deletes whatever e_tag is given."""

    def delete_if(self, path: str, *, if_match: str | None) -> None:
        self.delete(path)


class NeverDeletingStore(WrappedStore):
    """Refuses every e_tag of a delete."""

    def delete_if(self, path: str, *, if_match: str | None) -> None:
        raise PreconditionFailed(f"{path}: {if_match}")


class EmptyCopiesStore(WrappedStore):
    """Makes copies without bytes."""

    def copy(self, source: str, target: str, *, origin: ObjectStore | None = None, durable: bool = True) -> None:
        self.put(target, b"")


def _an_hour_off(hours: int) -> MemoryStore:
    return MemoryStore(clock=lambda: datetime.now(UTC) + timedelta(hours=hours))


BROKEN: Final[dict[str, tuple[Callable[[], ObjectStore], set[str]]]] = {
    "no writes": (
        lambda: RefusingStore("put", "put_if_absent", "replace", "publish", "copy"),
        {"write-refused"},
    ),
    "no reads": (lambda: RefusingStore("get"), {"read-refused", "absence-untold"}),
    "absence is not told": (lambda: AbsenceStore(MemoryStore()), {"absence-untold"}),
    "no listings": (lambda: RefusingStore("list"), {"list-refused"}),
    "no deletes": (lambda: RefusingStore("delete", "delete_if"), {"delete-refused", "left-behind"}),
    "deletes of what is there are refused": (
        lambda: RefusingStore("delete", when=lambda path: path.endswith("/access")),
        {"delete-refused", "left-behind"},
    ),
    "nothing answers": (
        lambda: RefusingStore("get", "head", "put", "list", "delete"),
        {"unreachable"},
    ),
    "put-if-absent overwrites": (lambda: OverwritingStore(MemoryStore()), {"not-exclusive"}),
    "put-if-absent looks and then writes": (lambda: LookingStore(MemoryStore()), {"not-exclusive"}),
    "a proxy sends again": (lambda: ResendingStore(MemoryStore()), {"not-exclusive"}),
    "the bytes of a loser are written": (lambda: ConfusedStore(MemoryStore()), {"not-exclusive"}),
    "put-if-absent is refused": (lambda: RefusingStore("put_if_absent"), {"no-exclusive-write"}),
    "answers are lost": (SilentStore, {"no-answer"}),
    "every e_tag is replaced": (lambda: RepeatingStore(MemoryStore()), {"replace-not-exclusive"}),
    "replacements are refused": (lambda: RefusingStore("replace"), {"no-replace"}),
    "no e_tags": (lambda: TaglessStore(MemoryStore()), {"no-replace", "no-conditional-delete"}),
    "old reads": (OldReadsStore, {"read-differs"}),
    "old listings": (OldListingsStore, {"listing-differs"}),
    "listings with what was deleted": (LingeringStore, {"listing-differs"}),
    "listings in another order": (lambda: UnorderedStore(MemoryStore()), {"listing-order"}),
    "listings always from the start": (lambda: FromTheStartStore(MemoryStore()), {"listing-order"}),
    "another first key": (lambda: LastFirstStore(MemoryStore()), {"listing-order"}),
    "no conditional deletes": (lambda: UnconditionalDeletesStore(MemoryStore()), {"no-conditional-delete"}),
    "conditional deletes are refused": (lambda: RefusingStore("delete_if"), {"no-conditional-delete"}),
    "no e_tag is accepted by a delete": (lambda: NeverDeletingStore(MemoryStore()), {"no-conditional-delete"}),
    "copies are refused": (lambda: RefusingStore("copy"), {"copy-refused"}),
    "copies are empty": (lambda: EmptyCopiesStore(MemoryStore()), {"copy-refused"}),
    "a clock an hour ahead": (lambda: _an_hour_off(1), {"clock-off"}),
    "a clock an hour behind": (lambda: _an_hour_off(-1), {"clock-off"}),
}
"""The store, and the codes of all findings on it."""

"""The port that every byte passes: a handful of verbs with stated atomicity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from lance_core.errors import NotFound, OutcomeUnknown, PreconditionFailed, StorageError
from lance_core.storage.keys import check_key, quote_path

T = TypeVar("T")
R = TypeVar("R")
Results: TypeAlias = list[R]
"""A list, under a name that the method `list` does not hide."""


class ObjectMeta(NamedTuple):
    """What a store says about one object.

    `path` is the key, `size` is in bytes, `last_modified` is UTC by the store's own clock. `e_tag` is the store's
    validator as the Lance clients spell it (quoted), or None where the store has none.
    """

    path: str
    size: int
    e_tag: str | None
    last_modified: datetime


class ObjectStore(ABC):
    """Objects under one root.

    A path is a key relative to the root: components joined by '/', no leading slash, no '..'. Every method is
    thread-safe and blocking. A write that may or may not have been applied raises `OutcomeUnknown`; any other
    error of a write means that it was not applied and will not be.
    """

    uri: str
    """The root as clients name it: `file:///data/cat`, `s3://bucket/cat`, `memory://name`.

    No trailing slash; percent-encoded.
    """

    local: bool
    """True when a call costs microseconds: callers need no threads to hide its latency."""

    unsynced: bool = False
    """True when `sync` does nothing although it would have something to do: the kernel decides what survives."""

    content_e_tags: bool
    """True when the same bytes, published by `publish`, keep the e_tag that they had under their staged name."""

    @abstractmethod
    def get(self, path: str) -> bytes:
        """All bytes of an object, in one request, hit or miss. Raises `NotFound`."""

    def find(self, path: str) -> bytes | None:
        """All bytes of an object, in one request; None where there is none."""
        try:
            return self.get(path)
        except NotFound:
            return None

    @abstractmethod
    def get_range(self, path: str, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset`, in one request; shorter at the end. Raises `NotFound`."""

    @abstractmethod
    def head(self, path: str) -> ObjectMeta:
        """Metadata of an object. Raises `NotFound`. Never answered from a cache."""

    def require(self, paths: Sequence[str]) -> None:
        """Raise `NotFound` for the first of these objects that is not there; one parallel step."""
        self.map(self.head, paths)

    def get_with_meta(self, path: str) -> tuple[bytes, ObjectMeta]:
        """All bytes of an object and its metadata, in one parallel step. Raises `NotFound`."""
        looks: Results[Callable[[], Any]] = [partial(self.get, path), partial(self.head, path)]
        data, meta = self.gather(looks)
        return data, meta

    @abstractmethod
    def put(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        """Write an object, atomically replacing what is there. Returns its e_tag.

        With `durable=False` a store that has the choice may return before the bytes survive a power loss; the
        caller then owes a `sync` before anything durable refers to them.
        """

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        """Write an object if the key is vacant: of all concurrent callers exactly one succeeds.

        Readers see nothing or all of it. Returns the e_tag. Raises `AlreadyExists`, or `OutcomeUnknown`.
        """

    @abstractmethod
    def replace(self, path: str, data: bytes, *, if_match: str) -> str | None:
        """Replace an object whose e_tag is `if_match`. Raises `PreconditionFailed` (or `NotFound`), `OutcomeUnknown`.

        On a local file system the comparison and the replacement are two steps.
        """

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str | None:
        """Give `data`, the bytes read from `staged`, the name `target` if that is vacant; `staged` stays.

        Never a store's copy (M2): a link on a local file system, put-if-absent of `data` elsewhere. Atomicity and
        errors as `put_if_absent`. Raises `NotFound` where a link is made and `staged` is not there any more: somebody
        has dealt with it, and what `target` held may have been removed since.
        """
        check_key(staged)
        return self.put_if_absent(target, data, durable=durable)

    def rename_if_absent(self, source: str, target: str, *, durable: bool = True) -> None:
        """Move an object to a vacant key. Raises `AlreadyExists`, `NotFound` (source), `OutcomeUnknown`.

        Of all concurrent callers with one target exactly one succeeds. A crash may leave both names. What is removed
        from `source` is what stands at `target` afterwards: raises `PreconditionFailed`, and removes nothing, when
        `source` was replaced meanwhile (on a file system, what stands there at the moment of the rename is moved).
        """
        check_key(target)
        found = self.head(source)
        self.put_if_absent(target, self.get(source), durable=durable)
        try:
            self.delete_if(source, if_match=found.e_tag)
        except PreconditionFailed:
            raise
        except StorageError as error:
            raise OutcomeUnknown(f"{self.uri}/{source}: moved to {target}, but perhaps not removed") from error

    def copy(self, source: str, target: str, *, origin: ObjectStore | None = None, durable: bool = True) -> None:
        """Make `target` a copy of another object, `source` of `origin` (by default this store), replacing what it held.

        Atomic for readers of `target`. Made by the store itself where both are of one kind and reached by the same
        credentials, else the bytes pass through this process's memory. Raises `NotFound` (source), `OutcomeUnknown`,
        after which it may be repeated. Never for promotion (M2): what is copied is what `source` holds by then.
        """
        check_key(target)
        self.put(target, (origin or self).get(source), durable=durable)

    @property
    def innermost(self) -> ObjectStore:
        """The store itself; of a wrapper, what it is around."""
        return self

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove an object. A vacant key is success."""

    def delete_if(self, path: str, *, if_match: str | None) -> None:
        """Remove an object whose e_tag is `if_match`. A vacant key is success. Raises `PreconditionFailed`.

        In one step where the service compares, in two elsewhere. None, where a store has no e_tags, matches all.
        """
        try:
            found = self.head(path).e_tag
        except NotFound:
            return
        if if_match is not None and found != if_match:
            raise PreconditionFailed(f"{self.uri}/{path}: expected e_tag {if_match}, found {found}")
        self.delete(path)

    @abstractmethod
    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """All objects below the directory `prefix` (recursively), in byte order of their keys, never from a cache.

        `prefix` is a directory key without a trailing slash, or '' for the root; a missing directory yields
        nothing. `start_after` is a key: only greater ones are yielded, so the first of many is one request on
        stores that list in order.
        """

    def first(self, prefix: str) -> ObjectMeta | None:
        """The first object below the directory `prefix`, as `list` has them; None where there is none.

        One request for one key where a service lists in order.
        """
        return next(iter(self.list(prefix)), None)

    @abstractmethod
    def sync(self, paths: Iterable[str]) -> None:
        """Make objects written (by anybody) survive a power loss: their bytes and every directory on their way.

        A missing path raises `NotFound`. Nothing to do on stores whose writes are durable when answered.
        """

    @abstractmethod
    def object_path(self, path: str) -> str:
        """The key as Lance clients spell it on the wire: relative to the bucket or file system, no leading slash."""

    @abstractmethod
    def relative_path(self, object_path: str) -> str | None:
        """Inverse of `object_path` (a leading slash is tolerated). None when it lies outside this root."""

    @abstractmethod
    def close(self) -> None:
        """Release connections and threads. The store is not used afterwards."""

    def object_uri(self, path: str) -> str:
        """The full URI of a key, as pylance opens it."""
        return f"{self.uri}/{quote_path(path)}" if path else self.uri

    @abstractmethod
    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        """`[call(item) for item in items]`, overlapping the calls where that saves time.

        All calls are made even when one fails; then the first error, in order, is raised.
        """

    def gather(self, calls: Sequence[Callable[[], R]]) -> Results[R]:
        """Make independent calls as one parallel step and return their results in order."""
        return self.map(lambda call: call(), calls)

"""`ObjectStore`, the interface of all storage, with the atomicity and errors of each method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from lance_core.errors import NotFound, PreconditionFailed, StorageError, StorageUnknown
from lance_core.storage.keys import check_key, check_prefix, quote_path

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Results: TypeAlias = list[R]
"""An alias of `list`, which the method of that name hides in the class."""


class Deferred(Generic[R_co]):
    """A call to be made as one of several in parallel, by `ObjectStore.gather`, and then its result."""

    __slots__ = ("_call", "_results")

    def __init__(self, call: Callable[[], R_co]) -> None:
        self._call = call
        self._results: Results[R_co] = []

    def __call__(self) -> None:
        """Make the call."""
        self._results.append(self._call())

    @property
    def result(self) -> R_co:
        """The result of the call. It must have been made."""
        return self._results[-1]


class ObjectMeta(NamedTuple):
    """Metadata of one object.

    Attributes:
        path: The key.
        size: The size in bytes.
        e_tag: The store's validator in the quoted form of the Lance clients; None if the store has none.
        last_modified: The time of the last write in UTC, by the store's own clock.
    """

    path: str
    size: int
    e_tag: str | None
    last_modified: datetime


class SizeAndDate(NamedTuple):
    """Size of an object in bytes, and the time of its last write in whole seconds since the epoch, rounded down."""

    size: int
    written: int


class WaitingCall(NamedTuple):
    """A call of a store that has not returned yet: its kind, its key ('' for several), and the seconds it has taken."""

    kind: str
    path: str
    seconds: float


class ObjectStore(ABC):
    """Objects under one root.

    A path is a key relative to the root: components joined by '/', no leading slash, no '..'. Every method is
    thread-safe and blocking. A write that may or may not have been applied raises `StorageUnknown`; any other
    error of a write means that it was not applied and will not be.

    Only regular files are objects. In a directory, whatever else has a name (a directory, a named pipe, a device, a
    socket) is nothing there for a read, which never waits for it, and is hidden by listings; a write finds its name
    taken.
    """

    uri: str
    """The root as clients name it: `file:///data/cat`, `s3://bucket/cat`, `memory://name`.

    No trailing slash; percent-encoded.
    """

    local: bool
    """True if a call takes microseconds, so that callers need no threads to hide latency."""

    unsynced: bool = False
    """True if `sync` does nothing although writes are not durable by themselves."""

    content_e_tags: bool
    """True if `publish` keeps the e_tag that the bytes had under their staged name."""

    @abstractmethod
    def get(self, path: str, *, at_most: int | None = None) -> bytes:
        """All bytes of an object, in one request. Raises `NotFound`, `OversizedFile`.

        An object that is larger than `at_most`, or than one of its kind can be (`sizes`), is not read.
        """

    def find(self, path: str) -> bytes | None:
        """All bytes of an object, in one request; None if there is none. Raises `OversizedFile` as `get` does."""
        try:
            return self.get(path)
        except NotFound:
            return None

    @abstractmethod
    def get_range(self, path: str, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset`, in one request; shorter at the end. Raises `NotFound`."""

    @abstractmethod
    def head(self, path: str) -> ObjectMeta:
        """Metadata of an object, never from a cache. Raises `NotFound`."""

    def require(self, paths: Sequence[str]) -> Results[SizeAndDate]:
        """Sizes and dates of these objects. One parallel step. Raises `NotFound` for the first that is not there."""
        return [size_and_date(found) for found in self.map(self.head, paths)]

    def tail(self, path: str, length: int) -> tuple[bytes, SizeAndDate]:
        """At most the last `length` bytes of an object, its size and its date. Raises `NotFound`.

        One call where the store is `local`, else two requests in sequence.
        """
        found = size_and_date(self.head(path))
        return self.get_range(path, max(found.size - length, 0), length), found

    def get_with_meta(self, path: str, *, at_most: int | None = None) -> tuple[bytes, ObjectMeta]:
        """All bytes of an object and its metadata, in one parallel step. Raises as `get` does."""
        looks: Results[Callable[[], Any]] = [partial(self.get, path, at_most=at_most), partial(self.head, path)]
        data, meta = self.gather(looks)
        return data, meta

    @abstractmethod
    def put(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        """Write an object, atomically replacing an existing one. Returns its e_tag.

        With `durable=False` the store may return before the bytes survive a power loss. The caller must then call
        `sync` before anything durable refers to them.
        """

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        """Write an object if the key is vacant: of all concurrent callers exactly one succeeds.

        Atomic for readers. Returns the e_tag. Raises `AlreadyExists`, `StorageUnknown`.
        """

    @abstractmethod
    def replace(self, path: str, data: bytes, *, if_match: str) -> str | None:
        """Replace an object whose e_tag is `if_match`. Raises `PreconditionFailed`, `NotFound`, `StorageUnknown`.

        Atomic. On a local file system, if another writer replaces the object without this method, the new object may be
        seen for a moment before the other one has its name again; a crash in that moment loses the other one. Where the
        file system cannot exchange two files (network file systems), only calls of this method exclude each other.
        """

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str | None:
        """Give `data`, the bytes read from `staged`, the name `target` if that is vacant; `staged` is kept.

        Never a copy inside the store (rule M2): a hard link on a local file system, `put_if_absent` of `data`
        elsewhere. Atomicity and errors as `put_if_absent`. If a link is used, a missing `staged` raises `NotFound`:
        another process has finished with it, and `target` may have been published and removed since.
        """
        check_key(staged)
        return self.put_if_absent(target, data, durable=durable)

    def rename_if_absent(self, source: str, target: str, *, durable: bool = True) -> None:
        """Move an object to a vacant key: of all concurrent callers with one target exactly one succeeds.

        A crash may leave both names. On a local file system the object that is at `source` at the time of the rename
        is moved.

        Raises:
            AlreadyExists: `target` is taken.
            NotFound: `source` does not exist.
            PreconditionFailed: `source` was replaced meanwhile; it is kept.
            StorageUnknown: The object may have been moved, or `source` may not have been removed.
        """
        check_key(target)
        found = self.head(source)
        self.put_if_absent(target, self.get(source), durable=durable)
        try:
            self.delete_if(source, if_match=found.e_tag)
        except PreconditionFailed:
            raise
        except StorageError as error:
            raise StorageUnknown(f"{self.uri}/{source}: moved to {target}, but perhaps not removed") from error

    def copy(self, source: str, target: str, *, origin: ObjectStore | None = None, durable: bool = True) -> None:
        """Make `target` a copy of `source` in the store `origin` (by default this store), replacing its content.

        Atomic for readers of `target`. The store makes the copy itself if both stores are of one kind and use the same
        credentials; otherwise the bytes pass through this process. Never used for promotion (rule M2), because the copy
        is of the content that `source` has when it is made. Raises `NotFound` (source), and `StorageUnknown`, after
        which it may be repeated.
        """
        check_key(target)
        self.put(target, (origin or self).get(source), durable=durable)

    def longest_call(self) -> WaitingCall | None:
        """The call under way that began first; None if there is none, or the store does not measure its calls.

        Copies are left out, and listings: they take as long as there are bytes or keys.
        """
        return None

    @property
    def innermost(self) -> ObjectStore:
        """The store itself; of a wrapper, the innermost wrapped store."""
        return self

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove an object. Succeeds if there is none."""

    def delete_if(self, path: str, *, if_match: str | None) -> None:
        """Remove an object whose e_tag is `if_match` (None matches every object). Succeeds if there is none.

        Atomic if the service has conditional deletes, otherwise, and on a local file system, in two steps. Raises
        `PreconditionFailed`.
        """
        try:
            found = self.head(path).e_tag
        except NotFound:
            return
        if if_match is not None and found != if_match:
            raise PreconditionFailed(f"{self.uri}/{path}: expected e_tag {if_match}, found {found}")
        self.delete(path)

    def delete_all(self, paths: Sequence[str]) -> None:
        """Delete objects, in any order. Those that are not there are no error.

        Not atomic: after an exception some of them may be left. One request for each thousand if the service can.
        """
        self.map(self.delete, paths)

    @abstractmethod
    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """All objects below the directory `prefix` (recursively), in byte order of their keys, never from a cache.

        `prefix` is a directory key without a trailing slash, or '' for the root; a missing directory yields nothing.
        `start_after` is a key: only greater keys are yielded. On stores with ordered listings the first objects take
        one request.
        """

    def unfinished(self, prefix: str) -> Iterator[ObjectMeta]:
        """Files below the directory `prefix` that this store's writers began and did not name yet; in any order.

        `list` hides them. A writer that died leaves one behind; `delete` removes it. A service has none: parts of
        uploads that were not completed are removed by a lifecycle rule of the bucket.
        """
        check_prefix(prefix)
        return iter(())

    def linked_directories(self, prefix: str) -> Sequence[str]:
        """The symbolic links to directories below the directory `prefix`, also behind others; each directory once.

        `list` does not follow them, readers of files by name do. A service has none.
        """
        check_prefix(prefix)
        return ()

    def remove_empty_directories(self, prefix: str, before: datetime) -> None:  # noqa: ARG002
        """Remove the directories at and below `prefix` that are empty, and were last changed before `before`.

        Writers make directories in which nothing is left. A service has none. What cannot be removed stays.
        """
        check_prefix(prefix)

    def first(self, prefix: str) -> ObjectMeta | None:
        """The first object below the directory `prefix`, in the order of `list`; None if there is none.

        One request for one key if the service has ordered listings.
        """
        return next(iter(self.list(prefix)), None)

    def names(self, prefix: str) -> Sequence[str]:
        """The last components of the keys directly below the directory `prefix`, in no order, never from a cache."""
        keys = (meta.path.removeprefix(f"{prefix}/") for meta in self.list(prefix))
        return [key for key in keys if "/" not in key]

    def directories(self, prefix: str) -> Sequence[str]:
        """The names of the directories directly below the directory `prefix` that hold an object, in no order.

        A directory that cannot be listed counts as one that does, as does one with a symbolic link to a directory.

        Never from a cache. One request for each thousand of them if the service has listings with a delimiter; then
        the mark of an empty folder counts as an object.
        """
        below = f"{prefix}/" if prefix else ""
        found: dict[str, None] = {}
        for meta in self.list(prefix):
            name, separator, _ = meta.path.removeprefix(below).partition("/")
            if separator:
                found[name] = None
        return list(found)

    @abstractmethod
    def sync(self, paths: Iterable[str]) -> None:
        """Make objects of any writer durable: their bytes and every directory above them.

        A missing path raises `NotFound`. Does nothing on stores whose writes are durable on return.
        """

    @abstractmethod
    def object_path(self, path: str) -> str:
        """The key as Lance clients send it: relative to the bucket or file system, without a leading slash."""

    @abstractmethod
    def relative_path(self, object_path: str) -> str | None:
        """Inverse of `object_path` (a leading slash is accepted). None if the path is outside this root."""

    def linked_path(self, path: str) -> str | None:  # noqa: ARG002
        """The key of an absolute path of a local file system that leads into this root through symbolic links.

        None if it leads elsewhere, or if the store is none of local files.
        """
        return None

    def contains(self, other: ObjectStore) -> bool:
        """Whether the root of another store is that of this one, or lies below it."""
        return f"{other.uri.rstrip('/')}/".startswith(f"{self.uri.rstrip('/')}/")

    @abstractmethod
    def close(self) -> None:
        """Release connections and threads. The store must not be used afterwards."""

    def object_uri(self, path: str) -> str:
        """The full URI of a key, as pylance opens it."""
        return f"{self.uri}/{quote_path(path)}" if path else self.uri

    @abstractmethod
    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        """`[call(item) for item in items]`, in parallel where that saves time.

        All calls are made even if one fails; then the first error, in order, is raised.
        """

    def gather(self, calls: Sequence[Callable[[], R]]) -> Results[R]:
        """Make independent calls as one parallel step and return their results in order."""
        return self.map(lambda call: call(), calls)

    def beside(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        """Make a call while the block runs; after it where calls are not made in parallel. Ends when both have ended.

        An error of the block is raised rather than one of the call, which need not have begun then.
        """
        return _followed_by(call)


@contextmanager
def _followed_by(call: Callable[[], object]) -> Iterator[None]:
    yield
    call()


def size_and_date(meta: ObjectMeta) -> SizeAndDate:
    """Size and date of an object whose metadata are known."""
    return SizeAndDate(meta.size, int(meta.last_modified.timestamp()))

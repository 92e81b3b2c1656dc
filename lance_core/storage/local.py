"""Object store on the files below one directory, by plain system calls."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Literal, NoReturn, TypeVar

from lance_core.errors import AlreadyExists, NotFound, PreconditionFailed, StorageError, StorageUnknown
from lance_core.storage.durability import Durability, sync_directory, sync_file
from lance_core.storage.file_bytes import (
    NOT_REGULAR,
    copy_bytes,
    open_regular,
    read_exactly,
    same_file,
    unlink,
    write_bytes,
)
from lance_core.storage.keys import check_key, check_prefix, is_key, is_name, quote_path
from lance_core.storage.local_files import e_tag_of, in_order, meta_of, size_and_date_of, sort_key
from lance_core.storage.overlap import call_all
from lance_core.storage.port import ObjectMeta, ObjectStore, Results, SizeAndDate
from lance_core.storage.renaming import exchange_if, locked, rename_to_vacant
from lance_core.storage.sizes import check_size

T = TypeVar("T")
R = TypeVar("R")

_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")
_VACANT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG})
_LEADING_NOWHERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""A symbolic link has no object behind it, or was removed meanwhile."""
_NOT_LINKABLE = frozenset({errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP})
_CREATIONS = 100
"""How often the directory of a file is made, which others may remove again; some file systems let none be made."""
_SILENT = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.ENOTCONN})


class LocalStore(ObjectStore):
    """Files below `root`, which need not exist yet.

    A write is atomic: the bytes go to a temporary file in the same directory, which gets its name by `link` (vacant
    keys only) or `rename`. Temporary files are named `.<32 hex>.tmp`; listings hide them, and a crash may leave one
    behind, which `unfinished` lists. Directories are created with their first object and removed with their last.

    With `durability="fsync"` a durable write returns after fsync of the file and of every directory above it, up to the
    root. With `"none"` nothing is synced, and `sync` does nothing.
    """

    local = True
    content_e_tags = True

    def __init__(self, root: str | os.PathLike[str], durability: Literal["fsync", "none"] = "fsync") -> None:
        if durability not in {"fsync", "none"}:
            raise ValueError(f"durability {durability!r}: expected 'fsync' or 'none'")
        self._root = os.path.abspath(os.fspath(root))  # not realpath, because clients keep symbolic links in URIs
        self._base = self._root.rstrip("/") + "/"
        self.uri = "file://" + quote_path(self._root.rstrip("/"))
        self._durability = Durability(self._root) if durability == "fsync" else None
        self.unsynced = self._durability is None

    @property
    def root(self) -> str:
        """The absolute directory."""
        return self._root

    def get(self, path: str, *, at_most: int | None = None) -> bytes:
        return self._open(path, at_most)[0]

    def find(self, path: str) -> bytes | None:
        try:
            return self._take(path)[0]
        except OSError as error:
            if error.errno in _VACANT:
                return None
            self._raise_read(path, error)

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0:
            raise ValueError(f"{path}: expected a range, found offset {offset}, length {length}")
        try:
            descriptor, found = open_regular(self._file(path))
            try:
                return read_exactly(descriptor, offset, min(found.st_size - offset, length))
            finally:
                os.close(descriptor)
        except OSError as error:
            self._raise_read(path, error)

    def head(self, path: str) -> ObjectMeta:
        return meta_of(path, self._stat(path))

    def require(self, paths: Sequence[str]) -> Results[SizeAndDate]:
        return [size_and_date_of(self._stat(path)) for path in paths]

    def tail(self, path: str, length: int) -> tuple[bytes, SizeAndDate]:
        try:
            descriptor, status = open_regular(self._file(path))
            try:
                found = size_and_date_of(status)
                begin = max(found.size - length, 0)
                return read_exactly(descriptor, begin, found.size - begin), found
            finally:
                os.close(descriptor)
        except OSError as error:
            self._raise_read(path, error)

    def get_with_meta(self, path: str, *, at_most: int | None = None) -> tuple[bytes, ObjectMeta]:
        data, found = self._open(path, at_most)
        return data, meta_of(path, found)

    def put(self, path: str, data: bytes, *, durable: bool = True) -> str:
        file = self._target(path)
        synced = self._durability if durable else None
        temporary, e_tag = self._write(path, file, data, synced is not None)
        try:
            os.replace(temporary, file)
        except OSError as error:
            self._abandon(path, temporary, error)
        self._sync_name(path, file, synced)
        return e_tag

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str:
        file = self._target(path)
        synced = self._durability if durable else None
        temporary, e_tag = self._write(path, file, data, synced is not None)
        try:
            os.link(temporary, file)
        except FileExistsError as error:
            # A network file system may resend a link whose answer was lost, and then find its own link.
            if not same_file(temporary, file):
                unlink(temporary)
                raise self._taken(path, file) from error
        except OSError as error:
            self._abandon(path, temporary, error)
        unlink(temporary)
        self._sync_name(path, file, synced)
        return e_tag

    def replace(self, path: str, data: bytes, *, if_match: str) -> str:
        file = self._target(path)
        self._require_match(path, self._stat(path), if_match)
        temporary, e_tag = self._write(path, file, data, self._durability is not None)
        try:
            # The lock excludes other calls of this method, which would build on a state that lasts a moment only.
            with locked(file) as found:
                self._require_match(path, found, if_match)
                replaced = exchange_if(temporary, file, lambda taken: e_tag_of(taken) == if_match)
                if replaced is None:
                    os.replace(temporary, file)
        except FileNotFoundError as error:
            raise NotFound(f"{self._base}{path}: nothing to replace") from error
        except OSError as error:
            self._raise_write(path, error)
        finally:
            unlink(temporary)
        if replaced is False:
            raise PreconditionFailed(f"{self._base}{path}: expected e_tag {if_match}, found another object")
        self._sync_name(path, file, self._durability)
        return e_tag

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str:
        source = self._file(staged)
        file = self._target(target)
        try:
            found = os.stat(source)
        except OSError:
            found = None
        if found is None:
            raise NotFound(f"{self._base}{staged}: nothing to publish")
        if not stat.S_ISREG(found.st_mode) or found.st_size != len(data):
            # The staged file no longer holds the bytes that the caller verified, so they are written again (rule N5).
            return self.put_if_absent(target, data, durable=durable)
        synced = self._durability if durable else None
        try:
            self._sync_bytes(staged, source, synced)
            self._give_name(os.link, source, file)
        except FileNotFoundError as error:
            raise NotFound(f"{self._base}{staged}: nothing to publish") from error
        except FileExistsError as error:
            raise self._taken(target, file) from error
        except OSError as error:
            if error.errno in _NOT_LINKABLE:
                # Kernels refuse links to files of other users (protected_hardlinks); some file systems have no links.
                return self.put_if_absent(target, data, durable=durable)
            self._raise_write(target, error)
        self._sync_name(target, file, synced)
        return e_tag_of(found)

    def rename_if_absent(self, source: str, target: str, *, durable: bool = True) -> None:
        old = self._file(source)
        new = self._target(target)
        synced = self._durability if durable else None
        self._stat(source)
        self._sync_bytes(source, old, synced)
        try:
            moved = self._give_name(rename_to_vacant, old, new)
            if not moved:
                self._give_name(os.link, old, new)
        except FileExistsError as error:
            raise self._taken(target, new) from error
        except FileNotFoundError as error:
            raise NotFound(f"{self._base}{source}: nothing to rename") from error
        except OSError as error:
            self._raise_write(target, error)
        # The new link must be durable before the old one is removed: a power loss could otherwise lose both.
        self._sync_name(target, new, synced)
        if not moved and same_file(old, new):
            unlink(old)
        self._prune(old)

    def copy(self, source: str, target: str, *, origin: ObjectStore | None = None, durable: bool = True) -> None:
        there = self if origin is None else origin.innermost
        if not isinstance(there, LocalStore):
            super().copy(source, target, origin=origin, durable=durable)
            return
        file = self._target(target)
        synced = self._durability if durable else None
        try:
            descriptor, _ = open_regular(there._file(source))  # noqa: SLF001
        except OSError as error:
            there._raise_read(source, error)  # noqa: SLF001
        try:
            temporary, _ = self._fill(target, file, lambda to: copy_bytes(descriptor, to), synced is not None)
        finally:
            os.close(descriptor)
        try:
            os.replace(temporary, file)
        except OSError as error:
            self._abandon(target, temporary, error)
        self._sync_name(target, file, synced)

    def delete(self, path: str) -> None:
        file = self._file(path)
        try:
            os.unlink(file)
        except OSError as error:
            if error.errno in _VACANT or os.path.isdir(file):
                return
            self._raise_write(path, error)
        self._prune(file)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        check_prefix(prefix)
        return self._walk(f"{prefix}/" if prefix else "", start_after)

    def unfinished(self, prefix: str) -> Iterator[ObjectMeta]:
        check_prefix(prefix)
        return self._walk(f"{prefix}/" if prefix else "", None, unfinished=True)

    def linked_directories(self, prefix: str) -> Sequence[str]:
        check_prefix(prefix)
        found: list[str] = []
        seen, waiting = {os.path.realpath(self._base + prefix)}, [self._base + prefix]
        for start in waiting:
            for directory, names, _ in os.walk(start):
                links = (path for name in names if is_name(name) and os.path.islink(path := f"{directory}/{name}"))
                for link in links:
                    if (there := os.path.realpath(link)) not in seen:
                        seen.add(there)
                        waiting.append(link)
                        found.append(link.removeprefix(self._base))
        return found

    def remove_empty_directories(self, prefix: str, before: datetime) -> None:
        check_prefix(prefix)
        found: list[tuple[str, float]] = []
        for directory, _, _ in os.walk(self._base + prefix):
            with suppress(OSError):
                found.append((directory, os.stat(directory).st_mtime))
        for directory, changed in reversed(found):
            if changed < before.timestamp() and len(directory) > len(self._root):
                with suppress(OSError):  # it is not empty
                    os.rmdir(directory)

    def names(self, prefix: str) -> Sequence[str]:
        check_prefix(prefix)
        try:
            with os.scandir(self._base + prefix) as scan:
                return [entry.name for entry in scan if _is_object(entry)]
        except OSError as error:
            if error.errno in _VACANT:
                return []
            raise StorageError(f"{self._base}{prefix}: cannot list it: {error}") from error

    def directories(self, prefix: str) -> Sequence[str]:
        check_prefix(prefix)
        below = f"{prefix}/" if prefix else ""
        try:
            with os.scandir(self._base + below) as scan:
                names = [entry.name for entry in scan if is_name(entry.name) and _leads_to(entry.is_dir)]
        except OSError as error:
            if error.errno in _VACANT:
                return []
            raise StorageError(f"{self._base}{prefix}: cannot list it: {error}") from error
        return [name for name in names if self._may_hold_objects(f"{below}{name}/")]

    def _may_hold_objects(self, below: str) -> bool:
        """Whether there is an object below a directory, or a link to objects, or the directory cannot be listed."""
        try:
            return any(True for _ in self._walk(below, None)) or bool(self.linked_directories(below[:-1]))
        except StorageError:
            return True

    def sync(self, paths: Iterable[str]) -> None:
        if self._durability is None:
            return
        files = [self._file(path) for path in paths]
        try:
            self._durability.sync_files(files)
        except OSError as error:
            if error.errno in _VACANT:
                raise NotFound(f"{error.filename or error}: nothing to make durable") from error
            raise StorageError(f"{self._base}: fsync failed: {error}") from error

    def object_path(self, path: str) -> str:
        return (self._base + path).strip("/")

    def relative_path(self, object_path: str) -> str | None:
        absolute = "/" + object_path.removeprefix("/")
        if absolute == self._root:
            return ""
        path = absolute.removeprefix(self._base)
        return path if path != absolute and is_key(path) else None

    def linked_path(self, path: str) -> str | None:
        root, real = os.path.realpath(self._root), os.path.realpath(path)
        if real == root:
            return ""
        key = real.removeprefix(root.rstrip("/") + "/")
        return key if key != real and is_key(key) else None

    def contains(self, other: ObjectStore) -> bool:
        there = other.innermost
        if not isinstance(there, LocalStore):
            return False
        at = os.path.realpath(there._root)  # noqa: SLF001
        while not (at == os.path.realpath(self._root) or _is_same(at, self._root)):
            if at == (above := os.path.dirname(at)):
                return False
            at = above
        return True

    def close(self) -> None:
        if self._durability is not None:
            self._durability.close()

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        return call_all(call, items)

    def _require_match(self, path: str, found: os.stat_result, if_match: str) -> None:
        if e_tag_of(found) != if_match:
            raise PreconditionFailed(f"{self._base}{path}: expected e_tag {if_match}, found {e_tag_of(found)}")

    def _file(self, path: str) -> str:
        check_key(path)
        return self._base + path

    def _target(self, path: str) -> str:
        check_key(path)
        if path.endswith(".tmp") and _TEMPORARY.fullmatch(path.rpartition("/")[2]):
            raise StorageError(f"key {path!r}: names of this form are reserved for temporary files")
        return self._base + path

    def _open(self, path: str, at_most: int | None) -> tuple[bytes, os.stat_result]:
        try:
            return self._take(path, at_most)
        except OSError as error:
            self._raise_read(path, error)

    def _take(self, path: str, at_most: int | None = None) -> tuple[bytes, os.stat_result]:
        descriptor, found = open_regular(self._file(path))
        try:
            check_size(self.uri, path, found.st_size, at_most)
            return read_exactly(descriptor, 0, found.st_size), found
        finally:
            os.close(descriptor)

    def _stat(self, path: str) -> os.stat_result:
        try:
            found = os.stat(self._file(path))
        except OSError as error:
            self._raise_read(path, error)
        if not stat.S_ISREG(found.st_mode):
            raise NotFound(f"{self._base}{path}: {NOT_REGULAR}")
        return found

    def _write(self, path: str, file: str, data: bytes, synced: bool) -> tuple[str, str]:
        """Write `data` to a temporary file beside `file`, as `_fill` does."""
        return self._fill(path, file, lambda descriptor: write_bytes(descriptor, data), synced)

    def _fill(self, path: str, file: str, fill: Callable[[int], None], synced: bool) -> tuple[str, str]:
        """Create a temporary file beside `file`. Returns its name, and its e_tag, which a rename does not change."""
        temporary = f"{file[: file.rindex('/') + 1]}.{os.urandom(16).hex()}.tmp"
        try:
            descriptor = self._create(temporary)
        except OSError as error:
            raise StorageError(f"{self._base}{path}: cannot create it: {error}") from error
        try:
            try:
                fill(descriptor)
                if synced:
                    os.fsync(descriptor)
                return temporary, e_tag_of(os.fstat(descriptor))
            finally:
                os.close(descriptor)
        except OSError as error:
            unlink(temporary)
            raise StorageError(f"{self._base}{path}: cannot write it: {error}") from error

    def _create(self, temporary: str) -> int:
        for _ in range(_CREATIONS):
            try:
                return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            except FileNotFoundError:
                self._make_directory(os.path.dirname(temporary))
        raise _no_directory(temporary)

    def _give_name(self, call: Callable[[str, str], R], source: str, file: str) -> R:
        """Link or rename a file, and create missing directories of its new name."""
        for _ in range(_CREATIONS):
            try:
                return call(source, file)
            except FileNotFoundError:
                if not os.path.lexists(source):
                    raise
                self._make_directory(os.path.dirname(file))
        raise _no_directory(file)

    def _make_directory(self, directory: str) -> None:
        """Create a directory and its missing parents. A concurrent `_prune` may remove them again."""
        try:
            os.mkdir(directory)
        except FileExistsError:
            return
        except FileNotFoundError:
            parent = os.path.dirname(directory)
            self._make_directory(parent)
            with suppress(FileExistsError, FileNotFoundError):
                os.mkdir(directory)
        if self._durability is not None and len(directory) <= len(self._root):
            sync_directory(os.path.dirname(directory))

    def _prune(self, file: str) -> None:
        """Remove the directories that are empty without `file`: stock Lance lists a directory `x.lance` as a table."""
        directory = file.rpartition("/")[0]
        while len(directory) > len(self._root):
            try:
                os.rmdir(directory)
            except OSError:
                return
            directory = directory.rpartition("/")[0]

    def _sync_bytes(self, path: str, file: str, synced: Durability | None) -> None:
        if synced is None:
            return
        try:
            sync_file(file)
        except OSError as error:
            if error.errno in _VACANT:
                raise NotFound(f"{self._base}{path}: nothing there") from error
            raise StorageError(f"{self._base}{path}: fsync failed: {error}") from error

    def _sync_name(self, path: str, file: str, synced: Durability | None) -> None:
        if synced is None:
            return
        try:
            synced.sync_way(os.path.dirname(file))
        except OSError as error:
            raise StorageUnknown(f"{self._base}{path}: written, but perhaps not durable: {error}") from error

    def _walk(self, below: str, start_after: str | None, *, unfinished: bool = False) -> Iterator[ObjectMeta]:
        """The objects, or only the temporary files."""
        try:
            with os.scandir(self._base + below) as scan:
                # Names that are not UTF-8 are not keys.
                entries = [(sort_key(entry), entry) for entry in scan if is_name(entry.name)]
        except OSError as error:
            if error.errno in _VACANT:
                return
            raise StorageError(f"{self._base}{below}: cannot list it: {error}") from error
        for name, entry in in_order(entries):
            path = below + entry.name
            if name.endswith("/"):
                key = below + name
                if start_after is None or start_after < key or start_after.startswith(key):
                    yield from self._walk(path + "/", start_after, unfinished=unfinished)
            elif (start_after is None or start_after < path) and unfinished == bool(_TEMPORARY.fullmatch(entry.name)):
                meta = self._entry_meta(path, entry)
                if meta is not None:
                    yield meta

    def _entry_meta(self, path: str, entry: os.DirEntry[str]) -> ObjectMeta | None:
        try:
            found = entry.stat()
        except OSError as error:
            if error.errno in _LEADING_NOWHERE:
                return None
            raise StorageError(f"{self._base}{path}: cannot read it: {error}") from error
        return meta_of(path, found) if stat.S_ISREG(found.st_mode) else None

    def _taken(self, path: str, file: str) -> StorageError:
        if os.path.exists(file) and not os.path.isfile(file):
            return StorageError(f"{self._base}{path}: expected a vacant key, found what is {NOT_REGULAR}")
        return AlreadyExists(f"{self._base}{path}: expected a vacant key")

    def _raise_read(self, path: str, error: OSError) -> NoReturn:
        if error.errno in _VACANT:
            found = NOT_REGULAR if error.strerror == NOT_REGULAR else "nothing there"
            raise NotFound(f"{self._base}{path}: {found}") from error
        raise StorageError(f"{self._base}{path}: cannot read it: {error}") from error

    def _raise_write(self, path: str, error: OSError) -> NoReturn:
        if error.errno in _SILENT:
            raise StorageUnknown(f"{self._base}{path}: the file system did not answer: {error}") from error
        raise StorageError(f"{self._base}{path}: cannot write it: {error}") from error

    def _abandon(self, path: str, temporary: str, error: OSError) -> NoReturn:
        unlink(temporary)
        self._raise_write(path, error)


def _is_same(path: str, other: str) -> bool:
    """Whether two paths lead to one file, as names do that differ in case only, or a directory mounted twice."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _no_directory(file: str) -> StorageError:
    return StorageError(f"{os.path.dirname(file)}: expected a directory in which files can be made, found none")


def _is_object(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a file with a name of its own, by the directory alone."""
    return is_name(entry.name) and _leads_to(entry.is_file) and not _TEMPORARY.fullmatch(entry.name)


def _leads_to(check: Callable[[], bool]) -> bool:
    """The result of `check` of a directory entry; False for a symbolic link in a loop, for which it raises."""
    try:
        return check()
    except OSError as error:
        if error.errno in _LEADING_NOWHERE:
            return False
        raise

"""Sources of rows: files, patterns, directories, buckets, web addresses, standard input and pipes.

What can be read only once is kept in a temporary file meanwhile. A directory is the pattern `**/*` below it. Links are
followed; a file that is found twice, or a link that leads nowhere, is refused.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from lance_core.errors import NotFound, StorageError
from lance_core.hidden_credentials import without_credentials
from lance_core.storage.keys import check_key
from lance_core.storage.opening import BUCKETS, open_store
from namespace_server.cli.files.formats import HEAD_BYTES, FileFormat, compression_of, format_of, found_compression
from namespace_server.cli.files.refusals import FileRefused, refused_as

if TYPE_CHECKING:
    from lance_core.storage.port import ObjectStore

_STANDARD_INPUT: Final = frozenset({"-", "/dev/stdin", "/dev/fd/0"})
_WEB: Final = ("http://", "https://")
_WILDCARDS: Final = frozenset("*?[")
_ANY_DEPTH: Final = "**"
_ALL_BELOW: Final = (_ANY_DEPTH, "*")
_NOT_DATA: Final = (".", "_")
"""Begins of names that are hidden, or that engines give to what is not data, such as `_SUCCESS` and `_temporary`."""
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_BUFFER: Final = 8 << 20
_SECONDS: Final = 60.0
"""Without a byte of an answer from the web."""


@dataclass(frozen=True, slots=True)
class RowSource:
    """A file of rows.

    Attributes:
        name: Its name as errors show it.
        format: Its format.
        raw: Opens its bytes from the begin, for reads at any place: a file of pyarrow.
        state: What changes when the file does.
        place: Its identity among other files; None for a source that is read once.
        partition: Columns that directories such as `year=2026` say, with the text of their value.
    """

    name: str
    format: FileFormat
    raw: Callable[[], Any]
    state: Callable[[], object]
    place: str | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Its text from the begin, decompressed. Raises `FileRefused` for what is certainly not text."""
        with closing(self.raw()) as stream:
            head = stream.read(HEAD_BYTES)
            stream.seek(0)
            codec = found_compression(self.name, head)
            if codec is None:
                yield stream
                return
            with pa.CompressedInputStream(stream, codec) as plain:
                yield plain


class SourceFinder:
    """Finds the files that arguments name; temporary copies last as long as the block."""

    def __init__(self, file_format: str | None, storage_options: Mapping[str, str]) -> None:
        self._format = file_format
        self._options = storage_options
        self._kept = ExitStack()
        self._read: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()

    def find(self, text: str) -> list[RowSource]:
        """The files that an argument names, in the order of their names. Raises `FileRefused`, `StorageError`."""
        scheme, colon, rest = text.partition("://")
        if text in _STANDARD_INPUT:
            return [self._copied("standard input", lambda: nullcontext(sys.stdin.buffer), text)]
        if text.startswith(_WEB):
            return [self._downloaded(text)]
        if colon and scheme in BUCKETS:
            return self._in_bucket(text, scheme, rest)
        return self._local(text, local_path(text))

    def _local(self, text: str, path: Path) -> list[RowSource]:
        if path.is_file():
            return [self._file(path, {})]
        if path.is_dir():
            return self._some(text, "in the directory", [self._below(path, each) for each in _files(path, _ALL_BELOW)])
        if path.is_fifo():
            return [self._copied(text, lambda: path.open("rb"), text)]
        if path.exists():
            raise FileRefused(f"{text}: expected a file or a pipe, found a device or a socket")
        if is_pattern(str(path)):
            base, parts = _divided(str(path))
            found = _files(Path(base), parts) if Path(base).is_dir() else []
            return self._some(text, "that match", [self._below(Path(base), each) for each in found])
        if path.suffix:
            format_of(text, self._format)
        raise FileRefused(f"{text}: expected a file, found none")

    def _below(self, base: Path, path: Path) -> RowSource:
        return self._file(path, _partition(path.relative_to(base).parts, str(path)))

    def _file(self, path: Path, partition: Mapping[str, str | None]) -> RowSource:
        def state() -> object:
            found = path.stat()
            return found.st_ino, found.st_size, found.st_mtime_ns

        kind = format_of(str(path), self._format)
        return RowSource(str(path), kind, lambda: pa.OSFile(str(path)), state, str(path.resolve()), partition)

    def _some(self, text: str, which: str, found: list[RowSource]) -> list[RowSource]:
        if not found:
            raise FileRefused(f"{text}: expected files {which}, found none")
        return found

    def _copied(self, name: str, opened: Callable[[], Any], text: str) -> RowSource:
        """A temporary copy of what can be read once."""
        kind = format_of(text, self._format)
        if name in self._read:
            raise FileRefused(f"{name}: expected once, as it can be read once, found twice")
        self._read.add(name)
        copy = self._copy()
        with opened() as stream, _named_copy(name):
            shutil.copyfileobj(stream, copy, _BUFFER)
            copy.flush()
        return RowSource(name, kind, lambda: pa.OSFile(copy.name), lambda: None)

    def _copy(self) -> Any:
        return self._kept.enter_context(tempfile.NamedTemporaryFile(prefix="lance-namespace-"))

    def _downloaded(self, url: str) -> RowSource:
        import httpx

        name = without_credentials(url, is_value=True)
        try:
            path = httpx.URL(url).path
        except httpx.InvalidURL as error:
            raise FileRefused(f"{name}: expected an address of the web: {error}") from None
        kind = format_of(path, self._format)
        copy = self._copy()
        # Some servers call a file that is compressed one with an encoding, which would be taken off on the way.
        is_compressed = compression_of(path) is not None
        try:
            headers = {"Accept-Encoding": "identity"}
            with (
                httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=_SECONDS) as answer,
                _named_copy(name),
            ):
                answer.raise_for_status()
                for part in answer.iter_raw(_BUFFER) if is_compressed else answer.iter_bytes(_BUFFER):
                    copy.write(part)
                copy.flush()
                if "html" in answer.headers.get("Content-Type", "") and _begins_with(copy, b"<"):
                    raise FileRefused(f"{name}: expected a file, found a page of the web")
        except httpx.HTTPStatusError as error:
            raise FileRefused(f"{name}: expected a file, found HTTP status {error.response.status_code}") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise FileRefused(f"{name}: not read: {error or type(error).__name__}") from error
        return RowSource(name, kind, lambda: pa.OSFile(copy.name), lambda: None)

    def _in_bucket(self, text: str, scheme: str, rest: str) -> list[RowSource]:
        bucket, _, key = rest.partition("/")
        root, is_directory, key = f"{scheme}://{bucket}", key.endswith("/"), key.removesuffix("/")
        if not key:
            raise FileRefused(f"{text}: expected a file or directory of the bucket")
        check_bucket_key(text, key)
        store = self._kept.enter_context(closing(open_store(root, self._options)))
        from lance_core.storage.bucket_store import BucketStore  # with libraries that the store of a bucket needs

        assert isinstance(store, BucketStore)
        if not is_directory:
            with suppress(NotFound):
                store.head(key)
                return [self._object(store, root, key, {})]
        base, parts = _divided(key) if is_pattern(key) else (key, _ALL_BELOW)
        begin = f"{base}/" if base else ""

        def refuse(path: str) -> None:
            if _matches(path.removeprefix(begin).split("/"), parts):
                check_bucket_key(f"{root}/{path}", path)

        found = []
        for path in (meta.path for meta in store.list(base, skipped=refuse)):
            names = path.removeprefix(begin).split("/")
            if _matches(names, parts):
                found.append(self._object(store, root, path, _partition(names, f"{root}/{path}")))
        return self._some(text, "that match" if is_pattern(key) else "of this name, or in the directory", found)

    def _object(self, store: ObjectStore, root: str, key: str, partition: Mapping[str, str | None]) -> RowSource:
        def state() -> object:
            found = store.head(key)
            return found.size, found.e_tag, found.last_modified

        def raw() -> Any:
            return pa.PythonFile(io.BufferedReader(_StoredBytes(store, key), _BUFFER), "r")

        name = f"{root}/{key}"
        return RowSource(name, format_of(key, self._format), raw, state, name, partition)


class _StoredBytes(io.RawIOBase):
    """The bytes of an object, read in ranges."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        super().__init__()
        self._store, self._key = store, key
        self._size = store.head(key).size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._size - self._place)
        if wanted <= 0:
            return 0
        data = self._store.get_range(self._key, self._place, wanted)
        if not data:
            raise FileRefused(f"expected {self._size:,} bytes, found {self._place:,}")
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)


def check_bucket_key(text: str, key: str) -> None:
    """Raise `FileRefused` for a key that a store of the bucket would not take as it is, such as `a//b`."""
    try:
        check_key(key)
    except StorageError as error:
        raise FileRefused(f"{text}: {error}") from None


def local_path(text: str) -> Path:
    """The path that a text or a `file://` address names. Raises `FileRefused`."""
    if "://" in text:
        parts = urlsplit(text)
        if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
            schemes = ", ".join(f"{each}://" for each in BUCKETS)
            raise FileRefused(f"{text}: expected a path, file:///path or one of {schemes}")
        return Path(unquote(parts.path))
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise FileRefused(f"{text}: {error}") from None


def is_pattern(text: str) -> bool:
    """Whether a name of files has wildcards."""
    return not _WILDCARDS.isdisjoint(text)


def _divided(pattern: str) -> tuple[str, tuple[str, ...]]:
    """The directory before the first wildcard, and the patterns of the names below it."""
    parts = pattern.split("/")
    first = next(place for place, part in enumerate(parts) if is_pattern(part))
    below = [part for part in parts[first:] if part]
    base = "/".join(parts[:first])
    return base or ("/" if first else ""), (*below, "*") if below[-1] == _ANY_DEPTH else tuple(below)


def _matches(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether names, from the directory on, are those of a pattern; `**` is any number of directories."""
    if not names or not parts:
        return not names and not parts
    if parts[0] == _ANY_DEPTH:
        return _matches(names, parts[1:]) or (_name_matches(names[0], "*") and _matches(names[1:], parts))
    return _name_matches(names[0], parts[0]) and _matches(names[1:], parts[1:])


def _name_matches(name: str, part: str) -> bool:
    return fnmatchcase(name, part) and (not name.startswith(_NOT_DATA) or part.startswith(name[0]))


def _files(base: Path, parts: Sequence[str]) -> list[Path]:
    """The files below a directory that match, by name. Raises `FileRefused` for a link to nowhere or around."""
    found: set[Path] = set()
    _add_files(found, base, parts, {base.resolve()})
    return sorted(found)


def _add_files(found: set[Path], directory: Path, parts: Sequence[str], above: set[Path]) -> None:
    part, rest = parts[0], parts[1:]
    if part == _ANY_DEPTH:
        _add_files(found, directory, rest, above)
        part, rest = "*", parts
    for entry in directory.iterdir():
        if not _name_matches(entry.name, part):
            continue
        if entry.is_dir():
            if rest:
                real = entry.resolve()
                if real in above:
                    raise FileRefused(
                        f"{entry}: expected a directory of its own, found a link to {real}, which it is in"
                    )
                _add_files(found, entry, rest, {*above, real})
        elif not rest:
            if not entry.is_file():
                what = "a pipe, a device or a socket" if entry.exists() else "a link to nothing"
                raise FileRefused(f"{entry}: expected a file, found {what}")
            found.add(entry)


def _partition(names: Sequence[str], path: str) -> dict[str, str | None]:
    """The columns and values of directories such as `year=2026`. Raises `FileRefused` for one twice or of neither."""
    found: dict[str, str | None] = {}
    for each in names[:-1]:
        name, equals, value = map(unquote, each.partition("="))
        if not equals:
            continue
        if not name or not value:
            raise FileRefused(f"{path}: expected a column and a value, {_NO_VALUE} for null, found {each}")
        if name in found:
            raise FileRefused(f"{path}: expected directories with different columns, found {each}")
        found[name] = None if value == _NO_VALUE else value
    return found


def _begins_with(file: Any, mark: bytes) -> bool:
    file.seek(0)
    return bool(file.read(_BUFFER).lstrip().startswith(mark))


def _named_copy(name: str) -> AbstractContextManager[None]:
    """Say what could not be copied where the temporary directory is full."""
    return refused_as(f"{name}: not kept in {tempfile.gettempdir()}")

"""Where rows come from: files, patterns, directories, buckets, web addresses, standard input and pipes.

What can be read only once is kept in a temporary file meanwhile.
"""

from __future__ import annotations

import glob
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from namespace_server.cli.files.formats import HEAD_BYTES, FileFormat, format_of, found_compression
from namespace_server.cli.files.refusals import FileRefused

if TYPE_CHECKING:
    from lance_core.storage.port import ObjectStore

STANDARD_INPUT: Final = "-"
BUCKETS: Final = ("s3", "gs", "az", "abfs", "abfss")
_WEB: Final = ("http://", "https://")
_PATTERN: Final = re.compile(r"[*?\[]")
_PATTERN_PART: Final = re.compile(r"\*\*/|\*|\?|\[[^\]]+\]|.", re.DOTALL)
_REGULAR: Final = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}
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
    """

    name: str
    format: FileFormat
    raw: Callable[[], Any]
    state: Callable[[], object]

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()

    def find(self, text: str) -> list[RowSource]:
        """The files that an argument names, in the order of their names. Raises `FileRefused`, `StorageError`."""
        scheme, colon, rest = text.partition("://")
        if text == STANDARD_INPUT:
            return [self._copied("standard input", lambda: nullcontext(sys.stdin.buffer), text)]
        if text.startswith(_WEB):
            return [self._downloaded(text)]
        if colon and scheme in BUCKETS:
            return self._in_bucket(text, scheme, rest)
        if colon and scheme != "file":
            raise FileRefused(
                f"{text}: expected a path or one of {', '.join(f'{each}://' for each in ('file', *BUCKETS))}"
            )
        return self._local(rest if colon else text)

    def _local(self, text: str) -> list[RowSource]:
        path = Path(text).expanduser()
        if path.is_file():
            return [self._file(path)]
        if path.is_dir():
            found = sorted(each for each in path.rglob("*") if each.is_file())
            wanted = [each for each in found if _is_data(each.relative_to(path).as_posix(), text)]
            return self._some(text, "in the directory", [self._file(each) for each in wanted])
        if path.exists():  # a pipe, or a device
            return [self._copied(text, lambda: path.open("rb"), text)]
        if _PATTERN.search(text):
            files = sorted(each for each in map(Path, glob.glob(str(path), recursive=True)) if each.is_file())  # noqa: PTH207
            return self._some(text, "that match", [self._file(each) for each in files])
        if path.suffix:
            format_of(path.name, self._format)
        raise FileRefused(f"{text}: expected a file, found none")

    def _file(self, path: Path) -> RowSource:
        def state() -> object:
            found = path.stat()
            return found.st_ino, found.st_size, found.st_mtime_ns

        return RowSource(str(path), format_of(path.name, self._format), lambda: pa.OSFile(str(path)), state)

    def _some(self, text: str, which: str, found: list[RowSource]) -> list[RowSource]:
        if not found:
            raise FileRefused(f"{text}: expected files {which}, found none")
        return found

    def _copied(self, name: str, opened: Callable[[], Any], text: str) -> RowSource:
        """A temporary copy of what can be read once."""
        kind = format_of(text, self._format)
        copy = self._kept.enter_context(tempfile.NamedTemporaryFile(prefix="lance-namespace-"))  # noqa: SIM115
        with opened() as stream:
            shutil.copyfileobj(stream, copy, _BUFFER)
        copy.flush()
        return RowSource(name, kind, lambda: pa.OSFile(copy.name), lambda: None)

    def _downloaded(self, url: str) -> RowSource:
        import httpx

        from lance_core.storage.opening import shown_uri

        name = shown_uri(url)
        kind = format_of(httpx.URL(url).path, self._format)
        copy = self._kept.enter_context(tempfile.NamedTemporaryFile(prefix="lance-namespace-"))  # noqa: SIM115
        try:
            with httpx.stream("GET", url, follow_redirects=True, timeout=_SECONDS) as answer:
                answer.raise_for_status()
                for part in answer.iter_bytes(_BUFFER):
                    copy.write(part)
        except httpx.HTTPStatusError as error:
            raise FileRefused(f"{name}: expected a file, found HTTP status {error.response.status_code}") from None
        except httpx.HTTPError as error:
            raise FileRefused(f"{name}: not read: {error or type(error).__name__}") from error
        copy.flush()
        return RowSource(name, kind, lambda: pa.OSFile(copy.name), lambda: None)

    def _in_bucket(self, text: str, scheme: str, rest: str) -> list[RowSource]:
        from lance_core.errors import NotFound
        from lance_core.storage.opening import open_store

        bucket, _, key = rest.partition("/")
        store = self._kept.enter_context(closing(open_store(f"{scheme}://{bucket}", self._options)))
        key = key.rstrip("/")
        if not key:
            raise FileRefused(f"{text}: expected a file or directory of the bucket")
        pattern = _PATTERN.search(key)
        if pattern is None:
            try:
                store.head(key)
            except NotFound:
                below = [meta.path for meta in store.list(key)]
                wanted = [each for each in below if _is_data(each.removeprefix(f"{key}/"), text)]
                found = [self._object(store, f"{scheme}://{bucket}", each) for each in wanted]
                return self._some(text, "in the directory", found) if below else self._some(text, "of this name", [])
            return [self._object(store, f"{scheme}://{bucket}", key)]
        directory = key[: pattern.start()].rpartition("/")[0]
        matches = re.compile(_path_pattern(key)).fullmatch
        keys = [meta.path for meta in store.list(directory) if matches(meta.path)]
        return self._some(text, "that match", [self._object(store, f"{scheme}://{bucket}", each) for each in keys])

    def _object(self, store: ObjectStore, root: str, key: str) -> RowSource:
        def state() -> object:
            found = store.head(key)
            return found.size, found.e_tag, found.last_modified

        def raw() -> Any:
            return pa.PythonFile(io.BufferedReader(_StoredBytes(store, key), _BUFFER), "r")

        return RowSource(f"{root}/{key}", format_of(key, self._format), raw, state)


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


def _is_data(relative: str, directory: str) -> bool:
    """Whether a file below a directory has rows: not a hidden one, nor one of an engine's own such as `_SUCCESS`."""
    parts = relative.split("/")
    if any(part.startswith((".", "_")) for part in parts):
        return False
    if partitions := [part for part in parts[:-1] if "=" in part]:
        raise FileRefused(
            f"{directory}: expected files that have all columns, found the partition {partitions[0]}, whose column the "
            "files lack; write one file from it, or load the files of each partition with their column"
        )
    return True


def _path_pattern(pattern: str) -> str:
    """A regular expression for keys: `*` stays within a part, `**/` is any number of parts."""
    return _PATTERN_PART.sub(lambda found: _REGULAR.get(found[0]) or _class_or_letter(found[0]), pattern)


def _class_or_letter(part: str) -> str:
    return f"[{'^' if part[1] == '!' else ''}{part[1:-1].lstrip('!')}]" if len(part) > 1 else re.escape(part)

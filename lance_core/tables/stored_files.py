"""Compares the files that versions of a table name with storage."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFile, InvalidTransaction, NotFound, UnsupportedFeature
from lance_core.format.decoding import decode_message
from lance_core.format.naming import parse_transaction_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.stated_files import check_stated_files
from lance_core.storage.port import ObjectStore
from lance_core.table_files import PlacedFile


class FileProblem(NamedTuple):
    """A fault of a file that a version names: its kind, and a text for people."""

    file: PlacedFile
    what: Literal["missing", "size", "content"]
    text: str

    @property
    def key(self) -> str:
        """Its key."""
        return str(self.file.key)


class StoredFiles:
    """Files of a store, by the listings of some directories, which are made once.

    Sizes are those of the listings, as are the names. Deletion files and transaction files, which have no stated size,
    are read: each once, whatever the number of versions that name it.
    """

    def __init__(self, store: ObjectStore, sizes: Mapping[str, int]) -> None:
        self._store = store
        self.sizes = dict(sizes)
        self._directories = {directory for key in self.sizes for directory in _directories(key)}
        self._looked_at: set[str] = set()
        self._contents: dict[str, str | None] = {}

    def problems(self, placed: Iterable[PlacedFile], *, sound: Container[str] = ()) -> list[FileProblem]:
        """The faults of the files of a version, as `TableFiles.placed` gives them.

        Files outside the store are not looked at; the contents of those whose keys are in `sound` are not read. One
        request for each file that is read, in parallel; one listing for each directory of a file that no listing has.
        Raises `StorageError` if the store cannot be read.
        """
        inside = [file for file in placed if file.key is not None]
        found = [problem for file in inside if (problem := self._by_listing(file)) is not None]
        known = {problem.key for problem in found}
        read = [file for file in inside if file.kind in {"deletion", "transaction"} and file.key not in known]
        self._read([file for file in read if str(file.key) not in sound])
        contents = ((file, self._contents.get(str(file.key))) for file in read)
        found += (FileProblem(file, "content", text) for file, text in contents if text is not None)
        return found

    def size(self, key: str) -> int | None:
        """The size of a file; None if there is none.

        Listings do not follow a symbolic link to a directory, and have no other directories than were asked for: the
        directory of a file that they lack is listed by itself.
        """
        directory = key.rpartition("/")[0]
        if key not in self.sizes and directory not in self._looked_at:
            self._looked_at.add(directory)
            self.sizes |= {meta.path: meta.size for meta in self._store.list(directory)}
        return self.sizes.get(key)

    def _by_listing(self, file: PlacedFile) -> FileProblem | None:
        key = str(file.key)
        if key.endswith("/"):
            directory = key.rstrip("/")
            if directory in self._directories or next(iter(self._store.list(directory)), None) is not None:
                return None
            return FileProblem(file, "missing", "expected files, found none")
        size = self.size(key)
        if size is None:
            return FileProblem(file, "missing", "expected a file, found none")
        if file.stated.size not in {0, size}:
            return FileProblem(file, "size", f"expected {file.stated.size:,} bytes, found {size:,}")
        return None

    def _read(self, files: Iterable[PlacedFile]) -> None:
        """Read the contents of those files that were not read yet."""
        unread = {str(file.key): file for file in files if file.key not in self._contents}
        self._contents |= zip(unread, self._store.map(self._content_problem, list(unread.values())), strict=True)

    def _content_problem(self, file: PlacedFile) -> str | None:
        key = str(file.key)
        try:
            if file.kind == "transaction":
                return _transaction_problem(key, self._store.get(key))
            check_stated_files(self._store, {key: file.stated}, contents=False)
        except NotFound:
            return "expected a file, found none"
        except (InvalidTransaction, CorruptFile, UnsupportedFeature) as error:
            return str(error)
        return None


def _transaction_problem(key: str, data: bytes) -> str | None:
    """Why the bytes of a transaction file are not a transaction that has its name."""
    named = parse_transaction_name(key.rpartition("/")[2])
    try:
        found = decode_message(pb.Transaction, data)
    except DecodeError as error:
        return f"{len(data):,} bytes are no transaction: {error}"
    known = pb.Transaction()
    known.CopyFrom(found)
    known.DiscardUnknownFields()
    # A later release of the format may have operations that are not known here.
    is_empty = found.WhichOneof("operation") is None and known.ByteSize() == found.ByteSize()
    if named is None or found.uuid != named[1] or is_empty:
        return f"{len(data):,} bytes are not the transaction of this name"
    return None


def _directories(key: str) -> Iterator[str]:
    """The directories above a key."""
    while key := key.rpartition("/")[0]:
        yield key

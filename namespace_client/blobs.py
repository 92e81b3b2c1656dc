"""Values of columns of blobs: one as a file, many as bytes; from a server by HTTP, else by pylance.

A server reads them from storage and sends them, so that the client needs no access to storage.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import httpx
import pyarrow as pa

from namespace_client.error_codes import ErrorCode
from namespace_client.errors import AccessRefused, CatalogUnreachable, CommitRejected, NotFound
from namespace_client.http import HttpClient
from namespace_client.names import Name
from namespace_client.routes import blob_path, object_id
from namespace_client.wire import present
from table_data.batch_operations import Json, TableId
from table_data.errors import require_count

if TYPE_CHECKING:
    from table_data.table_changes import TableChanges

_BUFFER: Final = 1 << 20
"""Bytes that are asked for at once where fewer are read."""
_PIECE: Final = 4 << 20
_ROWS: Final = 1024
"""Values that are asked for at once; a server sends at most so many, and at most 64 MiB of them."""
_TOO_MANY_BYTES: Final = "total blob bytes"
_CONTENT_RANGE: Final = re.compile(r"bytes (?:\d+-\d+|\*)/(\d+)")
_VERSION: Final = "x-lancedb-version"


@dataclass(frozen=True, slots=True)
class WantedBlob:
    """Which value is meant: a column of a table at a version, and a row by its id or by a filter."""

    table: TableId
    column: str
    row: int | None = None
    filter: str | None = None
    branch: str | None = None
    tag: str | None = None
    version: int | None = None
    at: int | None = None


class BlobSource(Protocol):
    """One value, whose bytes stay the same."""

    size: int
    row: int
    version: int
    tag: str | None

    def read(self, offset: int, length: int) -> bytes:
        """Bytes within the value."""
        ...

    def pieces(self, offset: int) -> Iterator[bytes]:
        """All bytes from a place on."""
        ...


class BlobFile(io.BufferedReader):
    """A value of a column of blobs as a file that is read. It can be sought in; what is read is asked for then.

    Of one version of the table, whatever is committed later. Not thread-safe. Reads raise `CatalogUnreachable`,
    `NotFound` when the version is not kept any more, and `CommitRejected` where the file that the value is has changed.

    Attributes:
        size: Bytes.
        row: The id of its row.
        version: The version of the table that it is of.
        tag: A text that is the same for the same value of the same version; None if it is a file elsewhere, which may
            change.
    """

    def __init__(self, source: BlobSource) -> None:
        super().__init__(_RawBlob(source), _BUFFER)
        self._source = source
        self.size = source.size
        self.row = source.row
        self.version = source.version
        self.tag = source.tag

    def read_range(self, offset: int, length: int) -> bytes:
        """Bytes from a place on, fewer at the end. The position of the file stays. Raises `InvalidCall`."""
        if self.closed:
            raise ValueError("read of closed file")
        first = min(require_count("offset", offset), self.size)
        return self._source.read(first, min(require_count("length", length), self.size - first))

    def pieces(self, offset: int = 0) -> Iterator[bytes]:
        """All bytes from a place on, as they come: in one request. The position of the file stays."""
        if self.closed:
            raise ValueError("read of closed file")
        first = min(require_count("offset", offset), self.size)
        return self._source.pieces(first) if first < self.size else iter(())


class _RawBlob(io.RawIOBase):
    def __init__(self, source: BlobSource) -> None:
        self._source = source
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._source.size}[whence]
        if begin + offset < 0:
            raise ValueError(f"negative seek position {begin + offset}")
        self._place = begin + offset
        return self._place

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        length = max(0, min(len(view), self._source.size - self._place))
        if length:
            view[:length] = self._source.read(self._place, length)
            self._place += length
        return length

    def readall(self) -> bytes:
        first = min(self._place, self._source.size)
        data = b"".join(self._source.pieces(first)) if first < self._source.size else b""
        self._place = max(self._place, self._source.size)
        return data


class _RemoteBlob:
    """A value that a server sends."""

    def __init__(self, client: HttpClient, found: httpx.Response, size: int, at: int | None) -> None:
        self._client = client
        self._at = at
        self._address = found.headers["content-location"]
        self.size = size
        self.row = int(self._address.rpartition("/bytes")[0].rpartition("/")[2])
        self.version = int(found.headers[_VERSION])
        self.tag: str | None = found.headers.get("etag")

    def read(self, offset: int, length: int) -> bytes:
        """See `BlobSource.read`."""
        if not length:
            return b""
        answer = self._client.fetch("GET", self._address, headers=self._range(offset, offset + length - 1), at=self._at)
        self._check(answer, offset)
        return self._whole(answer.content, length)

    def pieces(self, offset: int) -> Iterator[bytes]:
        """See `BlobSource.pieces`."""
        left = self.size - offset
        with self._client.stream(self._address, headers=self._range(offset, self.size - 1), at=self._at) as answer:
            self._check(answer, offset)
            for piece in answer.iter_raw(_PIECE):
                left -= len(piece)
                yield piece
        self._whole(b"", left)

    def _range(self, first: int, last: int) -> dict[str, str]:
        return {"Range": f"bytes={first}-{last}"} | ({} if self.tag is None else {"If-Range": self.tag})

    def _check(self, answer: httpx.Response, first: int) -> None:
        """Raise `CommitRejected` unless it is this part of this value."""
        expected = f"bytes {first}-"
        found = answer.headers.get("content-range", "")
        if (
            answer.status_code != httpx.codes.PARTIAL_CONTENT
            or not found.startswith(expected)
            or _size(answer) != self.size
        ):
            raise CommitRejected(
                f"{self._address}: expected the {self.size} bytes that were there when it was opened, found others",
                code=ErrorCode.CONCURRENT_MODIFICATION,
            )

    def _whole(self, data: bytes, length: int) -> bytes:
        if len(data) != length:
            raise CatalogUnreachable(
                f"{self._client.url}{self._address}: expected {length} bytes more, found {len(data)}"
            )
        return data


class _LocalBlob:
    """A value that pylance reads in this process."""

    def __init__(self, changes: TableChanges, dataset: Any, column: str, row: int, size: int, tag: str | None) -> None:
        self._dataset = dataset
        self._column = column
        self._what = f"blob of {changes.name}"
        self.size = size
        self.row = row
        self.version = changes.state.version or 0
        self.tag = tag

    def read(self, offset: int, length: int) -> bytes:
        """See `BlobSource.read`."""
        from table_data.operations.blobs import read_blob
        from table_data.pylance_errors import explained

        with explained(self._what):
            part = {"column": self._column, "row_id": self.row, "offset": offset, "length": length}
            size, data = read_blob(self._dataset, part)  # type: ignore[arg-type]
        if size != self.size or len(data) != length:
            raise CommitRejected(
                f"{self._what}: expected the {self.size} bytes that were there when it was opened, found others",
                code=ErrorCode.CONCURRENT_MODIFICATION,
            )
        return data

    def pieces(self, offset: int) -> Iterator[bytes]:
        """See `BlobSource.pieces`."""
        for place in range(offset, self.size, _PIECE):
            yield self.read(place, min(_PIECE, self.size - place))


def open_remote(client: HttpClient, query: WantedBlob) -> BlobFile | None:
    """A value at a server; None if it is null. Raises as `HttpClient.ask`."""
    path = blob_path(query.table, query.column, query.row)
    # Not HEAD, whose errors have no text.
    answer = client.fetch(
        "GET",
        path,
        headers={"Range": "bytes=0-0"},
        parameters=present(filter=query.filter, branch=query.branch, tag=query.tag, version=query.version),
        at=query.at,
        accepted=(httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE,),
    )
    if answer.status_code == httpx.codes.NO_CONTENT:
        return None
    size = _size(answer)
    if size is None or "content-location" not in answer.headers:
        raise CatalogUnreachable(f"{client.url}: answered {answer.status_code} to {path}, not as a catalog server does")
    return BlobFile(_RemoteBlob(client, answer, size, query.at))


def open_local(changes: TableChanges, query: WantedBlob, refusal: Callable[[str], str | None]) -> BlobFile | None:
    """The same of a table in this process. `refusal` says why the file that a value is, elsewhere, is not read."""
    from table_data.operations.blobs import locate_blobs, read_blob
    from table_data.pylance_errors import explained
    from table_data.requests.found_blobs import blob_tag

    head = changes.require_head()
    with explained(f"blob of {changes.name}"):
        dataset = changes.dataset()
        rows: Json = {"row_ids": [query.row]} if query.row is not None else {"filter": query.filter}
        found = locate_blobs(dataset, {"column": query.column, **rows})  # type: ignore[typeddict-item]
        if len(found) != 1:
            raise _not_one(query, len(found))
        [blob] = found
        if blob.size is None:
            return None
        if blob.place is not None and (reason := refusal(blob.place)) is not None:
            message = f"{changes.name}: the blob of row {blob.row_id} is a file elsewhere, which is not read: {reason}"
            raise AccessRefused(message, code=ErrorCode.PERMISSION_DENIED)
        size = blob.size
        if blob.place is not None and not size:
            part = {"column": query.column, "row_id": blob.row_id, "offset": 0, "length": 0}
            size, _ = read_blob(dataset, part)  # type: ignore[arg-type]
    tag = None if blob.place is not None else _strong(blob_tag(head.identity.sha256, blob.row_id, query.column))
    return BlobFile(_LocalBlob(changes, dataset, query.column, blob.row_id, size, tag))


def read_remote(client: HttpClient, query: WantedBlob, rows: Sequence[int]) -> Iterator[bytes | None]:
    """Whole values of rows at a server, in their order, all of one version."""
    version = query.version
    pending = [rows[first : first + _ROWS] for first in range(0, len(rows), _ROWS)][::-1]
    while pending:
        part = pending.pop()
        body = present(column=query.column, branch=query.branch, version=version, row_ids=list(part))
        path = f"/v1/table/{object_id(query.table)}/fetch_blobs"
        try:
            answer = client.fetch("POST", path, body, at=query.at)
        except CommitRejected as error:
            if _TOO_MANY_BYTES not in str(error):
                raise
            if len(part) > 1:
                pending += [part[len(part) // 2 :], part[: len(part) // 2]]
                continue
            one = WantedBlob(query.table, query.column, part[0], None, query.branch, None, version, query.at)
            found = open_remote(client, one)
            if found is not None:
                version = found.version
            yield None if found is None else found.read()
            continue
        version = int(answer.headers[_VERSION])
        for batch in pa.ipc.open_file(answer.content).read_all().column(0).chunks:
            yield from (value.as_py() for value in batch)


def read_local(
    changes: TableChanges, query: WantedBlob, rows: Sequence[int], refusal: Callable[[str], str | None]
) -> Iterator[bytes | None]:
    """The same of a table in this process."""
    for row in rows:
        found = open_local(changes, WantedBlob(query.table, query.column, row), refusal)
        yield None if found is None else found.read()


def _size(answer: httpx.Response) -> int | None:
    found = _CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
    return None if found is None else int(found[1])


def _strong(tag: str) -> str:
    """As a server writes it."""
    return f'"{tag}"'


def _not_one(query: WantedBlob, found: int) -> CommitRejected:
    name = Name(query.table)
    if query.row is not None:
        text = f"{name}: expected row {query.row}, found none; it may have been deleted"
    else:
        text = f"{name}: filter: expected one row that matches it, found {'several' if found else 'none'}"
    kind = CommitRejected if found else NotFound
    return kind(text, code=ErrorCode.INVALID_INPUT, status=409 if found else 404)

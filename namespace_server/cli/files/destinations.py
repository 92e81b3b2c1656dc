"""Destinations of rows: a file, a bucket, standard output. A file appears when it is whole."""

from __future__ import annotations

import io
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from lance_core.storage.opening import BUCKETS
from namespace_server.cli.files.formats import compression_of
from namespace_server.cli.files.refusals import FileRefused, refused_as
from namespace_server.cli.files.sources import check_bucket_key, local_path

STANDARD_OUTPUT: Final = frozenset({"-", "/dev/stdout", "/dev/fd/1"})


@contextmanager
def destination(place: str | None, storage_options: Mapping[str, str]) -> Iterator[IO[bytes]]:
    """A stream to a file, compressed as the end of its name says. If the block fails there is none, or the old one.

    Raises `FileRefused`, `StorageFailed`, `OSError`.
    """
    if place is None or place in STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    scheme, colon, rest = place.partition("://")
    if not colon or scheme not in BUCKETS:
        with (
            refused_as(f"{place}: not written"),
            _appearing(local_path(place)) as stream,
            _compressed(place, stream) as compressed,
        ):
            yield compressed
        return
    bucket, _, key = rest.partition("/")
    if not key or key.endswith("/"):
        raise FileRefused(f"{place}: expected the name of a file in a bucket")
    check_bucket_key(place, key)
    from table_data.queries.uploading import upload

    with tempfile.NamedTemporaryFile(prefix="lance-namespace-") as copy:
        with _compressed(place, copy) as compressed:
            yield compressed
        copy.flush()
        upload(copy.name, f"{scheme}://{bucket}", key, storage_options)


@contextmanager
def _appearing(file: Path) -> Iterator[IO[bytes]]:
    """A stream to a file that has its name after the block, and is gone if the block fails."""
    if file.exists() and not file.is_file():  # a pipe or a device, which is not replaced
        with file.open("wb") as stream:
            yield stream
        return
    file = file.resolve()  # a link goes on to be one
    partial = file.with_name(f".lance-namespace-{uuid.uuid4()}.part")
    try:
        with partial.open("wb") as stream:
            yield stream
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _compressed(name: str, stream: Any) -> Iterator[Any]:
    codec = compression_of(name)
    if codec is None:
        yield stream
        return
    with pa.CompressedOutputStream(pa.PythonFile(_KeptOpen(stream), "w"), codec) as compressed:
        yield compressed


class _KeptOpen(io.RawIOBase):
    """Writes to a stream that is not closed with it."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._stream.write(data)

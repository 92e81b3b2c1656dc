"""Rows that come as bytes: an Arrow IPC stream or file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from lance_core.data import schema_fields
from lance_core.errors import UnsupportedFeature
from table_data.arrow.claims import RowLimits, check_claims
from table_data.arrow.file import table_or_stream
from table_data.arrow.storable import check_names
from table_data.errors import ClientError, InvalidCall

_FILE_MAGIC = b"ARROW1\x00\x00"
_FILE_END = b"ARROW1"
_FOOTER_SIZE = 4
"""Bytes in which a file says how long its footer is, before its last ones."""
_OPTIONS = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
"""Pylance refuses some values, such as views, that are not at multiples of their size."""


class ArrowBody:
    """One Arrow IPC stream or file. The file format holds the stream format, so that both are read forward.

    Nothing may follow it: rows of a second one would be lost. A broken body is noticed where it breaks. Pylance,
    which reads the rows, puts the error into its own words, so `check` raises the first one as it was.
    """

    def __init__(self, data: pa.Buffer, limits: RowLimits | None = None) -> None:
        """Without `limits` any number of rows is taken."""
        self._data = data
        self._limits = limits
        self._failure: ClientError | None = None
        self._schema: pa.Schema | None = None

    def rows(self) -> pa.Table | pa.RecordBatchReader:
        """The rows, which can be read again: a table if they are few, else as they are decoded.

        Raises `InvalidCall` if the body is empty, does not begin with an Arrow schema, or claims more than it may.
        """
        self._failure = None
        if not self._data.size:
            raise InvalidCall("request body: expected an Arrow IPC stream, found nothing")
        messages = self._data
        is_file = False
        if messages.size >= len(_FILE_MAGIC) and messages.slice(0, len(_FILE_MAGIC)).to_pybytes() == _FILE_MAGIC:
            messages = messages.slice(len(_FILE_MAGIC))
            is_file = True
        if self._limits is not None:
            check_claims(messages, self._limits)
        try:
            source = pa.BufferReader(messages)
            stream = pa.ipc.open_stream(source, options=_OPTIONS)
            _check_schema(stream.schema)
            self._schema = stream.schema
        except ClientError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _broken(error) from error
        return table_or_stream(stream.schema, self._batches(stream, source, messages if is_file else None))

    def check(self) -> None:
        """Raise the error that broke the reading of the rows, if one did."""
        if self._failure is not None:
            raise self._failure

    def explain(self) -> None:
        """After work on the rows failed: raise the defect of the rows, if there is one."""
        self.check()
        if self._schema is not None:
            _check_types(self._schema)

    def _batches(
        self, stream: pa.RecordBatchReader, source: pa.BufferReader, file: pa.Buffer | None
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a stream; `source` is what is to end with it, or with the footer of a `file` behind it."""
        try:
            for batch in stream:
                batch.validate(full=True)
                yield batch
            left = self._data.size - source.tell() if file is None else _behind_footer(file, source.tell())
            if left:
                raise pa.ArrowInvalid(f"it ends, and {left} bytes follow, such as those of another one")
        except (pa.ArrowException, OSError, ValueError) as error:
            self._failure = _broken(error)
            raise self._failure from error


def _behind_footer(file: pa.Buffer, end: int) -> int:
    """The number of bytes between the end of a file's stream and its footer, which the last bytes say how long it is.

    Raises `ArrowInvalid` for a file without a whole footer.
    """
    rest, tail = file.size - end, _FOOTER_SIZE + len(_FILE_END)
    last = file.slice(file.size - tail).to_pybytes() if rest >= tail else b""
    left: int = rest - tail - int.from_bytes(last[:_FOOTER_SIZE], "little", signed=True)
    if not last.endswith(_FILE_END) or left < 0:
        raise pa.ArrowInvalid("a file that ends before its footer does")
    return left


def _check_schema(schema: pa.Schema) -> None:
    if not schema.names:
        raise InvalidCall("request body: expected rows with columns, found none")
    check_names(schema)
    double = next((name for name, count in Counter(schema.names).items() if count > 1), None)
    if double is not None:
        raise InvalidCall(f"request body: expected columns with different names, found {double[:80]!r} twice")


def _check_types(schema: pa.Schema) -> None:
    """Raise `InvalidCall` for the first column with a type that Lance does not have."""
    for field in schema:
        try:
            schema_fields(pa.schema([field]))
        except UnsupportedFeature as error:
            found = f"column {field.name[:80]!r} has type {str(field.type)[:200]}"
            raise InvalidCall(f"request body: {found}: expected one that Lance has") from error


def _broken(error: Exception) -> InvalidCall:
    return InvalidCall(f"request body: expected an Arrow IPC stream, found a broken one ({str(error)[:200]})")

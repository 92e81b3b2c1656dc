"""The Python process of an executor that reads splits for SQL. Tasks connect to its Unix socket.

A connection is one split. The task sends two lines of JSON: a `SplitRead`, and the pieces of the split. The response is
a stream of Arrow and a line of JSON after it: `{}`, or `{"error": message}` if the rows before it are not all. The
process opens a version once for all tasks, and ends with its standard input.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_catalog.tables.pinned import PinnedTable
    from spark_catalog.tables.scans import Scan
    from spark_catalog.tables.splits import Split

LISTENS: Final = "lance splits are served at "
"""The text that the process prints before the path of its socket."""

_LONGEST_PATH: Final = 100
"""Bytes of the path of a Unix socket, which has a limit of 108 on Linux."""


@dataclass(frozen=True, slots=True)
class SplitRead:
    """The part that is the same for all splits of a scan.

    Attributes:
        table: The table and its version.
        scan: What is read.
        schema: Schema of the rows. For a count, the columns that hold it.
        counts: Whether a split is one row that holds the number of its rows.
    """

    table: PinnedTable
    scan: Scan
    schema: pa.Schema
    counts: bool = False

    def encode(self) -> str:
        """The read as JSON."""
        table, scan = self.table, self.scan
        manifest = None if table.manifest is None else base64.b64encode(table.manifest).decode()
        return json.dumps(
            {
                "table": [table.uri, table.version, dict(table.storage_options), table.committed_ms, manifest],
                "scan": [scan.columns, scan.filter, scan.limit],
                "nearest": None if scan.nearest is None else asdict(scan.nearest),
                "text": None if scan.text is None else asdict(scan.text),
                "schema": base64.b64encode(self.schema.serialize()).decode(),
                "counts": self.counts,
            }
        )

    @classmethod
    def decode(cls, text: str | bytes) -> SplitRead:
        """The read from JSON."""
        import pyarrow as pa

        from spark_catalog.tables.pinned import PinnedTable
        from spark_catalog.tables.scans import Scan, TextSearch, VectorSearch

        found = json.loads(text)
        uri, version, options, committed_ms, manifest = found["table"]
        columns, filter_, limit = found["scan"]
        return cls(
            PinnedTable(uri, version, options, committed_ms, None if manifest is None else base64.b64decode(manifest)),
            Scan(
                tuple(columns),
                filter_,
                limit,
                None if found["nearest"] is None else VectorSearch(**found["nearest"]),
                None if found["text"] is None else TextSearch(**found["text"]),
            ),
            pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["schema"]))),
            found["counts"],
        )

    def batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The rows of a split, in batches of the schema."""
        import pyarrow as pa

        from spark_catalog.tables.reading import count_split, read_split

        if self.counts:
            count = pa.array([count_split(self.table, self.scan, split)], pa.int64())
            yield pa.record_batch([count] * len(self.schema), schema=self.schema)
        else:
            yield from read_split(self.table, self.scan, split, self.schema)


def encode_split(split: Split) -> str:
    """A split as JSON."""
    return json.dumps([split.rows, split.bytes, [[piece.fragment, piece.start, piece.rows] for piece in split.pieces]])


def decode_split(text: str | bytes) -> Split:
    """A split from JSON."""
    from spark_catalog.tables.splits import Piece, Split

    rows, size, pieces = json.loads(text)
    return Split(tuple(Piece(*piece) for piece in pieces), rows, size)


class SplitServer:
    """Listens at a socket in a new directory that only this user can enter. Each connection has a thread."""

    def __init__(self) -> None:
        self._directory = _short_directory()
        self.path = str(self._directory / "splits")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.path)
        self._socket.listen(socket.SOMAXCONN)

    def start(self) -> None:
        """Accept connections, in a thread."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections, and remove the directory."""
        self._socket.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _short_directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="lance-"))
    if len(os.fsencode(directory / "splits")) <= _LONGEST_PATH:
        return directory
    directory.rmdir()
    return Path(tempfile.mkdtemp(prefix="lance-", dir="/tmp"))


def _answer(connection: socket.socket) -> None:
    """Send the rows of one split. The task closes the connection when it needs no more of them."""
    import pyarrow as pa

    with connection, connection.makefile("rb") as lines:
        try:
            read, split = SplitRead.decode(lines.readline()), decode_split(lines.readline())
            status = {}
            with pa.ipc.new_stream(pa.PythonFile(_Sink(connection), "w"), read.schema) as writer:
                try:
                    for batch in read.batches(split):
                        writer.write_batch(batch)
                except ConnectionError:
                    raise
                except Exception as error:  # noqa: BLE001 - the task gets every error
                    status["error"] = f"{type(error).__name__}: {error}"
            connection.sendall(json.dumps(status).encode() + b"\n")
        except ConnectionError:
            return


class _Sink:
    """A socket as a file of pyarrow, which ignores how many bytes a call has written."""

    closed = False

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def write(self, data: Any) -> int:
        """Send all bytes."""
        self._connection.sendall(data)
        return len(data)

    def flush(self) -> None:
        """Returns at once: nothing is buffered."""

    def close(self) -> None:
        """The connection is closed by its owner."""


def main(paths: Sequence[str]) -> None:
    """Serve until standard input ends. `paths` are searched for modules after all others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.extend(paths)
    import spark_catalog.tables.reading  # noqa: F401 - before the first task waits for it

    server = SplitServer()
    server.start()
    sys.stdout.write(f"{LISTENS}{server.path}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    server.close()
    os._exit(0)  # threads of Lance may be at work


if __name__ == "__main__":
    main(sys.argv[1:])

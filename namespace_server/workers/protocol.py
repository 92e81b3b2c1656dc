"""The protocol of the control socket between the server and one of its worker processes.

A message is a tuple. What is sent at once is a list of messages, pickled, behind its length in eight bytes. The server
sends

    ("change", number, job, length)        behind the list come the rows, if they have a length: so many bytes, or the
                                           descriptor of a file if it is IN_FILE
    ("stage", number, table)               of a change that began; any number of times
    ("discard", number)                    the files staged last, which were rejected
    ("end", numbers)                       of changes; others may begin before it
    ("open", table, options)               a version that a change has just made, for the next change of the table
    ("read", job, table)
    ("give back",)                         the memory that is not used

and gets for each stage, discard and read one of

    ("staged", staged)            ("value", json)           ("discarded",)
    ("file", length)              then so many bytes: all rows, where they are few
    ("rows",)                     then the descriptor to read the rows from; at their end ("done",)
    ("error", error)              a `ClientError`; also instead of ("done",)

A descriptor comes with one byte of its own. Both ends are of one release and on one machine.

The process that forks workers is sent a `FORK` with the worker's end of such a socket, and answers a `FORKED` with a
pidfd of the worker, and with the end of a pipe that has a `STATUS` when the worker has ended.
"""

from __future__ import annotations

import copyreg
import pickle
import socket
import struct
from collections.abc import Sequence
from typing import Any, Final

from lance_core.proto import lance_table_pb2 as pb

Message = tuple[Any, ...]

LENGTH: Final = struct.Struct("!Q")
IN_FILE: Final = -1
MARK: Final = b"\x01"
"""The byte that a descriptor comes with."""
FORK: Final = struct.Struct("!QQ")
"""The bounds of a worker: of its memory, and of the rows in a body; 0 is no bound of memory."""
FORKED: Final = struct.Struct("!Q")
"""The number of its process."""
STATUS: Final = struct.Struct("!i")
"""How a process ended: its exit status, or a signal as a negative number."""


def _decoded_transaction(data: bytes) -> pb.Transaction:
    return pb.Transaction.FromString(data)


# A generated class names a module that is not there, and cannot be pickled by its name.
copyreg.pickle(pb.Transaction, lambda transaction: (_decoded_transaction, (transaction.SerializeToString(),)))


def encode(messages: Sequence[Message]) -> bytes:
    """Messages as they are sent."""
    data = pickle.dumps(messages)
    return LENGTH.pack(len(data)) + data


def decode(data: bytes) -> Sequence[Message]:
    """The messages behind a length."""
    messages: Sequence[Message] = pickle.loads(data)  # noqa: S301 - from a process of our own
    return messages


class WorkerChannel:
    """The worker's end. Blocking. Raises `EOFError` when the server has ended."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def receive(self) -> Sequence[Message]:
        """The next messages."""
        [length] = LENGTH.unpack(self.receive_bytes(LENGTH.size))
        return decode(self.receive_bytes(length))

    def receive_bytes(self, length: int) -> bytes:
        """So many bytes behind a message."""
        data = self._socket.recv(length, socket.MSG_WAITALL)
        if len(data) < length:  # no signal is handled here, which could cut a call short
            raise EOFError
        return data

    def receive_descriptor(self) -> int:
        """A descriptor behind a message, which belongs to the caller."""
        _, descriptors, _, _ = socket.recv_fds(self._socket, len(MARK), 1)
        if not descriptors:
            raise EOFError
        return descriptors[0]

    def send(self, message: Message, data: Any = None, descriptor: int | None = None) -> None:
        """Send one message, and behind it bytes or a descriptor, of which the caller keeps its own."""
        self._socket.sendall(encode([message]))
        if data is not None:
            self._socket.sendall(data)
        if descriptor is not None:
            socket.send_fds(self._socket, [MARK], [descriptor])

"""A process that has loaded all modules and forks workers: `python -m namespace_server.workers.fork_server FD`.

Loading takes a second, a fork some milliseconds, and loaded modules are in memory once. The process does no work on
rows and has one thread, so that nothing is lost by a fork: pylance starts its threads with its first work. The server
holds the other end of the socket FD; `protocol` has the messages. The process ends when the server does.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import sys
import warnings
from contextlib import suppress

from namespace_server.workers.protocol import FORK, FORKED, STATUS
from namespace_server.workers.worker import work


class ForkServer:
    """Forks a worker for each request that comes through a socket."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._children: dict[int, tuple[int, int]] = {}
        """Workers and the descriptors that their status is written to, by their pidfds."""

    def run(self) -> tuple[socket.socket, int, int] | None:
        """Fork until the server ends. Returns None then, and in each worker its socket and its bounds."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._children:
                    self._reap(descriptor)
                    continue
                request, descriptors, _, _ = socket.recv_fds(self._control, FORK.size, 1)
                if not request:
                    return None
                with socket.socket(fileno=descriptors[0]) as end:
                    child = os.fork()
                    if not child:
                        self._close()
                        return socket.socket(fileno=end.detach()), *FORK.unpack(request)
                self._report(child)

    def _report(self, child: int) -> None:
        """Answer with a new worker."""
        descriptor = os.pidfd_open(child)
        source, sink = os.pipe()
        self._children[descriptor] = child, sink
        self._poll.register(descriptor, select.POLLIN)
        socket.send_fds(self._control, [FORKED.pack(child)], [descriptor, source])
        os.close(source)

    def _reap(self, descriptor: int) -> None:
        """Forget a worker that has ended, and write its exit code."""
        self._poll.unregister(descriptor)
        child, sink = self._children.pop(descriptor)
        _, status = os.waitpid(child, 0)
        with suppress(BrokenPipeError):  # the server has forgotten it
            os.write(sink, STATUS.pack(os.waitstatus_to_exitcode(status)))
        os.close(sink)
        os.close(descriptor)

    def _close(self) -> None:
        """Close the descriptors that a worker does not need."""
        self._control.close()
        for descriptor, (_, sink) in self._children.items():
            os.close(descriptor)
            os.close(sink)


def main() -> None:
    """Fork workers until the server ends."""
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    gc.collect()
    gc.freeze()  # objects that exist already are not written to by the collector, and stay shared
    worker = ForkServer(socket.socket(fileno=int(sys.argv[1]))).run()
    if worker is not None:
        work(*worker)


if __name__ == "__main__":
    main()

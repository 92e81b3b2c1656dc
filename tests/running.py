"""Our server in a thread of the test's process."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from namespace_server.app import Application, create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.audit.log import RefusedAttemptLog
from namespace_server.rest.identity import Authenticator
from namespace_server.serving import Server, ServingOptions


@contextmanager
def running(
    root: Path,
    keys: Mapping[str, str] | None = None,
    attempts: RefusedAttemptLog | None = None,
    auditors: Collection[str] = (),
    root_database: str | None = None,
) -> Iterator[str]:
    """The URL of a server on `root` without fsync, which ends with the block. `keys` are those of its principals.

    It records refused attempts in `attempts`, and lets the `auditors` among them read that.
    """
    namespace = DirectoryNamespace(root=str(root), durability="none")
    app = create_app(
        namespace, Authenticator(keys or {}), attempts=attempts, auditors=auditors, root_database=root_database
    )
    with serving(app) as url:
        yield url


@contextmanager
def serving(app: Application) -> Iterator[str]:
    """The URL of a server of an application, which ends with the block."""
    server = Server(app, ServingOptions(port=0))
    started = threading.Event()
    thread = threading.Thread(target=server.run, args=(started.set,))
    thread.start()
    assert started.wait(30)
    try:
        yield server.url
    finally:
        server.stop()
        thread.join()

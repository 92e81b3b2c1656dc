"""A process that commits over a database; STEP is its last one.

Run as `python -m tests.store.writer ROOT DATABASE NAME COMMITS [STEP]`.
"""

from __future__ import annotations

import os
import signal
import sys

from tenacity import wait_none

from lance_core.commit import loop
from lance_core.commit.handlers import ExternalManifestHandler, ManifestRow
from lance_core.commit.loop import commit_transaction
from lance_core.errors import AlreadyExists
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.delegation import WrappedStore
from lance_core.transaction.operations import MapUpdate, UpdateConfig, encode_transaction
from lance_core.versions import find_latest
from namespace_server.store.engine import open_engine, parse_url
from namespace_server.store.manifests import SqlManifestStore
from tests.storage.limited import PlainStore

STEPS = ("staged", "committed", "finalised", "updated")

_fatal = ""


def _reach(step: str) -> None:
    if step == _fatal:
        os.kill(os.getpid(), signal.SIGKILL)


class Objects(PlainStore):
    def put(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        e_tag = super().put(path, data, durable=durable)
        if "/_versions/" in path:
            _reach("staged" if "manifest-" in path else "finalised")
        return e_tag


class Rows(SqlManifestStore):
    def put_if_absent(self, row: ManifestRow) -> bool:
        added = super().put_if_absent(row)
        _reach("committed")
        return added

    def replace(self, old: ManifestRow, new: ManifestRow) -> bool:
        replaced = super().replace(old, new)
        _reach("updated")
        return replaced


class Counted(WrappedStore):
    """Counts the races that it loses."""

    lost = 0

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        try:
            return super().put_if_absent(path, data, durable=durable)
        except AlreadyExists:
            self.lost += 1
            raise


def main(root: str, database: str, name: str, commits: str, step: str = "") -> None:
    global _fatal
    _fatal = step
    loop._WAIT = wait_none()  # retried at once: with the usual pauses one writer would win in long runs
    rows = Rows(open_engine(parse_url(database)))
    store = Counted(ExternalManifestHandler(rows).over(Objects(LocalStore(root, "none"))))
    for number in range(-1 if int(commits) > 1 else 0, int(commits)):
        if number == 0:  # of several, one is made before: from then on there is nothing left to load
            print("ready", flush=True)
            sys.stdin.readline()
        read_version = find_latest(store, "t").version
        message = encode_transaction(UpdateConfig(MapUpdate({f"{name}{number}": "1"})), read_version=read_version)
        print(commit_transaction(store, "t", message, max_retries=1000).version, flush=True)
    print(f"lost {store.lost}")
    rows.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The access log loses nothing while its stream cannot be written, and goes on afterwards."""

from __future__ import annotations

import errno
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import httpx

from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.access_log import AccessLog, LoggedRequest
from namespace_server.rest.identity import Authenticator
from tests.running import serving
from tests.waiting import until


class Disk(io.RawIOBase):
    """A file on a disk that has room for some bytes."""

    def __init__(self) -> None:
        self.room = 0
        self.data = b""
        self.tries = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.tries += 1
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = bytes(data[: self.room])
        self.room -= len(taken)
        self.data += taken
        return len(taken)


class Stream:
    """A text stream over it, as standard error is."""

    def __init__(self, raw: Disk) -> None:
        self.buffer = self
        self.raw = raw


def entry(name: str) -> LoggedRequest:
    return LoggedRequest(time.time(), "GET", "/v1/table", 200, 0.001, None, "7", name, "192.0.2.1")


def ids(data: bytes) -> list[str]:
    return [json.loads(line)["request_id"] for line in data.splitlines()]


def test_a_refusal_is_logged_with_its_reason_but_no_values_of_rows(tmp_path: Path) -> None:
    """Clients such as pylance lose the text of the answer."""
    stream = io.StringIO()
    namespace = DirectoryNamespace(root=str(tmp_path))
    app = create_app(namespace, Authenticator({}), access_log=AccessLog("json", stream))
    with serving(app) as url, httpx.Client(base_url=url) as http:
        assert http.post("/v1/table/t/version/create", json={"version": 0, "manifest_path": "x"}).status_code == 400
        assert http.post("/v1/table/t/update", json={"updates": [["a", "'secret'"]]}).status_code == 404
        assert http.get("/v1/catalog").status_code == 200
    created, updated, read = map(json.loads, stream.getvalue().splitlines())
    assert (created["code"], created["error"]) == (13, "version 0 of t: versions begin at 1")
    assert updated["code"] == 4
    assert "error" not in updated
    assert not {"code", "error"} & set(read)


def test_a_full_disk_is_waited_for() -> None:
    disk = Disk()
    log = AccessLog("json", Stream(disk))  # type: ignore[arg-type]
    log.start()
    for number in range(3000):
        log.add(entry(str(number)))
    until(lambda: disk.tries > 2, 20)
    disk.room = 100_037  # ends in the middle of a line
    until(lambda: not disk.room, 20)
    disk.room = 1 << 30
    for number in range(3000, 3020):
        log.add(entry(str(number)))
    log.stop()
    assert ids(disk.data) == [str(number) for number in range(3020)]


def test_what_could_not_be_kept_is_counted(monkeypatch: Any) -> None:
    monkeypatch.setattr("namespace_server.observability.access_log._CAPACITY", 5)
    disk = Disk()
    log = AccessLog("text", Stream(disk))  # type: ignore[arg-type]
    log.start()
    for number in range(12):
        log.add(entry(str(number)))
    disk.room = 1 << 20
    log.stop()
    lines = disk.data.decode().splitlines()
    logged = sum("status=200" in line for line in lines)
    assert f'"{12 - logged} requests not logged"' in lines[-1]
    assert 5 <= logged < 12


def test_a_stream_that_is_gone_does_not_keep_the_end() -> None:
    disk = Disk()
    log = AccessLog("text", Stream(disk))  # type: ignore[arg-type]
    log.start()
    log.add(entry("a"))
    log.stop()
    assert disk.data == b""

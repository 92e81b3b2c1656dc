"""The log of refused attempts: off the event loop, within bounds, on a full disk, of several processes."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from namespace_server.attempts import AttemptedObject, AttemptQuery, Authorization, RefusedOperation
from namespace_server.observability.audit import files, folding, log
from namespace_server.observability.audit.lines import DROPPED, FOLDED, attempt_line
from namespace_server.observability.audit.log import Descriptor, RefusedAttemptLog
from tests.audit.lines import DAY, NOON, Clock, attempt, files_of, ids, writing, written
from tests.waiting import until


class Disk:
    """A destination with room for some bytes."""

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.data = b""

    def append(self, data: bytes, first: str, last: str) -> int:
        assert first <= last
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = data[: self.room]
        self.room -= len(taken)
        self.data += taken
        return len(taken)

    def tidy(self) -> None:
        pass

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.data.splitlines()]


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(disk: Disk, clock: Clock) -> RefusedAttemptLog:
    """A log whose thread does not run: `stop` writes nothing, `_work` does."""
    return RefusedAttemptLog(disk, None, "p1", clock.clocks)


def test_a_line_says_who_what_where_and_why(tmp_path: Path) -> None:
    checks = [Authorization("drop", False, "no grant", "table", ("a", "t"), 3)]
    failures = [RefusedOperation(3, "drop_table", ("a", "t"), None, 6, 7, "retryable")]
    with writing(tmp_path) as audit:
        audit.add(attempt("r-1", authorizations=checks, failures=failures, transaction_id="b-1", detail="expected 6"))
    [line] = written(tmp_path)
    assert line.pop("time").endswith("Z")
    assert line == {
        "format": 1,
        "event": "refused_attempt",
        "action": "drop_table",
        "decision": "rejected",
        "status": 404,
        "code": 4,
        "principal": "ann",
        "objects": [{"kind": "table", "id": ["a", "t"]}],
        "num_objects": 1,
        "authorizations": [
            {
                "privilege": "drop",
                "allowed": False,
                "kind": "table",
                "id": ["a", "t"],
                "operation_index": 3,
                "reason": "no grant",
            }
        ],
        "num_authorizations": 1,
        "failures": [
            {
                "operation_index": 3,
                "operation": "drop_table",
                "id": ["a", "t"],
                "expected": 6,
                "found": 7,
                "kind": "retryable",
            }
        ],
        "num_failures": 1,
        "transaction_id": "b-1",
        "detail": "expected 6",
        "client": "192.0.2.1",
        "user_agent": "client/1",
        "request_id": "r-1",
        "server": "p1",
    }
    [file] = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


NAMES = [
    "a\nb",
    'a","decision":"allowed',
    "\x00\x1b[2J\x7f",
    "x" * 10_000,
    "\u2028\u202e",
    "\ud800",
    "é" * 400,
    "🐘" * 300,
]


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_client_sends_is_one_line_of_ascii(name: str) -> None:
    line = attempt_line(attempt(name, objects=[AttemptedObject("table", (name,))], principal=name), NOON, "p1")
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert line[:-1].decode("ascii").isprintable()
    assert len(line) < 12_000
    found = json.loads(line)
    assert found["decision"] == "rejected"
    shown = name.encode("utf-8", "replace").decode()
    assert found["objects"][0]["id"][0] == (shown if len(shown) <= 300 else f"{shown[:299]}…")


def test_an_attempt_at_many_long_names_is_a_bounded_line() -> None:
    objects = [AttemptedObject("table", ("é" * 300,) * 32) for _ in range(200)]
    line = attempt_line(attempt(objects=objects), NOON, "p1")
    assert len(line) <= 32 << 10
    assert json.loads(line)["num_objects"] == 200


def test_a_full_disk_is_waited_for_and_a_torn_line_completed(disk: Disk, queue: RefusedAttemptLog) -> None:
    for number in range(5):
        queue.add(attempt(str(number)))
    queue._work()
    assert queue.state().waiting == 5
    disk.room = 700  # ends within a line
    queue._work()
    assert queue.state().written == disk.data.count(b"\n") < 5
    disk.room = 1 << 20
    queue._work()
    assert ids(disk.lines) == list("01234")
    state = queue.state()
    assert (state.written, state.dropped, state.waiting) == (5, 0, 0)


def test_lines_beyond_the_bound_are_dropped_counted_and_told(
    disk: Disk, queue: RefusedAttemptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "_CAPACITY", 2_000)
    for number in range(100):
        queue.add(attempt(str(number)))
        queue._work()
    dropped = queue.state().dropped
    assert 90 < dropped < 100
    disk.room = 1 << 20
    queue._work()
    *kept, last = disk.lines
    assert (last["event"], last["count"], len(kept) + dropped) == (DROPPED, dropped, 100)
    queue.add(attempt("next"))
    queue._work()
    assert disk.lines[-1]["request_id"] == "next"
    assert queue.state().attempts == {"rejected": 101}


def test_many_attempts_of_a_stranger_are_counted_and_others_keep_their_lines(
    disk: Disk, queue: RefusedAttemptLog, clock: Clock
) -> None:
    disk.room = 1 << 20
    for _ in range(1_000):
        queue.add(attempt(principal=None, client="198.51.100.9", decision="denied", code=16))
    queue.add(attempt("of-ann"))
    queue._work()
    assert len(disk.lines) == folding.OF_ADDRESS + 1
    assert disk.lines[-1]["request_id"] == "of-ann"
    clock.passes(folding.WINDOW)
    queue._work()
    counted = disk.lines[-1]
    assert counted["event"] == FOLDED
    assert counted["count"] == 1_000 - folding.OF_ADDRESS
    assert (counted["client"], counted["decision"], counted["action"]) == ("198.51.100.9", "denied", "drop_table")
    queue.add(attempt("again", principal=None, client="198.51.100.9"))
    queue._work()
    assert disk.lines[-1]["request_id"] == "again"


def test_strangers_at_many_addresses_have_a_bound_together(disk: Disk, queue: RefusedAttemptLog, clock: Clock) -> None:
    disk.room = 1 << 30
    for number in range(20_000):
        queue.add(attempt(principal=None, client=f"2001:db8::{number:x}"))
    clock.passes(folding.WINDOW)
    queue._work()
    own = [line for line in disk.lines if line["event"] != FOLDED]
    counted = [line["count"] for line in disk.lines if line["event"] == FOLDED]
    assert len(own) == folding.OF_STRANGERS
    assert len(counted) <= 1_025
    assert len(own) + sum(counted) == 20_000
    assert queue.state().folded == sum(counted)


def test_the_end_of_a_process_writes_what_was_counted(tmp_path: Path) -> None:
    with writing(tmp_path) as audit:
        for _ in range(folding.OF_PRINCIPAL + 7):
            audit.add(attempt())
    lines = written(tmp_path)
    assert (len(lines), lines[-1]["count"]) == (folding.OF_PRINCIPAL + 1, 7)


def test_a_log_that_blocks_for_ever_holds_up_neither_requests_nor_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_LONGEST_STOP", 0.2)
    reading, pipe = os.pipe()
    os.set_blocking(pipe, False)
    try:
        while True:
            os.write(pipe, b"x" * 65_536)
    except BlockingIOError:
        pass
    os.set_blocking(pipe, True)
    audit = RefusedAttemptLog(Descriptor(pipe), None, "p1")
    audit.start()
    for _ in range(100):
        audit.add(attempt())
    audit.stop()
    assert audit.state().waiting == 100
    assert audit.read(AttemptQuery()) is None
    os.close(reading)  # ends the thread that waits
    os.close(pipe)


def test_what_cannot_be_described_raises_nothing(queue: RefusedAttemptLog, caplog: pytest.LogCaptureFixture) -> None:
    queue.add(attempt(objects=None))
    assert queue.state().dropped == 1
    assert "could not be recorded" in caplog.text


def test_trouble_is_logged_once_a_minute(
    queue: RefusedAttemptLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    queue.add(attempt())
    with caplog.at_level(logging.ERROR):
        for _ in range(10):
            queue._work()
            clock.passes(10)
    assert caplog.text.count("No space left on device") == 2


# -- files


def append(to: files.LineFiles, clock: Clock, *names: str) -> None:
    for name in names:
        line = attempt_line(attempt(name), clock.now, "p1")
        time = json.loads(line)["time"]
        assert to.append(line, time, time) == len(line)


def test_a_file_has_a_bound_and_the_lines_of_one_day(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = files_of(tmp_path, clock=clock)
    append(to, clock, "1", "2")
    clock.passes(DAY)
    append(to, clock, "3")
    monkeypatch.setattr(files, "FILE_BYTES", 700)
    append(to, clock, "4", "5")
    assert [path.read_bytes().count(b"\n") for path in sorted(tmp_path.iterdir())] == [2, 1, 1, 1]
    assert ids(written(tmp_path)) == list("12345")


def test_a_clock_that_goes_back_begins_a_file_so_that_times_in_a_file_do_not(tmp_path: Path, clock: Clock) -> None:
    to = files_of(tmp_path, clock=clock)
    append(to, clock, "1")
    clock.now -= 3_600
    append(to, clock, "2")
    clock.now += 1
    append(to, clock, "3")
    assert sorted(path.read_bytes().count(b"\n") for path in tmp_path.iterdir()) == [1, 2]


def test_old_files_go_and_a_clock_that_jumps_takes_nothing_with_it(tmp_path: Path, clock: Clock) -> None:
    to = files_of(tmp_path, clock=clock, keep=timedelta(days=90))
    append(to, clock, "old")
    [old] = tmp_path.iterdir()
    os.utime(old, (clock.now, clock.now))
    clock.passes(DAY)
    append(to, clock, "new")
    clock.now += 1_000 * DAY  # for some minutes
    to.tidy()
    clock.passes(600)
    to.tidy()
    clock.now -= 1_000 * DAY
    to.tidy()
    assert ids(written(tmp_path)) == ["old", "new"]
    clock.passes(90 * DAY)
    to.tidy()
    clock.passes(3_600)
    to.tidy()
    assert ids(written(tmp_path)) == ["new"]


def test_the_bytes_of_a_directory_have_a_bound_until_old_files_go(tmp_path: Path, clock: Clock) -> None:
    append(files_of(tmp_path, "other", clock), clock, "1", "2", "3")
    to = files_of(tmp_path, clock=clock, most=2_000)
    to.tidy()
    append(to, clock, "4")
    with pytest.raises(files.DirectoryFull):
        append(to, clock, *"5678")
    for path in tmp_path.glob("*other*"):
        path.unlink()
    to.tidy()
    append(to, clock, "5")


def test_a_file_that_others_remove_is_followed_by_a_new_one(tmp_path: Path, clock: Clock) -> None:
    to = files_of(tmp_path / "audit", clock=clock)
    append(to, clock, "1")
    [first] = (tmp_path / "audit").iterdir()
    first.rename(tmp_path / "moved")
    (tmp_path / "audit").rmdir()
    append(to, clock, "2")
    assert ids(written(tmp_path / "audit")) == ["2"]


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path, clock: Clock) -> None:
    to = files_of(tmp_path / "audit", clock=clock)
    append(to, clock, "1")
    [first] = (tmp_path / "audit").iterdir()
    first.unlink()
    (tmp_path / "elsewhere").touch()
    first.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        append(to, clock, "2")
    assert not (tmp_path / "elsewhere").read_bytes()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"exists|Not a directory"):
        files_of(tmp_path / "file").make()


_WRITER = """
import sys, time
from datetime import timedelta
from pathlib import Path
from namespace_server.observability.audit.files import LineFiles
from namespace_server.observability.audit.log import RefusedAttemptLog
from namespace_server.observability.audit import files, folding
from tests.audit.lines import attempt

files.FILE_BYTES = 20_000
folding.OF_PRINCIPAL = 1 << 30
process, count = sys.argv[2], int(sys.argv[3])
log = RefusedAttemptLog(LineFiles(Path(sys.argv[1]), process, timedelta(days=90), 1 << 30), None, process)
log.start()
for number in range(count):
    log.add(attempt(f"{process}-{number}"))
    time.sleep(0.001)
if count < 1_000:
    log.stop()
else:
    print("added", flush=True)
    time.sleep(60)
"""


def writer(directory: Path, process: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(directory), process, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_in_one_directory_lose_and_mix_nothing(tmp_path: Path) -> None:
    running = [writer(tmp_path, process, 400) for process in ("p1", "p2")]
    assert [each.wait(60) for each in running] == [0, 0]
    for each in running:
        assert each.stdout is not None
        each.stdout.close()
    lines = written(tmp_path)
    assert sorted(ids(lines)) == sorted(f"{process}-{number}" for process in ("p1", "p2") for number in range(400))
    assert len(list(tmp_path.iterdir())) > 2


def test_a_process_that_is_killed_leaves_whole_lines_and_at_most_one_torn(tmp_path: Path) -> None:
    killed = writer(tmp_path, "p1", 1_000)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "added\n"
    until(lambda: sum(path.stat().st_size for path in tmp_path.iterdir()) > 20_000)
    killed.kill()
    killed.wait(60)
    killed.stdout.close()
    newest = max(tmp_path.iterdir())
    with newest.open("ab") as file:
        file.write(b'{"format":1,"time":"2026')
    with writing(tmp_path, "p2") as audit:
        audit.add(attempt("after"))
    with writing(tmp_path, "p3") as audit:
        page = audit.read(AttemptQuery(limit=2_000))
    assert page is not None
    assert page.attempts[0]["request_id"] == "after"
    found = ids(tuple(page.attempts[1:]))
    assert found == [f"p1-{number}" for number in range(len(found) - 1, -1, -1)]
    assert len(found) > 40


def test_the_event_loop_is_not_held_while_the_disk_hangs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hangs = threading.Event()

    def sync(descriptor: int, real: Callable[[int], None] = os.fdatasync) -> None:
        assert hangs.wait(30)
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", sync)
    with writing(tmp_path) as audit:
        for number in range(500):
            audit.add(attempt(str(number)))
        until(lambda: audit.state().waiting > 0)
        hangs.set()
    assert len(written(tmp_path)) == 500

"""The command: exit statuses, the report, JUnit XML, and the removal of what the kit made."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import h11
import httpx
import pytest
from click.testing import Result as Outcome

from namespace_tck import ALL, Check, Promise, Session, SessionError, run_check
from namespace_tck.command import run
from namespace_tck.report import write_junit
from namespace_tck.runner import CheckOutcome, Result
from namespace_tck.trial import Trial
from tests.cli.commands import invoke
from tests.server.servers import REPOSITORY, ServerProcess
from tests.tck.falsifying import Exchanged, falsifying

COMMAND = [sys.executable, "-m", "namespace_server", "tck"]


def tck(*arguments: str) -> Outcome:
    """The command in this process."""
    return invoke("tck", *arguments)


def namespaces(url: str) -> list[str]:
    """The namespaces of the kit that are on the server."""
    listed = httpx.get(f"{url}/v1/namespace/%24/list").json()["namespaces"]
    return [name for name in listed if name.startswith("tck_")]


def test_nothing_failed_is_status_0_and_leaves_nothing(server: ServerProcess, tmp_path: Path) -> None:
    options = ["--only", "list_namespaces", "--only", "create_table.*", "--junit", f"{tmp_path}/x.xml"]
    done = subprocess.run(
        [*COMMAND, "--url", server.url, *options], capture_output=True, text=True, cwd=REPOSITORY, check=False
    )

    assert done.returncode == 0, done.stdout
    assert namespaces(server.url) == []
    suite = ET.parse(tmp_path / "x.xml").getroot()
    assert suite.tag == "testsuite"
    assert int(suite.attrib["tests"]) == len(suite.findall("testcase")) > 40
    assert int(suite.attrib["failures"]) == 0
    assert int(suite.attrib["skipped"]) == len(suite.findall("testcase/skipped"))
    assert {case.attrib["classname"] for case in suite} == {"list_namespaces", "create_table"}


def test_a_failure_is_status_1_with_the_request_and_the_answer(server: ServerProcess, tmp_path: Path) -> None:
    def forget(exchanged: Exchanged) -> None:
        if exchanged.operation == "list" and exchanged.json.get("namespaces"):
            exchanged.answer(200, {**exchanged.json, "namespaces": exchanged.json["namespaces"][:-1]})

    with falsifying(server.url, forget) as url:
        only = "list_namespaces.lists_the_children"
        done = tck("--url", url, "--only", only, "--junit", f"{tmp_path}/x.xml")

    assert done.exit_code == 1
    assert f"FAILED {only}" in done.stdout
    assert "The names of the children are listed, relative to their parent." in done.stdout
    assert "source: ListNamespacesResponse.namespaces" in done.stdout
    assert f"GET {url}/v1/namespace/tck_" in done.stdout
    assert '200 {"namespaces":["n0","n1","n2","n3","n4","n5"]' in done.stdout
    assert "1 checks: 0 passed, 1 failed, 0 skipped" in done.stdout
    assert namespaces(server.url) == []
    suite = ET.parse(tmp_path / "x.xml").getroot()
    assert suite.attrib["failures"] == "1"
    assert "GET http" in (suite.findtext("testcase/failure") or "")


def test_absent_operations_and_skipped_checks_are_listed_by_name(server: ServerProcess) -> None:
    def unsupported(exchanged: Exchanged) -> None:
        if exchanged.operation == "rename":
            exchanged.answer(406, {"error": "Not supported", "code": 0})

    with falsifying(server.url, unsupported) as url:
        done = tck("--url", url, "--only", "rename_table")

    assert done.exit_code == 0
    assert "rename_table" in next(line for line in done.stdout.splitlines() if line.startswith("not served: "))
    skipped = next(line for line in done.stdout.splitlines() if line.startswith("skipped, rename_table is not served"))
    for check in ALL:
        if check.operation == "rename_table" and check.name != "is_served_or_unsupported":
            assert check.id in skipped


def test_the_list_needs_no_server() -> None:
    done = tck("--list", "--only", "tags")

    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert len(lines) == sum(check.promise is Promise.TAGS for check in ALL)
    assert all(line.count("[tags; ") == 1 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--url: expected the address of a server"),
        (("--url", "http://127.0.0.1:9", "--only", "invented"), "--only invented"),
        (("--url", "http://127.0.0.1:9", "--header", "no colon"), "--header: expected 'Name: value'"),
    ],
)
def test_what_cannot_be_run_is_status_2(arguments: tuple[str, ...], message: str) -> None:
    done = tck(*arguments)

    assert done.exit_code == 2
    assert message in done.stderr


def test_a_server_that_does_not_answer_is_status_5() -> None:
    done = tck("--url", "http://127.0.0.1:9")

    assert done.exit_code == 5
    assert "http://127.0.0.1:9: the server did not answer" in done.stderr


def test_headers_are_sent(tmp_path: Path) -> None:
    keys = {"a-key-of-some-length-0123456789abcdef": "tester"}
    with ServerProcess(tmp_path / "root", log=tmp_path / "log", keys=keys) as running:
        refused = tck("--url", running.url, "--only", "namespace_exists")
        key = "x-api-key: a-key-of-some-length-0123456789abcdef"
        allowed = tck("--url", running.url, "--only", "namespace_exists", "--header", key)

    assert refused.exit_code == 2
    assert "401" in refused.stderr
    assert allowed.exit_code == 0, allowed.stdout + allowed.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_what_was_made_is_removed_after_an_interrupt(server: ServerProcess, number: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [*COMMAND, "--url", server.url, "--only", "*hold_every*"]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores it
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=environment) as process:
        limit = time.monotonic() + 100
        while _children(server.url) < 3 and time.monotonic() < limit:
            time.sleep(0.02)
        process.send_signal(number)
        out, _ = process.communicate(timeout=100)

    assert process.returncode == 130
    assert "interrupted after" in out
    assert namespaces(server.url) == []


def test_what_was_made_is_removed_after_an_interrupt_within_an_exchange(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is interrupted while it gets ready for its next request cannot send another one."""
    complete = h11.Connection.start_next_cycle
    done = itertools.count()
    interrupted: int | None = None

    def interrupt(connection: h11.Connection) -> None:
        if next(done) == interrupted:
            raise KeyboardInterrupt
        complete(connection)

    monkeypatch.setattr(h11.Connection, "start_next_cycle", interrupt)
    checks = ["create_namespace.*"]
    assert run(server.url, (), checks, None, lambda _: None) == 0
    total = next(done)
    for interrupted in (0, 1, total // 2, total - 10, total - 1):
        done = itertools.count()
        printed: list[str] = []

        assert run(server.url, (), checks, None, printed.append) == 130

        assert next(done) > interrupted + 1
        assert any(line.startswith("interrupted after") for line in printed)
        assert namespaces(server.url) == []


def _children(url: str) -> int:
    """How many checks have made a namespace, told by the number of the newest one."""
    for root in namespaces(url):
        listed = httpx.get(f"{url}/v1/namespace/{root}/list").json().get("namespaces", [])
        return max((int(name[1:]) for name in listed), default=0)
    return 0


def test_what_was_made_is_removed_after_an_error(server: ServerProcess) -> None:
    def breaks(t: Trial) -> None:
        t.declared()
        t.namespace()
        raise KeyError("a fault of the check")

    check = Check("create_table", "breaks", Promise.ROWS, "CreateTable", "It breaks.", breaks)
    results = []

    def abort() -> None:
        with Session(server.url) as session:
            results.append(run_check(session, check))
            Trial(session).declared()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        abort()

    assert [result.outcome for result in results] == [CheckOutcome.FAILED]
    assert "KeyError" in results[0].reason
    assert namespaces(server.url) == []


def test_what_cannot_be_removed_is_told(server: ServerProcess) -> None:
    refusing = False

    def refuse(exchanged: Exchanged) -> None:
        if refusing and exchanged.operation == "exists":
            exchanged.answer(200, None)

    with falsifying(server.url, refuse) as url:
        session = Session(url).__enter__()
        refusing = True
        with pytest.raises(SessionError, match=f"namespace {session.root[0]} was not removed"):
            session.close()


def test_junit_holds_what_xml_cannot(tmp_path: Path) -> None:
    result = Result(ALL[0], CheckOutcome.FAILED, "found \x00 and \x1b", "\ud800 <&>", 0.5)

    write_junit(tmp_path / "x.xml", [result], "http://server")

    failure = ET.parse(tmp_path / "x.xml").getroot().find("testcase/failure")
    assert failure is not None
    assert failure.attrib["message"] == "found \ufffd and \ufffd"
    assert "\ufffd <&>" in (failure.text or "")

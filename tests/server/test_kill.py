"""`kill -9` of the server at every storage write of a batch and of the sweep after it; then another server."""

from __future__ import annotations

import http.client
import itertools
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.directory.invariants import check_always, check_progress, check_quiet
from tests.directory.scene import KEY, KNOWS, MADE, OLD, PERSON, Scene, Try, make_scene
from tests.server.nursery import Nursery
from tests.server.servers import Answer, ServerProcess, path_of, send


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    running = Nursery()
    yield running
    running.close()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture
def fresh(scene: Scene, tmp_path: Path) -> Callable[[str], Try]:
    """Roots for the batch to be tried on."""
    return lambda name: scene.copy(tmp_path / name)


def _send(url: str, attempt: Try) -> Answer | None:
    """The batch over HTTP; None if the connection ended instead of an answer."""
    headers = {"content-type": "application/json", "idempotency-key": KEY}
    try:
        body = orjson.dumps({"operations": attempt.operations})
        return send(url, "POST", "/v1/table/batch-commit", body, headers)
    except (http.client.HTTPException, ConnectionError):
        return None


def _heads(url: str) -> list[int]:
    """The heads of the tables as the server describes them; 0 for a table that is not there."""
    heads = []
    for table in (PERSON, KNOWS, MADE, OLD):
        answer = send(url, "POST", f"/v1/table/{path_of(*table)}/version/describe", b"{}")
        heads.append(answer.body["version"]["version"] if answer.status == 200 else 0)
    return heads


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_any_write(
    scene: Scene, fresh: Callable[[str], Try], nursery: Nursery, tmp_path: Path, after: bool
) -> None:
    killed = 0
    for number in itertools.count():
        attempt = fresh(f"root{number}")
        log = tmp_path / f"log{number}"
        nursery.start(attempt.root, log, (number, after))
        assert _heads(nursery.url) == [1, 2, 0, 2]
        answer = _send(nursery.url, attempt)
        status = nursery.wait() if answer is None else nursery.stop()
        if status == 0:
            break  # the sweep of a server that ends is done with fewer writes than that
        assert status == -signal.SIGKILL, log.read_text()
        killed += 1

        flipped = _flipped(log, number, after)
        assert answer is None or answer.status == 200, log.read_text()
        assert flipped or answer is None, log.read_text()
        check_always(attempt.root, since=attempt.before)
        assert attempt.applied() == flipped, log.read_text()

        nursery.start(attempt.root, log)
        assert _heads(nursery.url) == ([2, 3, 1, 2] if flipped else [1, 2, 0, 2]), log.read_text()
        again = _send(nursery.url, attempt)
        assert again is not None
        assert again.status == 200, again.body
        assert answer is None or again.body == answer.body
        assert nursery.stop() == 0, log.read_text()
        attempt.recover()  # the record may be left to the next flip, of any process (rule M7)
        check_quiet(attempt.root, since=attempt.before)
        attempt.check_applied_once()
        check_progress(attempt.root)
    assert killed >= len(scene.writes) + 4, "every write of the batch, and the removal of four staged names"


def _flipped(log: Path, number: int, after: bool) -> bool:
    """Whether the catalog's next version was written before the end: what the killed server had begun, but the last."""
    begun = [line.split(" ", 2)[2] for line in log.read_text().splitlines() if line.split(" ", 1)[0].isdigit()]
    assert len(begun) == number + 1
    return any(path.startswith("__manifest/_versions/") for path in (begun if after else begun[:-1]))


def test_the_command_recovers_what_a_killed_server_left(
    scene: Scene, fresh: Callable[[str], Try], nursery: Nursery, tmp_path: Path
) -> None:
    """The same with `python -m namespace_server serve` as it is: its sweep promotes without a request."""
    attempt = fresh("root")
    nursery.start(attempt.root, tmp_path / "killed", (scene.flip, True))
    assert _send(nursery.url, attempt) is None
    assert nursery.wait() == -signal.SIGKILL
    assert not attempt.open().canonical(MADE)

    with ServerProcess(attempt.root, log=tmp_path / "log") as server:
        assert _heads(server.url) == [2, 3, 1, 2]
        body: Any = server.ask("version/list", *MADE)
        assert [version["version"] for version in body["versions"]] == [1]
        assert attempt.open().canonical(MADE) == [1]

    attempt.recover()
    check_quiet(attempt.root, since=attempt.before)
    attempt.check_applied_once()
    check_progress(attempt.root)

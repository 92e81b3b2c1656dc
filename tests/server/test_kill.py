"""`kill -9` of the server at every storage write of a batch and of the sweep after it; then another server."""

from __future__ import annotations

import http.client
import itertools
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.data.arrow import ARROW, stream
from tests.directory.invariants import check_always, check_progress, check_quiet
from tests.directory.scene import KEY, KNOWS, MADE, OLD, PERSON, Scene, Try, make_scene
from tests.directory.tables import Ground, rows
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


@pytest.mark.parametrize(
    ("after", "step"),
    [(True, 3), pytest.param(True, 1, marks=pytest.mark.long), pytest.param(False, 1, marks=pytest.mark.long)],
    ids=["after every third one", "after", "before"],
)
def test_a_kill_at_any_write(
    scene: Scene, fresh: Callable[[str], Try], nursery: Nursery, tmp_path: Path, after: bool, step: int
) -> None:
    """Until the flip nothing happens between two writes but reads: after one is the same as before the next.

    A step of three has the kill after the flip, which applies the batch, and others before and after it.
    """
    first = scene.flip if not after else scene.flip % step
    killed = 0
    for number in itertools.count(first, step):
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

        flipped = _flipped(log, number, after=after)
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
    expected = len(range(first, len(scene.writes) + 4, step))
    assert killed >= expected, "the writes of the batch, and the removal of four staged names"


def _flipped(log: Path, number: int, *, after: bool) -> bool:
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

    with ServerProcess(attempt.root, log=tmp_path / "log", alone=True) as server:
        assert _heads(server.url) == [2, 3, 1, 2]
        body: Any = server.ask("version/list", *MADE)
        assert [version["version"] for version in body["versions"]] == [1]
        assert attempt.open().canonical(MADE) == [1]

    attempt.recover()
    check_quiet(attempt.root, since=attempt.before)
    attempt.check_applied_once()
    check_progress(attempt.root)


def _change(url: str, path: str, body: bytes, headers: dict[str, str]) -> Answer | None:
    try:
        return send(url, "POST", path, body, {"content-type": "application/json", "idempotency-key": KEY, **headers})
    except (http.client.HTTPException, ConnectionError):
        return None


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a table of two versions and a tag, at rest."""
    root = tmp_path_factory.mktemp("tagged") / "root"
    ground = Ground(root)
    ground.make_namespace("g")
    ground.make_table("g", "t")
    ground.write(["g", "t"], rows(3, 5))
    ground.namespace.change("create_table_tag", {"id": ["g", "t"], "tag": "old", "version": 1})
    ground.catalog.sweep()
    return root


# The route, its body, and what the ids and the tags are after it.
_IDS, _OLD = [0, 1, 2, 3, 4], {"old": 1}
CHANGES: dict[str, tuple[str, bytes, dict[str, str], list[int], dict[str, int]]] = {
    "insert": ("insert", stream(rows(7, 8)), ARROW, [*_IDS, 7], _OLD),
    "delete": ("delete", b'{"predicate":"id < 2"}', {}, [2, 3, 4], _OLD),
    "tag": ("tags/create", b'{"tag":"new","version":2}', {}, _IDS, {"old": 1, "new": 2}),
    "move": ("tags/update", b'{"tag":"old","version":2}', {}, _IDS, {"old": 2}),
    "untag": ("tags/delete", b'{"tag":"old"}', {}, _IDS, {}),
}


OFTEN = ("insert", "tag")
"""One that changes rows and one that changes references: the others take the same two ways."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OFTEN else [pytest.mark.long]) for name in CHANGES]
)
def test_a_change_under_a_key_is_applied_once(tagged: Path, nursery: Nursery, tmp_path: Path, name: str) -> None:
    """A kill after any write of a change of one table; then the request again, at another server, twice."""
    route, body, headers, ids, tags = CHANGES[name]
    path = f"/v1/table/{path_of('g', 't')}/{route}"
    kills: list[bool] = []
    for number in itertools.count():
        root, log = tmp_path / f"root{number}", tmp_path / f"log{number}"
        shutil.copytree(tagged, root)
        before = Ground(root).catalog.snapshot().version
        nursery.start(root, log, (number, True))
        answer = _change(nursery.url, path, body, headers)
        status = nursery.wait() if answer is None else nursery.stop()
        if answer is not None:
            break  # what follows the answer is the sweep of any batch
        assert status == -signal.SIGKILL, log.read_text()
        flipped = _flipped(log, number, after=True)
        kills.append(flipped)

        nursery.start(root, tmp_path / f"log{number}-again")
        again = _change(nursery.url, path, body, headers)
        assert again is not None
        if name == "tag" and again.status == 409:  # its file was there, and the flip was not
            assert again.code == 9
            assert not flipped
        else:
            assert again.status == 200, again.body
            repeated = _change(nursery.url, path, body, headers)
            assert repeated is not None
            assert repeated.body == again.body
            ground = Ground(root)
            changes = {record.batch_uuid for record in ground.catalog.snapshot().records() if record.idempotency_key}
            assert changes == {again.body["transaction_id"]}
            assert ground.catalog.snapshot().version >= before + 1
        assert nursery.stop() == 0, log.read_text()
        assert Ground(root).ids(["g", "t"]) == ids
        found = Ground(root).read("list_table_tags", id=["g", "t"])["tags"]
        assert {tag: value["version"] for tag, value in found.items()} == tags
        check_always(root, since=before)
    assert set(kills) == {False, True}, "before the flip, and between the flip and the answer"

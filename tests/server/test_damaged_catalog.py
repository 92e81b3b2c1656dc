"""A server whose catalog has a damaged file: what it answers, and that it goes on when the file is back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.directory.damage import MANY, damaged
from tests.server.servers import Answer, ServerProcess


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of this test's own, whose catalog has a deletion file."""
    with ServerProcess(tmp_path / "root", log=tmp_path / "log") as running:
        assert running.call("POST", "/v1/table/batch-commit", {"operations": MANY}).status == 200
        running.ask("drop", "many0")
        yield running


def _batch(server: ServerProcess) -> Answer:
    return server.call("POST", "/v1/table/batch-commit", {"operations": [{"declare_table": {"id": ["t"]}}]})


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("truncated manifest", "read"),
        pytest.param("truncated manifest", "batch", marks=pytest.mark.long),
        pytest.param("missing row file", "read", marks=pytest.mark.long),
        ("missing row file", "batch"),
        ("missing deletion file", "read"),
        pytest.param("missing deletion file", "batch", marks=pytest.mark.long),
    ],
)
def test_the_damage_is_named_and_repair_needs_no_restart(own: ServerProcess, kind: str, first: str) -> None:
    root = Path(own.root)
    before = own.call("GET", "/v1/catalog").body["version"]
    own.stop()
    with damaged(root, kind) as (key, found):
        own.start()
        acts = [lambda: own.call("GET", "/v1/namespace/$/list"), lambda: _batch(own)]
        answers = [act() for act in (acts if first == "read" else acts[::-1])]
        ready = own.call("GET", "/health/ready")
        assert own.call("GET", "/health/live").status == 200
        for answer in answers:
            assert (answer.status, answer.code) == (500, 18)
        assert (ready.status, ready.code) == (503, 17)
        for answer in (*answers, ready):
            text = orjson.dumps(answer.body).decode()
            assert f"the catalog is damaged: {key}: expected " in text
            assert found in text
            assert str(root) not in text
            assert "unknown" not in text
        batch = answers[first == "read"].body
        assert batch["error"].startswith("batch ")
        assert "nothing was done" in batch["error"]
        assert "instance" not in batch

    assert own.call("GET", "/v1/namespace/$/list").status == 200
    assert own.call("GET", "/health/ready").body == {"status": "ready", "catalog_version": before, "mode": "read-write"}
    assert _batch(own).status == 200
    assert own.call("GET", "/v1/catalog").body["version"] == before + 1
    log = own.log.read_text()
    assert (
        f"the catalog cannot be read, requests are answered with errors until it can: the catalog is damaged: {key}"
        in log
    )

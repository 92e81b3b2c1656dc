"""One principal that sends as much as it can does not delay the flips of another one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from namespace_server.app import Application, create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from tests.running import serving
from tests.waiting import until

KEYS = {"key-of-noisy-1": "noisy", "key-of-quiet-1": "quiet"}
BATCH = "/v1/table/batch-commit"


class Held(DirectoryNamespace):
    """A catalog whose commits wait until they are let go; it notes the groups that it is handed."""

    def __init__(self, root: Path) -> None:
        super().__init__(root=str(root), durability="none")
        self.go = threading.Event()
        self.groups: list[list[str | None]] = []

    def commit_calls(self, calls: Sequence[Any]) -> Any:
        self.groups.append([call.principal for call in calls])
        assert self.go.wait(30)
        return super().commit_calls(calls)


@dataclass
class Scene:
    """A server with two principals, and clients for them."""

    catalog: Held
    app: Application
    client: httpx.Client
    pool: ThreadPoolExecutor

    def send(self, principal: str, name: str, size: int) -> Future[httpx.Response]:
        """A batch that declares so many tables; it is sent, and accepted, when this returns."""
        before = self.app.service.commits.accepted
        operations = [{"declare_table": {"id": [f"{name}_{number}"]}} for number in range(size)]
        headers = {"x-api-key": f"key-of-{principal}-1"}
        sent = self.pool.submit(self.client.post, BATCH, json={"operations": operations}, headers=headers)
        until(lambda: self.app.service.commits.accepted > before)
        return sent

    def flips(self) -> list[list[str]]:
        """The principals of the batches of each catalog version, the first one first."""
        answer = self.client.get("/v1/catalog/versions?limit=1000", headers={"x-api-key": "key-of-quiet-1"})
        versions = sorted(answer.json()["versions"], key=lambda each: each["version"])
        return [principals for each in versions if (principals := [b["principal"] for b in each.get("batches", ())])]


@contextmanager
def scene(root: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        catalog = Held(root)
        app = create_app(catalog, Authenticator(KEYS))
        url = stack.enter_context(serving(app))
        client = stack.enter_context(httpx.Client(base_url=url, verify=False, timeout=60))
        pool = stack.enter_context(ThreadPoolExecutor(64))
        stack.callback(catalog.go.set)
        yield Scene(catalog, app, client, pool)


def test_a_batch_is_flipped_before_what_waits_of_another_principal(tmp_path: Path) -> None:
    for size, most in ((20, 1), (2, 4)):
        with scene(tmp_path / str(size)) as found:
            noise = [found.send("noisy", f"n{number}", size) for number in range(40)]
            quiet = [found.send("quiet", f"q{number}", 2) for number in range(2)]
            found.catalog.go.set()
            assert [each.result().status_code for each in (*noise, *quiet)] == [200] * 42
            flips = found.flips()
        # Each batch of the quiet one waits for one flip of the noisy one, and its second one for its first one, too.
        assert all("quiet" not in flip for flip in flips[4:])
        assert max(flip.count("noisy") for flip in flips) <= most
        assert sum(flip.count("noisy") for flip in flips) == 40


def test_batches_of_one_principal_keep_their_order(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        noise = [found.send("noisy", f"n{number}", 3) for number in range(20)]
        quiet = found.send("quiet", "q", 1)
        found.catalog.go.set()
        versions = [int(each.result().headers["x-lance-catalog-version"]) for each in noise]
        assert quiet.result().status_code == 200
    assert versions == sorted(versions)
    assert len(set(versions)) >= 20 // 2


def test_one_principal_alone_shares_flips_as_before(tmp_path: Path) -> None:
    before = set(threading.enumerate())  # those of servers of other tests may not have ended
    with scene(tmp_path) as found:
        noise = [found.send("noisy", f"n{number}", 2) for number in range(40)]
        assert len(found.catalog.groups) == 1
        found.catalog.go.set()
        assert {each.result().status_code for each in noise} == {200}
        assert found.catalog.groups == [["noisy"], ["noisy"] * 39]
        assert len(found.flips()) == 2
        made = set(threading.enumerate()) - before
        assert len([each for each in made if each.name.startswith("commit-")]) == 1

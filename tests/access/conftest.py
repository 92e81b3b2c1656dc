"""One server with keys for several principals, on a catalog with grants in force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.access.granting import ADMIN, Caller, as_principal, keys, switch_on
from tests.rest.promised import Scene
from tests.running import running

PRINCIPALS = (ADMIN, "ann", "bob", "carl", "nobody")


class Team:
    """A server, the directory of its catalog, and callers in the names of principals."""

    def __init__(self, http: httpx.Client, root: Path) -> None:
        self.http = http
        self.root = root
        self.url = str(http.base_url)

    def caller(self, principal: str) -> Caller:
        return Caller(self.http, principal)

    @property
    def scene(self) -> Scene:
        """A scene of the administrator, in the namespace `h`."""
        client = httpx.Client(base_url=self.url, headers=as_principal(ADMIN), verify=False, timeout=30)
        return Scene(client, self.root)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A team on a catalog of its own, with the namespaces `a`, `b` and `h`, whose administrator alone has a grant."""
    root = tmp_path_factory.mktemp("team") / "catalog"
    with running(root, keys(*PRINCIPALS)) as url, httpx.Client(base_url=url, verify=False, timeout=30) as http:
        team = Team(http, root)
        admin = team.caller(ADMIN)
        for name in ("a", "b", "h"):
            assert admin.post(f"/v1/namespace/{name}/create").status_code == 200
        switch_on(root)
        yield team


Granted = Callable[..., Caller]

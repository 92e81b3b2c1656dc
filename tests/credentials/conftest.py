"""A bucket whose temporary credentials are held to their policies, and a server that hands some out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest

from tests.credentials.guarded_s3 import ROLE, Guard
from tests.emulators import Emulator, s3_service
from tests.server.servers import ServerProcess

_numbers = count()


@dataclass(frozen=True)
class GuardedS3:
    emulator: Emulator
    guard: Guard

    @property
    def public(self) -> dict[str, str]:
        """What a client must know of the service beside keys."""
        secret = {"aws_access_key_id", "aws_secret_access_key"}
        return {name: value for name, value in self.emulator.storage_options.items() if name not in secret}


@pytest.fixture(scope="session")
def guarded_service() -> Iterator[GuardedS3]:
    guard = Guard()
    with s3_service("guarded", guard=guard) as emulator:
        yield GuardedS3(emulator, guard)


@pytest.fixture
def guarded_s3(guarded_service: GuardedS3, monkeypatch: pytest.MonkeyPatch) -> GuardedS3:
    """The service, for clients that have no keys in their environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    guard = guarded_service.guard
    guard.lifetime, guard.is_down, guard.issued = None, False, 0
    guard.used.clear()
    guard.denied.clear()
    return guarded_service


Serve = Callable[..., ServerProcess]


@pytest.fixture
def serve(guarded_s3: GuardedS3, tmp_path: Path) -> Iterator[Serve]:
    """Starts a server on the bucket, with the namespace `w`. It hands out credentials of the role."""
    running: list[ServerProcess] = []

    def start(root: str | None = None, **settings: str) -> ServerProcess:
        given = {
            "VENDED_ROLE_ARN": ROLE,
            "VENDED_STS_ENDPOINT": guarded_s3.public["aws_endpoint"],
            "LOG_LEVEL": "debug",
            **{f"STORAGE__{name.upper()}": value for name, value in guarded_s3.emulator.storage_options.items()},
            **{f"VENDED_STORAGE__{name.upper()}": value for name, value in guarded_s3.public.items()},
            **settings,
        }
        environment = {f"LANCE_NAMESPACE_{name}": value for name, value in given.items() if value}
        log = tmp_path / f"log{len(running)}"
        server = ServerProcess(root or guarded_s3.emulator.new_root(), log=log, environment=environment)
        running.append(server)
        RestNamespace(uri=server.url).create_namespace(CreateNamespaceRequest(id=["w"]))
        return server

    yield start
    for server in running:
        server.stop()

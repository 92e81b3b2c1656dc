"""Lost answers: the same request again, and never the block again."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from lance_core.errors import StorageError
from namespace_client import Catalog, CatalogUnreachable, CommitUnknown, InvalidCall
from namespace_server.directory.model.errors import CommitOutcomeUnknown
from namespace_server.directory.namespace import DirectoryNamespace
from tests.client.scene import Scene, rows
from tests.lossy_proxy import LossyProxy, serve_lossily


@dataclass
class LossyNamespace:
    """The catalog in this process, which loses the answers to the next `lose` changes; with `forward` it does them."""

    inner: DirectoryNamespace
    lose: int = 0
    forward: bool = True
    failure: Callable[[], Exception] = lambda: CommitOutcomeUnknown("b-1", "lost by the test")
    keys: list[str | None] = field(default_factory=list)

    def read(self, operation: str, request: Mapping[str, Any], *, at: int | None = None) -> Any:
        return self.inner.read(operation, request, at=at)

    def prepare(self, operation: str, request: Mapping[str, Any], *, idempotency_key: str | None = None) -> Any:
        if operation == "batch_commit_tables":
            self.keys.append(idempotency_key)
        return self.inner.prepare(operation, request, idempotency_key=idempotency_key)

    def commit(self, calls: Sequence[Any]) -> Any:
        lost = self.lose > 0
        self.lose -= lost
        answers = self.inner.commit(calls) if self.forward or not lost else []
        if lost:
            raise self.failure()
        return answers


Lossy = LossyProxy | LossyNamespace


@dataclass
class Losses:
    """The scene, and its catalog once more behind something that loses answers."""

    scene: Scene
    lossy: Lossy
    connect: Callable[[int], Catalog]


@pytest.fixture
def losses(scene: Scene) -> Iterator[Losses]:
    opened: list[Catalog] = []

    def connect_to(target: Any) -> Callable[[int], Catalog]:
        def connect(retries: int) -> Catalog:
            opened.append(Catalog.connect(target, namespace=[scene.namespace], retries=retries))
            return opened[-1]

        return connect

    with _lossy(scene) as (lossy, target):
        yield Losses(scene, lossy, connect_to(target))
    for catalog in opened:
        catalog.close()


@contextmanager
def _lossy(scene: Scene) -> Iterator[tuple[Lossy, Any]]:
    if isinstance(scene.target, str):
        with serve_lossily(scene.target) as proxy:
            yield proxy, proxy.url
    else:
        namespace = LossyNamespace(scene.target)
        yield namespace, namespace


@pytest.mark.parametrize("forward", [False, True])
def test_a_lost_answer_is_asked_for_again_and_applied_once(losses: Losses, forward: bool) -> None:
    losses.scene.make("t", 1)
    losses.lossy.lose, losses.lossy.forward = 2, forward
    with losses.connect(4).begin() as tx:
        tx.append("t", rows(2))
        tx.create("u", rows(1))

    assert losses.scene.ids("t") == [1, 2]
    assert losses.scene.version("t") == 2
    assert tx.result.catalog_version == losses.scene.catalog_version()
    assert losses.lossy.keys == [tx.idempotency_key] * 3


@pytest.mark.parametrize("forward", [False, True])
def test_an_unknown_outcome_is_settled_by_sending_it_again(losses: Losses, forward: bool) -> None:
    losses.scene.make("t", 1)
    losses.lossy.lose, losses.lossy.forward = 2, forward
    with (
        pytest.raises(CommitUnknown, match="may have committed, or may still") as caught,
        losses.connect(1).begin() as tx,
    ):
        tx.append("t", rows(2))

    assert caught.value.idempotency_key == tx.idempotency_key
    assert losses.scene.ids("t") == ([1, 2] if forward else [1])
    with pytest.raises(InvalidCall, match="has not been committed"):
        _ = tx.result

    result = tx.resend()

    assert result is tx.result
    assert losses.scene.ids("t") == [1, 2]
    assert losses.scene.version("t") == result.tables[0].version == 2
    with pytest.raises(InvalidCall, match="nothing to send"):
        tx.resend()


def test_an_unknown_outcome_is_never_run_again(losses: Losses) -> None:
    losses.scene.make("t", 1)
    losses.lossy.lose = 1
    runs = 0
    with pytest.raises(CommitUnknown):
        for attempt in losses.connect(0).retrying():
            with attempt as tx:
                runs += 1
                tx.append("t", rows(2))

    assert runs == 1
    assert losses.scene.ids("t") == [1, 2]
    assert tx.resend().tables[0].version == 2


def test_a_refusal_after_a_lost_answer_stays_unknown(losses: Losses) -> None:
    """The first request could still be on its way."""
    losses.scene.make("t", 1)
    losses.lossy.lose, losses.lossy.forward = 1, False
    with pytest.raises(CommitUnknown), losses.connect(1).begin() as tx:
        tx.update("t", {"v": "0"})
        with losses.scene.catalog.begin() as other:
            other.delete("t", "id = 1")


def test_a_storage_error_in_process_says_nothing(directory: DirectoryNamespace) -> None:
    namespace = LossyNamespace(directory, failure=lambda: StorageError("the disk is busy"))
    with Catalog.connect(namespace, retries=0) as catalog:
        catalog.ensure_namespace(["doubt"])
        namespace.lose = 1
        with pytest.raises(CommitUnknown, match="the disk is busy") as caught, catalog.begin() as tx:
            tx.create(("doubt", "t"), rows(1))
        assert caught.value.batch is None
        assert tx.resend().tables[0].version == 1


@pytest.mark.parametrize("scene", ["http"], indirect=True)
def test_a_server_that_was_never_reached_is_no_unknown_outcome(scene: Scene) -> None:
    catalog = Catalog.connect(scene.target, namespace=[scene.namespace], retries=1)
    with catalog, pytest.raises(CatalogUnreachable, match="ConnectError"), catalog.begin() as tx:
        tx.create("t", rows(1))
        catalog.access._backend._client.get_httpx_client().base_url = httpx.URL("http://127.0.0.1:9")
    assert scene.catalog.access.table((scene.namespace, "t")) is None

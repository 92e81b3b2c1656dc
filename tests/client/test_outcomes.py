"""Lost and negative responses to a batch: the same request is sent again, the block is never run again."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from lance_namespace.errors import ServiceUnavailableError

from lance_core.errors import StorageError
from namespace_client import Catalog, CatalogUnavailable, CatalogUnreachable, CommitRejected, CommitUnknown, InvalidCall
from namespace_client.access import Changed, ChangeRejected, Reply
from namespace_server.directory.model.errors import BatchUnknown
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.outcomes import with_nothing_done
from tests.client.scene import Scene, rows
from tests.directory.damage import newest_manifest
from tests.lossy_proxy import LossyProxy, serve_lossily
from tests.server.servers import ServerProcess


@dataclass
class LossyNamespace:
    """A catalog in this process that raises for the next `lose` changes, and makes them before if `forward` is set."""

    inner: DirectoryNamespace
    lose: int = 0
    forward: bool = True
    failure: Callable[[], Exception] = lambda: BatchUnknown("b-1", "lost by the test")
    keys: list[str | None] = field(default_factory=list)

    def read(self, operation: str, request: Mapping[str, Any], *, at: int | None = None) -> Any:
        return self.inner.read(operation, request, at=at)

    def prepare(self, operation: str, request: Mapping[str, Any], *, idempotency_key: str | None = None) -> Any:
        if operation == "batch_commit_tables":
            self.keys.append(idempotency_key)
        return self.inner.prepare(operation, request, idempotency_key=idempotency_key)

    def commit_calls(self, calls: Sequence[Any]) -> Any:
        lost = self.lose > 0
        self.lose -= lost
        answers = self.inner.commit_calls(calls) if self.forward or not lost else []
        if lost:
            raise self.failure()
        return answers


Lossy = LossyProxy | LossyNamespace


@dataclass
class Losses:
    """The scene, and further connections to its catalog that lose responses."""

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
def test_a_batch_with_a_lost_response_is_sent_again_and_applied_once(losses: Losses, forward: bool) -> None:
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
def test_resend_resolves_an_unknown_outcome(losses: Losses, forward: bool) -> None:
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


def test_a_block_of_unknown_outcome_is_not_run_again(losses: Losses) -> None:
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


def test_a_rejection_after_a_lost_response_leaves_the_outcome_unknown(losses: Losses) -> None:
    """The first request may still be committed."""
    losses.scene.make("t", 1)
    losses.lossy.lose, losses.lossy.forward = 1, False
    with pytest.raises(CommitUnknown), losses.connect(1).begin() as tx:
        tx.update("t", {"v": "0"})
        with losses.scene.catalog.begin() as other:
            other.delete("t", "id = 1")


def test_a_storage_error_in_process_leaves_the_outcome_unknown(directory: DirectoryNamespace) -> None:
    namespace = LossyNamespace(directory, failure=lambda: StorageError("the disk is busy"))
    with Catalog.connect(namespace, retries=0) as catalog:
        catalog.ensure_namespace(["doubt"])
        namespace.lose = 1
        with pytest.raises(CommitUnknown, match="the disk is busy") as caught, catalog.begin() as tx:
            tx.create(("doubt", "t"), rows(1))
        assert caught.value.batch is None
        assert tx.resend().tables[0].version == 1


@pytest.mark.parametrize("scene", ["http"], indirect=True)
def test_a_batch_that_was_never_sent_has_no_unknown_outcome(scene: Scene) -> None:
    catalog = Catalog.connect(scene.target, namespace=[scene.namespace], retries=1)
    with catalog, pytest.raises(CatalogUnreachable, match="ConnectError"), catalog.begin() as tx:
        tx.create("t", rows(1))
        catalog.access.client._client.base_url = httpx.URL("http://127.0.0.1:9")
    assert scene.catalog.access.table((scene.namespace, "t")) is None


class BrokenStorage:
    """A server whose catalog has a new version that the server cannot read, and the replies to the batches it got."""

    def __init__(self, catalog: Catalog, root: Path) -> None:
        self.catalog = catalog
        self.replies: list[Reply] = []
        self.repair: Callable[[], object] = lambda: None
        self._root = root
        self._send = catalog.access._backend.send
        catalog.access._backend.send = self._recorded

    def _recorded(self, operation: str, request: Any, key: str) -> Reply:
        self.replies.append(self._send(operation, request, key))
        self.repair()
        return self.replies[-1]

    def hide_newest(self) -> None:
        """Commit one more version past the server, and put a directory in the place of its manifest."""
        path, content = self._commit_past_the_server()
        path.unlink()
        path.mkdir()

        def repair() -> None:
            if path.is_dir():
                path.rmdir()
                path.write_bytes(content)

        self.repair = repair

    def damage_newest(self) -> None:
        """Commit one more version past the server, and cut its manifest off."""
        path, content = self._commit_past_the_server()
        path.write_bytes(content[:10])
        self.repair = lambda: path.write_bytes(content)

    def _commit_past_the_server(self) -> tuple[Path, bytes]:
        with Catalog.connect(str(self._root), namespace=["n"]) as other, other.begin() as tx:
            tx.create("other", rows(1))
        path = newest_manifest(self._root)
        return path, path.read_bytes()


@pytest.fixture
def broken(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[BrokenStorage]:
    root = tmp_path / "catalog"
    with (
        ServerProcess(root, log=tmp_path / "server.log") as server,
        Catalog.connect(server.url, namespace=["n"], retries=request.param) as catalog,
    ):
        catalog.ensure_namespace()
        yield BrokenStorage(catalog, root)


@pytest.mark.slow
@pytest.mark.parametrize("broken", [4], indirect=True)
def test_a_batch_is_sent_again_after_a_server_said_that_nothing_was_done(broken: BrokenStorage) -> None:
    with broken.catalog.begin() as tx:
        tx.create("t", rows(1))
        broken.hide_newest()

    first, second = broken.replies
    assert isinstance(first, ChangeRejected)
    assert (first.error.status, first.error.code) == (503, 17)
    assert isinstance(second, Changed)
    assert tx.result.tables[0].version == 1


@pytest.mark.slow
@pytest.mark.parametrize("broken", [0], indirect=True)
def test_a_server_that_did_nothing_is_unavailable_and_the_outcome_is_known(broken: BrokenStorage) -> None:
    with pytest.raises(CatalogUnavailable, match="nothing was done") as caught, broken.catalog.begin() as tx:
        tx.create("t", rows(1))
        broken.hide_newest()

    assert (caught.value.status, caught.value.code) == (503, 17)
    assert broken.catalog.access.table(("n", "t")) is None
    assert broken.catalog.run(lambda again: again.create("t", rows(1))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("broken", [4], indirect=True)
def test_a_batch_refused_by_a_damaged_catalog_is_not_sent_again(broken: BrokenStorage) -> None:
    with pytest.raises(CommitRejected, match="the catalog is damaged") as caught, broken.catalog.begin() as tx:
        tx.create("t", rows(1))
        broken.damage_newest()

    assert (caught.value.status, caught.value.code) == (500, 18)
    assert not isinstance(caught.value, CatalogUnavailable)
    assert len(broken.replies) == 1
    assert broken.catalog.access.table(("n", "t")) is None


def test_nothing_done_after_a_lost_response_leaves_the_outcome_unknown(directory: DirectoryNamespace) -> None:
    """The second response is about the second request only."""
    failures: list[Exception] = [StorageError("lost"), with_nothing_done(ServiceUnavailableError("no storage"))]
    namespace = LossyNamespace(directory, forward=False, failure=lambda: failures.pop(0))
    with Catalog.connect(namespace, retries=1) as catalog:
        catalog.ensure_namespace(["late"])
        namespace.lose = 2
        with pytest.raises(CommitUnknown, match="lost"), catalog.begin() as tx:
            tx.create(("late", "t"), rows(1))
        assert tx.resend().tables[0].version == 1


def test_nothing_done_in_process_is_retried(directory: DirectoryNamespace) -> None:
    namespace = LossyNamespace(
        directory, forward=False, failure=lambda: with_nothing_done(ServiceUnavailableError("no storage"))
    )
    with Catalog.connect(namespace, retries=1) as catalog:
        catalog.ensure_namespace(["busy"])
        namespace.lose = 1
        with catalog.begin() as tx:
            tx.create(("busy", "t"), rows(1))
        assert namespace.keys == [tx.idempotency_key] * 2
        namespace.lose = 2
        with pytest.raises(CatalogUnavailable), catalog.begin() as tx:
            tx.append(("busy", "t"), rows(2))
    assert namespace.keys[2:] == [tx.idempotency_key] * 2

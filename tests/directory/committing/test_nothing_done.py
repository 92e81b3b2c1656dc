"""A batch that fails before its commit step: nothing was done, and the answer says so without the store's text."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import CorruptFile, StorageError
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from namespace_client import Catalog, CatalogUnavailable, CommitRejected
from namespace_server.directory.committing.commit_loop import CommitLoop
from namespace_server.directory.committing.group_planner import GroupPlanner
from namespace_server.directory.model import errors
from namespace_server.directory.model.errors import BatchUnknown, CatalogDamaged
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.planning.planning_context import PlanningContext
from namespace_server.directory.verifying.verifier import Verifier
from namespace_server.outcomes import outcome_of
from table_data.batch_operations import TransactionCommit

READS = ("get", "find", "get_range", "tail", "get_with_meta")
VERSION_1 = "_t/_versions/18446744073709551614.manifest"
SECRET = "secret-directory"


@pytest.fixture
def root(tmp_path: Path) -> str:
    root = str(tmp_path / SECRET)
    with Catalog.connect(root) as catalog:
        catalog.create("t", {"id": [1]})
    return root


def set_a_key(catalog: Catalog) -> None:
    transaction = pb.Transaction(read_version=1, uuid=str(uuid.uuid4()))
    transaction.update_config.table_metadata_updates.update_entries.add(key="k", value="v")
    catalog.access.commit([TransactionCommit(("t",), transaction)], idempotency_key=str(uuid.uuid4()), message=None)


def test_a_manifest_that_cannot_be_read_while_a_batch_is_planned(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(read: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: LocalStore, path: str, *arguments: Any, **named: Any) -> Any:
            if path.endswith(VERSION_1):
                raise StorageError(f"{root}/{path}: cannot read it: [Errno 5] Input/output error")
            return read(self, path, *arguments, **named)

        return call

    with Catalog.connect(root, retries=0) as catalog:
        before = catalog.access.state().version
        with monkeypatch.context() as broken:
            for name in READS:
                broken.setattr(LocalStore, name, failing(getattr(LocalStore, name)))
            with pytest.raises(CatalogUnavailable, match="nothing was done") as refused:
                set_a_key(catalog)
        assert SECRET not in str(refused.value)
        assert catalog.access.state().version == before
        set_a_key(catalog)


FAILURES: list[tuple[Callable[[], Exception], int]] = [
    (lambda: StorageError(f"/{SECRET}: cannot read it"), 17),
    (lambda: CorruptFile(f"/{SECRET}: is damaged", key="t/_versions/1.manifest", reason="cut off"), 18),
    (lambda: CatalogDamaged("__manifest/_versions/1.manifest", "a manifest", "garbage"), 18),
    (lambda: ZeroDivisionError(SECRET), 18),
]
PLACES: list[tuple[type, str]] = [
    (Verifier, "verify"),
    (CommitLoop, "run"),
    (GroupPlanner, "plan"),
    (PlanningContext, "prepare"),
    (PlanningContext, "manifest"),
]


@pytest.fixture(params=FAILURES, ids=["storage", "damage", "catalog damage", "bug"])
def failure(request: pytest.FixtureRequest) -> tuple[Exception, int]:
    make, code = request.param
    return make(), code


@pytest.mark.parametrize(("place", "name"), PLACES, ids=lambda item: getattr(item, "__name__", item))
def test_each_failure_of_each_step_before_the_commit_step(
    root: str, monkeypatch: pytest.MonkeyPatch, failure: tuple[Exception, int], place: type, name: str
) -> None:
    error, code = failure

    def fail(*_: object, **__: object) -> None:
        raise error

    with Catalog.connect(root, retries=0) as catalog:
        before = catalog.access.state().version
        with monkeypatch.context() as broken:
            broken.setattr(place, name, fail)
            with pytest.raises(CommitRejected, match="nothing was done") as refused:
                set_a_key(catalog)
        assert refused.value.code == code
        assert isinstance(refused.value, CatalogUnavailable) == (code == 17)
        assert SECRET not in str(refused.value)
        assert catalog.access.state().version == before


def test_a_failure_of_the_commit_step_is_no_refusal(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other side: after the flip was sent, an exception says nothing of it, nor does its text go to the client."""
    with Catalog.connect(root, retries=0) as catalog:
        namespace: DirectoryNamespace = catalog.access.namespace
        call = namespace.prepare("create_namespace", {"id": ["n"]})

        def claim(*_: object) -> None:
            raise ZeroDivisionError(SECRET)

        with monkeypatch.context() as broken:
            broken.setattr(type(namespace.catalog.table), "claim", claim)
            [answer] = namespace.commit_calls([call])
    assert isinstance(answer, BatchUnknown)
    assert outcome_of(answer) == "unknown"
    assert SECRET not in str(answer)


def test_what_is_refused_beside_a_commit_step_that_failed_stays_refused(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it was sent."""
    with Catalog.connect(root, retries=0) as catalog:
        namespace: DirectoryNamespace = catalog.access.namespace
        calls = [namespace.prepare("create_namespace", {"id": [name]}) for name in ("new", "n")]
        calls.insert(0, namespace.prepare("drop_namespace", {"id": ["missing"]}))

        def claim(*_: object) -> None:
            raise ZeroDivisionError(SECRET)

        with monkeypatch.context() as broken:
            broken.setattr(type(namespace.catalog.table), "claim", claim)
            answers = namespace.commit_calls(calls)
    assert [outcome_of(answer) for answer in answers] == ["nothing_done", "unknown", "unknown"]


def _raised() -> Iterator[tuple[str, LanceNamespaceError]]:
    yield "busy", errors.CatalogBusy("b", 20)
    yield "too old", errors.BatchTooOld("b", 60)
    yield "elsewhere", errors.CommittedElsewhere("b")
    yield "being restored", errors.RootBeingRestored("key")
    yield "tables without a catalog", errors.TablesWithoutCatalog(["t"])
    yield "unreadable", errors.unreadable(("t",), StorageError("s"))


@pytest.mark.parametrize(("name", "error"), list(_raised()), ids=lambda item: item if isinstance(item, str) else "")
def test_refusals_say_that_nothing_was_done(name: str, error: LanceNamespaceError) -> None:
    assert outcome_of(error) == "nothing_done", name

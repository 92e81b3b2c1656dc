"""Jobs that take long are registered, renewed and ended by the client (rule G11)."""

from __future__ import annotations

import gc
import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from lance.fragment import write_fragments
from typer.testing import CliRunner

from namespace_client import Catalog, CatalogUnreachable, CommitRejected, CommitUnknown, Intent, TableOfIntent
from namespace_client.staged_transaction import StagedTransaction
from namespace_server.cli import cli
from table_data.batch_operations import IntentEnd, IntentRegistration
from table_data.descriptions import append_operation
from tests.client.scene import Scene, rows
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.tables import Ground
from tests.directory.tables import rows as named_rows
from tests.running import running

SOON = timedelta(milliseconds=1)


def intents(scene: Scene) -> list[tuple[str | None, int | None]]:
    """The tables of the scene that intents name, with the versions that are kept."""
    return [
        (table.location, table.read_version)
        for intent in scene.catalog.intents()
        for table in intent.tables
        if table.id[:1] == (scene.namespace,)
    ]


def newest(scene: Scene) -> int:
    return scene.catalog.access.state().version


def test_a_job_is_registered_within_its_block(scene: Scene) -> None:
    scene.make("t", 1)
    table = TableOfIntent((scene.namespace, "t"), read_version=1)
    with scene.catalog.intent(["t", table], lasting=timedelta(hours=2), reason="nightly") as intent:
        [found] = [each for each in scene.catalog.intents() if each.id == intent.id]
        assert found.reason == "nightly"
        assert found.until - found.registered_at == timedelta(hours=2)
        assert intents(scene) == [(scene.uri("t"), 1)]
        intent.register()
        assert len(intents(scene)) == 1
    assert intents(scene) == []
    intent.register()  # the job is over
    assert intents(scene) == []
    with pytest.raises(CommitRejected) as none, scene.catalog.intent(["nowhere"]):
        pass
    assert none.value.code == 4


def test_a_transaction_that_is_registered_ends_that_in_its_own_flip(scene: Scene) -> None:
    scene.make("t", 1)
    with scene.catalog.begin() as tx:
        tx.append("t", rows(2))
        tx.create("new", rows(3))
        tx.register_intent()
        assert intents(scene) == [(scene.uri("t"), 1)]  # the other table has no id yet
        before = newest(scene)
    assert (tx.result.catalog_version, newest(scene)) == (before + 1, before + 1)
    assert intents(scene) == []
    assert scene.ids("t") == [1, 2]
    assert scene.ids("new") == [3]


def test_a_transaction_that_registers_at_once_does_so_before_its_first_file(scene: Scene) -> None:
    scene.make("t", 1)
    scene.make("u", 1)
    with StagedTransaction(scene.catalog.access, namespace=[scene.namespace], intent_after=timedelta(0)) as tx:
        assert tx.describe("t") is not None
        assert intents(scene) == [(scene.uri("t"), 1)]
        assert tx.describe("t") is not None
        assert tx.describe("u") is not None
        assert intents(scene) == [(scene.uri("t"), 1), (scene.uri("u"), 1)]
        new = tx.declare("new")
        assert new.uri in {table.location for intent in scene.catalog.intents() for table in intent.tables}
    assert intents(scene) == []


def test_a_branch_is_registered_with_its_own_version(scene: Scene) -> None:
    scene.make("t", 1)
    lance.dataset(namespace_client=scene.stock(), table_id=[scene.namespace, "t"]).create_branch("dev")
    with scene.catalog.begin() as tx:
        assert tx.describe("t", branch="dev") is not None
        tx.register_intent()
        found = [table for intent in scene.catalog.intents() for table in intent.tables]
        [mine] = [table for table in found if table.location == scene.uri("t")]
        state = scene.catalog.access.table((scene.namespace, "t"), branch="dev")
        assert state is not None
        assert (mine.branch, mine.read_version) == ("dev", state.version)
    assert intents(scene) == []


def test_a_short_transaction_writes_no_intent(scene: Scene) -> None:
    scene.make("t", 1)
    before = newest(scene)
    with scene.catalog.begin() as tx:
        tx.append("t", rows(2))
    assert newest(scene) == before + 1


@pytest.mark.parametrize("how", ["raises", "is refused", "changes nothing", "is given up"])
def test_a_transaction_that_does_not_commit_ends_its_registration(scene: Scene, how: str) -> None:
    scene.make("t", 1)
    tx = scene.catalog.begin(isolation="serializable")

    def run() -> None:
        with tx:
            tx.table("t").count_rows()
            tx.register_intent()
            assert len(intents(scene)) == 1
            if how == "raises":
                raise KeyError("no more")
            if how == "is given up":
                tx.abandon()
            if how == "is refused":
                tx.append("t", rows(2))
                with scene.catalog.begin() as other:
                    other.append("t", rows(3))

    if how in {"raises", "is refused"}:
        with pytest.raises((KeyError, CommitRejected)):
            run()
    else:
        run()
    assert intents(scene) == []


def test_a_batch_of_unknown_outcome_keeps_its_registration_until_it_is_sent_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.make("t", 1)

    def lose(*_arguments: Any, **_named: Any) -> Any:
        raise CommitUnknown("the answer was lost", idempotency_key="k", batch=None)

    tx = scene.catalog.begin()
    tx.__enter__()
    tx.append("t", rows(2))
    tx.register_intent()
    with monkeypatch.context() as patch:
        patch.setattr(scene.catalog.access, "commit", lose)
        with pytest.raises(CommitUnknown):
            tx.commit()
    assert len(intents(scene)) == 1
    tx.resend()
    assert intents(scene) == []
    assert scene.ids("t") == [1, 2]


def test_a_reader_keeps_its_catalog_version_within_its_block(scene: Scene) -> None:
    scene.make("t", 1)
    before = newest(scene)

    def mine() -> list[int]:
        return [pin.version for pin in scene.catalog.pins() if pin.reason == f"report {scene.namespace}"]

    with scene.catalog.keeping(before, reason=f"report {scene.namespace}") as kept:
        assert mine() == [before]
        kept.register()
        assert mine() == [before]
        with scene.catalog.keeping(reason=f"report {scene.namespace}") as latest:
            assert latest.version == newest(scene)
            latest.register()
            assert set(mine()) == {before, latest.version}
    assert mine() == []
    with pytest.raises(CommitRejected) as none, scene.catalog.keeping(99_999):
        pass
    assert none.value.code == 11


class Recorder:
    """Access to a catalog that keeps what it is sent, and that fails as it is told."""

    def __init__(self, *failures: Exception) -> None:
        self.sent: list[IntentRegistration | IntentEnd] = []
        self.failures = list(failures)
        self.arrived = threading.Semaphore(0)

    def commit(self, operations: Any, **_named: Any) -> None:
        self.sent += operations
        self.arrived.release()
        if self.failures:
            raise self.failures.pop(0)

    def wait(self, number: int) -> None:
        for _ in range(number):
            assert self.arrived.acquire(timeout=30)


def of(recorder: Recorder, *tables: str) -> Intent:
    named = tuple(TableOfIntent((table,)) for table in tables)
    return Intent(recorder, lambda: named, every=SOON)  # type: ignore[arg-type]


def test_a_job_is_renewed_in_the_background_and_after_failures() -> None:
    recorder = Recorder(CatalogUnreachable("down"), CatalogUnreachable("still down"))
    intent = of(recorder, "t")
    intent.renew_after(SOON)
    recorder.wait(5)
    intent.stop()
    left = len(recorder.sent)
    other = of(recorder, "u")  # the thread is done with the first when it sends this one
    recorder.arrived = threading.Semaphore(0)
    other.renew_after(SOON)
    recorder.wait(2)
    other.end()
    sent = [each.tables[0].id[0] for each in recorder.sent if isinstance(each, IntentRegistration)]
    assert sent[:left] == ["t"] * left
    assert "t" not in sent[left:]
    assert isinstance(recorder.sent[-1], IntentEnd)


def test_a_job_that_never_named_a_table_sends_nothing() -> None:
    recorder = Recorder()
    with of(recorder) as intent:
        assert intent.renew() is not None
    assert recorder.sent == []


def test_a_transaction_that_was_forgotten_is_not_renewed(local: Scene) -> None:
    local.make("t", 1)
    recorder = Recorder()
    intent = of(recorder, "t")
    intent.renew_after(timedelta(milliseconds=50))
    del intent
    gc.collect()
    other = of(recorder, "u")
    other.renew_after(timedelta(milliseconds=60))
    recorder.wait(1)
    other.stop()
    assert {each.tables[0].id for each in recorder.sent if isinstance(each, IntentRegistration)} == {("u",)}


def test_a_transaction_is_registered_when_it_has_been_open_for_long(local: Scene) -> None:
    local.make("t", 1)
    access, arrived = local.catalog.access, threading.Event()
    commit = access.commit

    def seen(operations: Any, **named: Any) -> Any:
        found = commit(operations, **named)
        if isinstance(operations[0], IntentRegistration):
            arrived.set()
        return found

    access.commit = seen  # type: ignore[method-assign]
    with StagedTransaction(access, namespace=["ml"], intent_after=timedelta(milliseconds=50)) as tx:
        assert tx.describe("t") is not None
        assert arrived.wait(30)
        assert intents(local) == [(local.uri("t"), 1)]
    assert intents(local) == []


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Ground, Catalog]]:
    """A catalog with a table, in this process and over HTTP, that was collected once."""
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    collect(ground)
    with running(tmp_path / "root") as url, Catalog.connect(url, namespace=["g"]) as catalog:
        yield ground, catalog


@pytest.mark.parametrize("registered", [True, False])
def test_over_http_a_job_longer_than_the_grace_time_commits_by_its_intent(
    served: tuple[Ground, Catalog], registered: bool
) -> None:
    ground, catalog = served
    transaction = StagedTransaction(catalog.access, namespace=["g"])

    def run() -> None:
        with transaction as tx:
            state = tx.describe("t")
            assert state is not None
            if registered:
                tx.register_intent()
            fragments = write_fragments(named_rows(7, 8), state.uri, mode="append")
            let_pass(ground)
            collect(ground)
            tx.stage("t", append_operation(fragments), call="append")

    if registered:
        run()
        assert ground.open(["g", "t"]).count_rows() == 4
        assert catalog.intents() == []
    else:
        with pytest.raises(CommitRejected, match="stage again"):
            run()


def test_the_commands_of_intents(local: Scene) -> None:
    root = str(local.target)
    local.make("t", 1)

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        return done.stdout + done.stderr

    job = run("intent", root, "ml$t", "--for", "2h", "--reason", "by hand").strip()
    assert str(uuid.UUID(job)) == job
    assert run("intent", root, "ml$t", "--id", job).strip() == job
    [_, line] = run("intents", root).splitlines()
    assert line.startswith(f"{job}  20")
    assert line.endswith("Z  ml.t")
    assert intents(local) == [(local.uri("t"), 1)]
    assert f'"id": "{job}"' in run("intents", root, "--json")
    assert run("end-intent", root, job) == f"{job}: ended\n"
    assert run("end-intent", root, job) == f"{job}: is not there\n"
    assert run("intents", root) == ""
    assert "Table not found" in run("intent", root, "ml$nowhere")
    assert "seconds: expected a number from 3600" in run("intent", root, "ml$t", "--for", "1m")

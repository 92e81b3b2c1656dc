"""Defects to plant in a server, before it starts: what the checker must see."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_namespace.errors import ConcurrentModificationError
from pyroaring import BitMap

from lance_core.commit import prepare
from namespace_server.answer import Answer
from namespace_server.directory import catalog_tables
from namespace_server.directory.calls import Call
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.committing import commit_loop
from namespace_server.directory.model.operations import AssertTableVersion, CommitTransaction
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.planning import planner, table_versions
from namespace_server.directory.planning.plan_builder import Plan, PlanBuilder
from namespace_server.directory.reading.commit_results import answer_batch


def lose() -> None:
    """Only the first two flips are made, and all batches are answered as if theirs had been."""
    made = commit_loop.CommitLoop._prepare
    flips = iter(range(1, 1_000_000))
    commit_loop.CommitLoop._prepare = lambda self, attempt, changes: (
        made(self, attempt, changes) if changes is not None or next(flips) <= 2 else None
    )


def tear() -> None:
    """A batch of several tables is committed as two, one after the other."""
    commit = DirectoryNamespace.commit_calls

    def torn(self: DirectoryNamespace, calls: Sequence[Call]) -> list[Any]:
        return [answer for call in calls for answer in commit_one(self, call)]

    def commit_one(namespace: DirectoryNamespace, call: Call) -> list[Any]:
        first, rest = call.batch.operations[:1], call.batch.operations[1:]
        if call.answer is not answer_batch or not rest:
            return commit(namespace, [call])
        [one] = commit(namespace, [replace(call, batch=replace(call.batch, operations=first))])
        if not isinstance(one, Answer):
            return [one]
        other_batch = replace(call.batch, operations=rest, uuid=str(uuid.uuid4()), idempotency_key=None)
        [other] = commit(namespace, [replace(call, batch=other_batch)])
        if not isinstance(other, Answer):
            return [other]
        body = {**other.body, "results": [*one.body["results"], *other.body["results"]]}
        return [Answer(body, other.catalog_version)]

    DirectoryNamespace.commit_calls = torn


def double() -> None:
    """No change is known again: neither by its idempotency key nor by the uuids of its transactions."""
    for module in (planner, catalog_tables):
        module.replay_committed = lambda *_: None
    catalog_tables.CatalogTables.is_answered = lambda *_: False
    prepared = DirectoryNamespace.prepare

    def anew(self: DirectoryNamespace, *arguments: Any, **options: Any) -> Call:
        call = prepared(self, *arguments, **options)
        for operation in call.batch.operations:
            if isinstance(operation, CommitTransaction):
                operation.transaction.uuid = str(uuid.uuid4())
        return call

    DirectoryNamespace.prepare = anew


def revive() -> None:
    """A rebase over other deletions in the same fragment forgets them."""
    rebase = prepare.rebase_deletions

    def forgetful(operation: Any, head: Any, ours: Mapping[int, BitMap], theirs: Mapping[int, BitMap]) -> Any:
        return rebase(operation, head, ours, dict.fromkeys(theirs, BitMap()))

    prepare.rebase_deletions = forgetful


def lag() -> None:
    """Reads are answered from the first snapshot."""
    ask = StoredCatalog.snapshot
    kept: list[Any] = []

    def old(self: StoredCatalog, at: int | None = None) -> Any:
        if at is not None:
            return ask(self, at)
        if not kept:
            kept.append(ask(self))
        return kept[0]

    StoredCatalog.snapshot = old


def skew() -> None:
    """What a batch asserts of tables that it does not change is not looked at."""
    assert_version = table_versions.assert_version

    def careless(builder: PlanBuilder, index: int, operation: AssertTableVersion) -> OperationResult:
        changed = {each.id for each in builder.batch.operations if isinstance(each, CommitTransaction)}
        return assert_version(builder, index, operation) if operation.id in changed else {}

    table_versions.assert_version = careless


def misnumber() -> None:
    """Every answer names the newest catalog version."""
    Plan.answered_version = lambda self, snapshot: snapshot.version


def refuse() -> None:
    """Every batch is answered as a conflict, although it is committed."""
    commit = DirectoryNamespace.commit_calls

    def denied(self: DirectoryNamespace, calls: Sequence[Call]) -> list[Any]:
        return [ConcurrentModificationError("refused") for _ in commit(self, calls)]

    DirectoryNamespace.commit_calls = denied


DEFECTS: dict[str, Callable[[], None]] = {
    "lost": lose,
    "torn": tear,
    "visible": refuse,
    "doubled": double,
    "revived": revive,
    "stale": lag,
    "misanswered": misnumber,
    "skewed": skew,
}
"""By the kind of anomaly that each leads to."""

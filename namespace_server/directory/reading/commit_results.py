"""Responses of committed calls, made from their plans, with the exact wire names."""

from __future__ import annotations

from typing import Any, Final

from namespace_server.directory.catalog import Catalog
from namespace_server.directory.model.operations import (
    CommitTransaction,
    CreateTableVersion,
    DeclareTable,
    DeregisterTable,
    DropTable,
    KeepAnswer,
    Operation,
    UndropTable,
)
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan
from namespace_server.directory.reading.table_versions import version_body

Body = dict[str, Any]

KEPT_ANSWER: Final = "kept_answer"
"""The call of a batch whose answer is kept in its record."""


def answer_call(catalog: Catalog, operation: str, plan: Plan, snapshot: CatalogSnapshot) -> Body:
    """The body that answers `operation`, whose batch is committed as `plan` in `snapshot`."""
    if operation == KEPT_ANSWER and plan.transaction_id != plan.batch.uuid:
        answer = kept_answer(catalog, plan, snapshot)
        return {"transaction_id": plan.transaction_id, "answer": answer}
    results = [
        _result(catalog, asked, result, snapshot)
        for asked, result in zip(plan.batch.operations, plan.results, strict=True)
    ]
    if operation in {"batch_commit_tables", KEPT_ANSWER}:
        named = [
            {asked.name: result}
            for asked, result in zip(plan.batch.operations, results, strict=True)
            if not isinstance(asked, KeepAnswer)
        ]
        return {"transaction_id": plan.transaction_id, "results": named}
    if operation == "batch_create_table_versions":
        return {"transaction_id": plan.transaction_id, "versions": [result["version"] for result in results]}
    transaction: object = [plan.transaction_id] if operation == "drop_namespace" else plan.transaction_id
    return {**results[0], "transaction_id": transaction}


def kept_answer(catalog: Catalog, plan: Plan, snapshot: CatalogSnapshot) -> Body:
    """What the record of a change has as its answer, whose batch had other operations than a repetition's would have.

    What that batch published has its canonical names after, as after its own answer.
    """
    record = snapshot.record(plan.transaction_id)
    parties = () if record is None else record.participants
    rows = (snapshot.version_entry(party.table_id, party.branch, party.version) for party in parties)
    waiting = [row for row in rows if row is not None and not catalog.promoter.is_promoted(row, snapshot)]
    if waiting:
        catalog.promoter.promote(waiting, snapshot)
    *_, kept = plan.results
    answer = dict(kept["answer"])
    return answer if "location" not in kept else {**answer, "location": catalog.store.object_uri(kept["location"])}


def _result(
    catalog: Catalog, operation: Operation, result: OperationResult, snapshot: CatalogSnapshot
) -> OperationResult:
    if isinstance(operation, DeclareTable | DeregisterTable | DropTable | UndropTable):
        return {**result, "location": catalog.store.object_uri(result["location"])}
    if not isinstance(operation, CreateTableVersion | CommitTransaction):
        return result
    version = result["version"]
    entry = snapshot.version_entry(operation.id, operation.branch, version["version"])
    if entry is None:  # removed since, by a later batch: answer as of the commit
        version = {**version, "manifest_path": catalog.store.object_path(version["manifest_path"])}
        if not catalog.store.content_e_tags:
            version.pop("e_tag", None)
        return {**result, "version": version}
    path = entry.canonical_path
    if not catalog.promoter.is_promoted(entry, snapshot):
        catalog.promoter.promote([entry], snapshot)
        path = catalog.promoter.known_path(entry, snapshot)
    return {**result, "version": version_body(catalog.store, entry, path)}

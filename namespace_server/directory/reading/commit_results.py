"""Answers of committed calls, made from their plans, with the exact wire names."""

from __future__ import annotations

from collections.abc import Sequence

from namespace_server.answer import Answer
from namespace_server.data.port import CommittedChange
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.model.operations import (
    CommitTransaction,
    CreateTableVersion,
    DeclareTable,
    DeregisterTable,
    DropTable,
    Operation,
    UndropTable,
)
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan
from namespace_server.directory.reading.table_versions import version_body
from table_data.batch_operations import VersionIdentity


def answer_operation(catalog: StoredCatalog, plan: Plan, snapshot: CatalogSnapshot) -> Answer:
    """The answer of a call that is one operation, whose batch is committed as `plan` in `snapshot`."""
    [result] = _results(catalog, plan, snapshot)
    return Answer({**result, "transaction_id": plan.transaction_id}, plan.answered_version(snapshot))


def answer_dropped_namespace(catalog: StoredCatalog, plan: Plan, snapshot: CatalogSnapshot) -> Answer:
    """As `answer_operation`; the spec has a list of transactions here."""
    [result] = _results(catalog, plan, snapshot)
    return Answer({**result, "transaction_id": [plan.transaction_id]}, plan.answered_version(snapshot))


def answer_batch(catalog: StoredCatalog, plan: Plan, snapshot: CatalogSnapshot) -> Answer:
    """BatchCommitTablesResponse."""
    results = [
        {operation.name: result}
        for operation, result in zip(plan.batch.operations, _results(catalog, plan, snapshot), strict=True)
    ]
    return Answer({"transaction_id": plan.transaction_id, "results": results}, plan.answered_version(snapshot))


def answer_versions(catalog: StoredCatalog, plan: Plan, snapshot: CatalogSnapshot) -> Answer:
    """BatchCreateTableVersionsResponse."""
    versions = [result["version"] for result in _results(catalog, plan, snapshot)]
    return Answer({"transaction_id": plan.transaction_id, "versions": versions}, plan.answered_version(snapshot))


def answer_change(catalog: StoredCatalog, plan: Plan, snapshot: CatalogSnapshot) -> CommittedChange:
    """The answer to a change of rows that is committed."""
    if plan.transaction_id != plan.batch.uuid:
        return kept_answer(catalog, plan, snapshot)
    results = _results(catalog, plan, snapshot)
    made = [
        result["version"]
        for operation, result in zip(plan.batch.operations, results, strict=True)
        if isinstance(operation, CommitTransaction)
    ]
    number = made[-1]["version"] if made else None
    identity = VersionIdentity.of(made[-1]) if made else None
    return CommittedChange(plan.transaction_id, plan.answered_version(snapshot), number, identity)


def kept_answer(catalog: StoredCatalog, plan: Plan, snapshot: CatalogSnapshot) -> CommittedChange:
    """The answer in the record of a change, whose batch had other operations than a repetition's would have.

    The versions that batch published have their canonical names after, as after its own answer.
    """
    record = snapshot.record(plan.transaction_id)
    parties = () if record is None else record.participants
    rows = (snapshot.version_entry(party.table_id, party.branch, party.version) for party in parties)
    waiting = [row for row in rows if row is not None and not catalog.promoter.is_promoted(row, snapshot)]
    if waiting:
        catalog.promoter.promote(waiting, snapshot)
    *_, result = plan.results
    kept = dict(result["answer"])
    if "location" in result:
        kept["location"] = catalog.store.object_uri(result["location"])
    return CommittedChange(plan.transaction_id, plan.answered_version(snapshot), kept=kept)


def _results(catalog: StoredCatalog, plan: Plan, snapshot: CatalogSnapshot) -> Sequence[OperationResult]:
    return [
        _result(catalog, operation, result, snapshot)
        for operation, result in zip(plan.batch.operations, plan.results, strict=True)
    ]


def _result(
    catalog: StoredCatalog, operation: Operation, result: OperationResult, snapshot: CatalogSnapshot
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

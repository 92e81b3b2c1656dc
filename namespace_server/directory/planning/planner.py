"""Plan a batch against one snapshot: in order, each operation on the effects of those before it.

Planning changes nothing in the catalog. Facts about storage come as `Finding`s, which verification made before, or from
the `PlanningContext` of the attempt. A batch that cannot be carried out raises the namespace error to answer with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import orjson
from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TransactionNotFoundError,
    UnsupportedOperationError,
)

from namespace_server.access.subjects import Privilege, Subject
from namespace_server.attempts import Authorization
from namespace_server.directory.model.entries import Changes
from namespace_server.directory.model.errors import AccessDenied, TablesWithoutCatalog
from namespace_server.directory.model.notes import change_notes
from namespace_server.directory.model.operations import (
    AdoptTableVersions,
    AlterBatch,
    AssertTableVersion,
    Batch,
    CloneTable,
    CommitTransaction,
    ConfirmTag,
    CreateBranch,
    CreateNamespace,
    CreateTableVersion,
    DeclareTable,
    DeleteBranch,
    DeleteTableVersions,
    DeleteTag,
    DeregisterTable,
    DropNamespace,
    DropTable,
    KeepAnswer,
    NeedOperation,
    Operation,
    RegisterTable,
    RenameTable,
    SetTableProperties,
    UndropNamespace,
    UndropTable,
)
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning import namespaces_and_tables, references, table_versions, transactions
from namespace_server.directory.planning.cloning import clone_table
from namespace_server.directory.planning.grants import plan_grant
from namespace_server.directory.planning.judgement import Judge
from namespace_server.directory.planning.needs import plan_need
from namespace_server.directory.planning.plan_builder import (
    Finding,
    Plan,
    PlanBuilder,
    StagedManifest,
    version_result,
)
from namespace_server.directory.planning.planning_context import PlanningContext
from namespace_server.directory.planning.reached_bases import reached_bases
from namespace_server.directory.planning.undrop import undrop


def plan_batch(
    batch: Batch, snapshot: CatalogSnapshot, findings: Mapping[int, Finding], context: PlanningContext
) -> Plan | None:
    """Plan a batch on a snapshot, which may be the overlay of a group; None if it must follow the flip of that.

    So it is with what removes rows that another batch of the group makes, and drops a table that one changes (P6, G13).

    Raises a LanceNamespaceError when it cannot be carried out.
    """
    if replayed := replay_committed(batch, snapshot, findings):
        return replayed
    builder = PlanBuilder(batch, snapshot, findings, context)
    if batch.subject is not None and snapshot.policy is not None:
        _plan_judged(builder, batch.subject)
    else:
        for index, operation in enumerate(batch.operations):
            builder.results.append(_plan_operation(builder, index, operation))
    return None if builder.follows else builder.finish()


def _plan_judged(builder: PlanBuilder, subject: Subject) -> None:
    """Plan the operations that the subject may do, each judged on the effects of those before it (GR3).

    Raises `AccessDenied` with all that it may not do, whatever else stands in the way: once an operation is denied, or
    fails, those that follow are judged alone.
    """
    judge = Judge(subject, builder.judged, builder.context.root_key)
    denials: list[Authorization] = []
    failure: LanceNamespaceError | None = None
    for index, operation in enumerate(builder.batch.operations):
        finding = builder.findings.get(index)
        judgement = judge.judge(index, operation, finding, partial(reached_bases, builder, operation, finding))
        denials += judgement.denials
        failure = failure or judgement.refusal
        if denials or failure is not None:
            continue
        builder.granted += judgement.checks
        try:
            planned = judgement.result
            builder.results.append(_plan_operation(builder, index, operation) if planned is None else planned)
        except LanceNamespaceError as error:
            failure = error
    if denials:
        raise AccessDenied(denials)
    if failure is not None:
        raise failure


def replay_committed(batch: Batch, snapshot: CatalogSnapshot, findings: Mapping[int, Finding]) -> Plan | None:
    """The plan of a batch that is already in the catalog, before any other test (P1, A1); None if it is not.

    Raises InvalidInputError when the idempotency key was used for another request.
    """
    record = snapshot.record(batch.uuid)
    if record is None and batch.idempotency_key is not None:
        record = snapshot.record_by_key(batch.idempotency_key, batch.principal)
        if record is not None and record.request_hash != batch.request_hash:
            raise InvalidInputError(f"idempotency key {batch.idempotency_key!r} was used for another request")
    creates = [
        (index, operation)
        for index, operation in enumerate(batch.operations)
        if isinstance(operation, CreateTableVersion)
    ]
    is_there = creates and all(_is_there(op, snapshot, findings.get(index)) for index, op in creates)
    if record is None and is_there and _may_be_replayed(batch, snapshot):
        record = snapshot.record_by_request(batch.request_hash)
        if record is not None and record.principal != batch.principal:
            record = None
        if record is None and len(batch.operations) == 1:
            entry = snapshot.version_entry(creates[0][1].id, creates[0][1].branch, creates[0][1].version)
            if entry is not None:
                return Plan(batch, batch.uuid, Changes(), frozenset(), (version_result(entry),), replayed=True)
    if record is None:
        return None
    results: list[OperationResult] = orjson.loads(record.results)
    return Plan(
        batch,
        record.batch_uuid,
        Changes(),
        frozenset(),
        tuple(results),
        replayed=True,
        catalog_version=record.catalog_version or None,
    )


def _may_be_replayed(batch: Batch, snapshot: CatalogSnapshot) -> bool:
    """Whether a batch is recognised by what it published: not for a subject that may not see the tables any more."""
    policy = snapshot.policy
    tables = (each.id for each in batch.operations if isinstance(each, CreateTableVersion))
    return policy is None or all(policy.allows(batch.subject, Privilege.SEE, table_id) for table_id in tables)


def _is_there(operation: CreateTableVersion, snapshot: CatalogSnapshot, finding: Finding | None) -> bool:
    entry = snapshot.version_entry(operation.id, operation.branch, operation.version)
    if entry is None:
        return False
    if operation.manifest_path is not None and entry.matches_staged_path(operation.manifest_path):
        return True
    return isinstance(finding, StagedManifest) and finding.file.identity == entry.identity


def _plan_operation(builder: PlanBuilder, index: int, operation: Operation) -> OperationResult:
    match operation:
        case CreateTableVersion():
            return table_versions.create_version(builder, index, operation)
        case (
            CreateNamespace() | DropNamespace() | DeregisterTable() | DropTable() | RenameTable() | SetTableProperties()
        ):
            return namespaces_and_tables.plan_object(builder, operation)
        case DeclareTable() | RegisterTable() | CloneTable():
            return _plan_new_table(builder, index, operation)
        case UndropTable() | UndropNamespace():
            return undrop(builder, index, operation)
        case DeleteTableVersions():
            return table_versions.delete_versions(builder, index, operation)
        case CommitTransaction():
            return transactions.commit_transaction(builder, index, operation)
        case AdoptTableVersions():
            return {}  # the group adopts before its batches are planned
        case AssertTableVersion():
            return table_versions.assert_version(builder, index, operation)
        case CreateBranch() | DeleteBranch() | ConfirmTag() | DeleteTag():
            return references.plan_reference(builder, index, operation)
        case AlterBatch():
            return _alter_batch(builder, operation)
        case KeepAnswer():
            return _keep_answer(builder, operation)
        case _:
            if isinstance(operation, NeedOperation):
                return plan_need(builder, index, operation)
            return plan_grant(builder, operation)


def _plan_new_table(
    builder: PlanBuilder, index: int, operation: DeclareTable | RegisterTable | CloneTable
) -> OperationResult:
    """Plan one operation that puts a table under a name: without a version, with those on storage, or with a clone."""
    match operation:
        case DeclareTable():
            return namespaces_and_tables.declare_table(builder, index, operation)
        case RegisterTable():
            return namespaces_and_tables.register_table(builder, index, operation)
        case CloneTable():
            return clone_table(builder, index, operation)


def _alter_batch(builder: PlanBuilder, operation: AlterBatch) -> OperationResult:
    """Put the record of a batch with its changed properties. TransactionNotFoundError (10) if it has none any more."""
    record = builder.work.record(operation.key)
    if record is None or not record.is_batch:
        raise TransactionNotFoundError(f"batch {operation.key} has no record, or none any more")
    properties = change_notes(record.properties, operation.changes, operation.limits)
    if properties != dict(record.properties):
        builder.change_records([replace(record, properties=properties)])
    return {}


def _keep_answer(builder: PlanBuilder, operation: KeepAnswer) -> OperationResult:
    """Have the answer recorded, with the number of the version that the batch publishes, if it publishes one."""
    builder.require_record()
    answer = dict(operation.answer)
    if builder.published:
        answer["version"] = builder.published[-1].entry.version
    return {"answer": answer, **({"location": operation.location} if operation.location is not None else {})}


def require_managed(snapshot: CatalogSnapshot) -> None:
    """Raise UnsupportedOperationError (0) for a catalog or tables of stock clients that are not adopted."""
    if not snapshot.version and not snapshot.is_empty_root:
        raise TablesWithoutCatalog([table.location for table in map(snapshot.table, snapshot.all_tables()) if table])
    if snapshot.version and not snapshot.managed:
        raise UnsupportedOperationError(
            "this catalog was made by another implementation and is served for reading; "
            "`lance-namespace adopt` turns it into a managed one"
        )

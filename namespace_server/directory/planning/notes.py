"""Plan what a record holds beside its batch: properties that clients note on it, and the answer of its call."""

from __future__ import annotations

from dataclasses import replace

from lance_namespace.errors import TransactionNotFoundError

from namespace_server.directory.model.notes import change_notes
from namespace_server.directory.model.operations import AlterBatch, KeepAnswer
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.planning.plan_builder import PlanBuilder


def plan_note(builder: PlanBuilder, operation: AlterBatch | KeepAnswer) -> OperationResult:
    """Plan what one operation puts into a record."""
    return _alter_batch(builder, operation) if isinstance(operation, AlterBatch) else _keep_answer(builder, operation)


def _alter_batch(builder: PlanBuilder, operation: AlterBatch) -> OperationResult:
    """Put the record of a batch with its changed properties. TransactionNotFoundError (10) if it has none any more."""
    record = builder.work.record(operation.batch_uuid)
    if record is None or not record.is_batch:
        raise TransactionNotFoundError(f"batch {operation.batch_uuid} has no record, or none any more")
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

"""Plan the change of the properties that clients noted on a committed batch."""

from __future__ import annotations

from dataclasses import replace

from lance_namespace.errors import TransactionNotFoundError

from namespace_server.directory.model.notes import change_notes
from namespace_server.directory.model.operations import AlterBatch
from namespace_server.directory.planning.plan_builder import PlanBuilder, Result


def alter_batch(builder: PlanBuilder, operation: AlterBatch) -> Result:
    """Put the record of a batch with its changed properties. TransactionNotFoundError (10) if it has none any more."""
    record = builder.work.record(operation.batch_uuid)
    if record is None or not record.is_batch:
        raise TransactionNotFoundError(f"batch {operation.batch_uuid} has no record, or none any more")
    properties = change_notes(record.properties, operation.changes, operation.limits)
    if properties != dict(record.properties):
        builder.change_records([replace(record, properties=properties)])
    return {}

"""Plan pins: catalog versions that are kept whatever the settings (rule G10)."""

from __future__ import annotations

from lance_namespace.errors import TableVersionNotFoundError

from namespace_server.directory.model.collector_rows import PinEntry
from namespace_server.directory.model.operations import RemovePin, SetPin
from namespace_server.directory.model.results import OperationResult, pin_json
from namespace_server.directory.planning.plan_builder import PlanBuilder


def plan_pin(builder: PlanBuilder, operation: SetPin | RemovePin) -> OperationResult:
    """Set or remove a pin. Raises TableVersionNotFoundError (11) for a version that is not kept, or no such pin."""
    if isinstance(operation, SetPin):
        return _set(builder, operation)
    pin = builder.work.pin(operation.key)
    if pin is None:
        raise TableVersionNotFoundError(f"there is no pin {operation.key}")
    builder.change(removes=[pin.object_id])
    return {"pin": pin_json(pin)}


def _set(builder: PlanBuilder, operation: SetPin) -> OperationResult:
    """The version must be kept in the snapshot that is flipped: later runs keep what is pinned there."""
    newest, oldest = builder.base.version, builder.base.collector.oldest
    version = newest + 1 if operation.version is None else operation.version
    is_there = operation.version is None or version <= newest
    if not is_there or (version < oldest and not builder.work.is_pinned(version)):
        raise TableVersionNotFoundError(
            f"pin {operation.key}: catalog version {version} is not kept, expected one from {oldest} to {newest}"
        )
    seconds, now_ms = operation.seconds or 0, builder.context.now_ms
    pin = PinEntry(
        operation.key,
        version,
        now_ms + seconds * 1_000 if seconds else 0,
        operation.reason,
        builder.batch.principal,
        now_ms,
        seconds,
        newest + 1 if seconds else 0,
    )
    builder.change([pin])
    return {"pin": pin_json(pin)}

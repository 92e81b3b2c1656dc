"""Plan what has to be kept: pins (rule G10), intents (rules G4 and G11), and cursors, moved by compare-and-set."""

from __future__ import annotations

from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from namespace_server.directory.model.collector_rows import CursorEntry, IntendedChain, IntentEntry, PinEntry
from namespace_server.directory.model.errors import BatchConflict, ConflictDetail, HistoryGone, version_not_kept
from namespace_server.directory.model.operations import (
    AdvanceCursor,
    DeleteCursor,
    EndIntent,
    IntendedTable,
    NeedOperation,
    RegisterIntent,
    RemovePin,
    SetPin,
)
from namespace_server.directory.model.results import OperationResult, cursor_json, intent_json, pin_json
from namespace_server.directory.planning.plan_builder import PlanBuilder


def plan_need(builder: PlanBuilder, index: int, operation: NeedOperation) -> OperationResult:
    """Plan what one operation says of what has to be kept. Raises as the functions for each kind."""
    match operation:
        case SetPin() | RemovePin():
            return _plan_pin(builder, operation)
        case RegisterIntent() | EndIntent():
            return _plan_intent(builder, operation)
        case AdvanceCursor() | DeleteCursor():
            return _plan_cursor(builder, index, operation)


def _plan_pin(builder: PlanBuilder, operation: SetPin | RemovePin) -> OperationResult:
    """Set or remove a pin. Raises TableVersionNotFoundError (11) for a version that is not kept, or no such pin."""
    if isinstance(operation, SetPin):
        return _set_pin(builder, operation)
    pin = builder.work.pin(operation.key)
    if pin is None:
        raise TableVersionNotFoundError(f"there is no pin {operation.key}")
    builder.change(removes=[pin.object_id])
    return {"pin": pin_json(pin)}


def _set_pin(builder: PlanBuilder, operation: SetPin) -> OperationResult:
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


def _plan_intent(builder: PlanBuilder, operation: RegisterIntent | EndIntent) -> OperationResult:
    """Register an intent, renew it, or end it. One that is not there any more is ended already.

    A renewal adds tables, and shortens nothing: it is for the longest time that was asked for. Raises
    TableNotFoundError (4) for a table without a location, and TableVersionNotFoundError (11) for a version that is to
    be kept and is not there.
    """
    known = builder.work.intent(operation.key)
    if isinstance(operation, EndIntent):
        if known is None:
            return {}
        builder.change(removes=[known.object_id])
        return {"intent": intent_json(known)}
    now_ms = builder.context.now_ms
    until_ms = now_ms + operation.seconds * 1_000
    intent = IntentEntry(
        operation.key,
        _chains(builder, () if known is None else known.chains, operation.tables),
        until_ms if known is None else max(until_ms, known.until_ms),
        operation.reason,
        builder.batch.principal,
        now_ms if known is None else known.timestamp_ms,
        operation.seconds if known is None else max(operation.seconds, known.seconds),
        builder.base.version + 1,
    )
    builder.change([intent])
    return {"intent": intent_json(intent)}


def _chains(
    builder: PlanBuilder, known: tuple[IntendedChain, ...], tables: tuple[IntendedTable, ...]
) -> tuple[IntendedChain, ...]:
    """The chains of the intent with these tables.

    A chain that is new to it is kept from the horizon of the snapshot that is flipped: what is older may be on the list
    of a garbage collection already, whenever the job asked.
    """
    chains = {(chain.location, chain.branch): chain for chain in known}
    for table in tables:
        location = builder.table(table.id).location if table.location is None else table.location
        begun = IntendedChain(location, table.branch, builder.base.collector.horizon)
        before = chains.get((location, table.branch), begun)
        version = table.read_version
        if version and not 0 < before.read_version <= version:
            _require_version(builder, table, location)
            before = before._replace(read_version=version)
        chains[location, table.branch] = before
    return tuple(chains.values())


def _require_version(builder: PlanBuilder, table: IntendedTable, location: str) -> None:
    """The version must be in the snapshot that is flipped: the runs of gc that follow keep what is registered."""
    holder = builder.work.table_at(location)
    row = None if holder is None else builder.work.version_entry(holder, table.branch, table.read_version)
    if row is None:
        raise version_not_kept(table.id, location, table.branch, table.read_version)


def _plan_cursor(builder: PlanBuilder, index: int, operation: AdvanceCursor | DeleteCursor) -> OperationResult:
    """Move or remove a cursor. One that is there already changes nothing, if its batch does nothing else.

    Raises BatchConflict (14) where the cursor is not where it has to be, would go back without saying so, or is there
    already although its batch does more: what another consumer of that cursor has done is not done twice;
    HistoryGone (11) for a position whose next version is not kept; InvalidInputError (13) for one in the future;
    TableVersionNotFoundError (11) if a cursor that is removed is not there.
    """
    found = builder.work.cursor(operation.key)
    if isinstance(operation, AdvanceCursor):
        return {"cursor": cursor_json(_advance(builder, index, operation, found))}
    if found is None:
        raise TableVersionNotFoundError(f"there is no cursor {operation.key}")
    builder.change(removes=[found.object_id])
    return {"cursor": cursor_json(found)}


def _advance(builder: PlanBuilder, index: int, operation: AdvanceCursor, found: CursorEntry | None) -> CursorEntry:
    newest, oldest = builder.base.version, builder.base.collector.oldest
    version = newest + 1 if operation.version is None else operation.version
    if found is not None and found.version == version and _may_be_there(builder, operation):
        return found  # this very change was made before, and its answer lost; or another made it
    if operation.expected is not None and (found is None or found.version != operation.expected):
        raise _conflict(index, operation, found, f"expected it at catalog version {operation.expected}")
    if found is not None and version == found.version and operation.version is not None:
        raise _conflict(index, operation, found, "what its batch does for that version was done, and is not done twice")
    if found is not None and version < found.version and not operation.backwards:
        raise _conflict(index, operation, found, f"catalog version {version} is before it, and `backwards` is not set")
    if operation.version is not None and version > newest:
        raise InvalidInputError(
            f"cursor {operation.key}: expected a catalog version up to {newest}, found {version}, which is to come"
        )
    cursor = CursorEntry(operation.key, version, builder.batch.principal, builder.context.now_ms)
    if cursor.is_expired(oldest):
        raise HistoryGone(version, oldest)
    builder.change([cursor])
    return cursor


def _may_be_there(builder: PlanBuilder, operation: AdvanceCursor) -> bool:
    """Whether a move may find the cursor where it puts it: if its batch has nothing else, which would be done twice."""
    is_anywhere = operation.version is None and operation.expected is None
    return is_anywhere or all(isinstance(each, AdvanceCursor | DeleteCursor) for each in builder.batch.operations)


def _conflict(index: int, operation: AdvanceCursor, found: CursorEntry | None, why: str) -> BatchConflict:
    """The verdict on a move that another one came before: to repeat it does not help, another consumer is at work."""
    actual = None if found is None else found.version
    place = "there is none" if found is None else f"it is at catalog version {found.version}"
    hint = f"incompatible: {place}: {why}"
    detail = ConflictDetail(index, (operation.key,), None, operation.expected, actual, None, hint, kind="incompatible")
    return BatchConflict(f"cursor {operation.key}: {hint}", detail, operation.name)

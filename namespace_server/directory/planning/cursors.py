"""Plan cursors: how far consumers of events have come, moved by compare-and-set."""

from __future__ import annotations

from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from namespace_server.directory.model.collector_rows import CursorEntry
from namespace_server.directory.model.errors import BatchConflict, ConflictDetail, HistoryGone
from namespace_server.directory.model.operations import AdvanceCursor, DeleteCursor
from namespace_server.directory.model.results import OperationResult, cursor_json
from namespace_server.directory.planning.plan_builder import PlanBuilder


def plan_cursor(builder: PlanBuilder, index: int, operation: AdvanceCursor | DeleteCursor) -> OperationResult:
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

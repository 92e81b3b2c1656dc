"""Properties that clients note on a transaction: on a batch in its record, on a table's transaction in a file.

The file lies where stock servers keep it, `_alter_transactions/<uuid>.json` below the table's root, and has their form.
The status of a transaction cannot be altered: one that can be named is committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lance_namespace.errors import ConcurrentModificationError, ServiceUnavailableError

from lance_core.commit.slot import SlotLost, SlotUnknown, claim_slot
from lance_core.errors import NotFound, PreconditionFailed, StorageUnknown
from namespace_server.access.subjects import Privilege
from namespace_server.answer import Answer
from namespace_server.directory.model.note_requests import note_changes
from namespace_server.directory.model.notes import NoteChange, change_notes
from namespace_server.directory.model.operations import AlterBatch, KeepAnswer
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.reading.read_context import ReadContext
from namespace_server.directory.reading.sight import Sight, sight_of
from namespace_server.directory.reading.transactions import (
    FoundBatch,
    FoundTransaction,
    decode_notes,
    describe_found,
    encode_notes,
    find_transaction,
    notes_path,
)
from namespace_server.directory.references.change_context import ChangeContext, Recorded, begun

_ATTEMPTS: Final = 10


def alter_transaction(context: ChangeContext, request: Request) -> Answer:
    """AlterTransactionResponse: the transaction after all actions; if one fails, none is done.

    Raises TransactionNotFoundError (10), TableNotFoundError (4), InvalidInputError (13),
    ConcurrentModificationError (14), `StorageError` if nothing was done, `StorageUnknown`.
    """
    changes = note_changes(request, context.limits)
    snapshot = context.catalog.snapshot()
    context.require_changeable(snapshot)
    sight = context.sight
    view = ReadContext(context.catalog, snapshot if sight is None else sight.today, sight=sight)
    found = find_transaction(view, request)
    if sight is not None:
        _judge(sight, found)
    if isinstance(found, FoundBatch):
        alteration = AlterBatch(found.record.batch_uuid, tuple(changes), context.limits)
        recorded = context.commit(alteration)
    else:
        # The file first: otherwise a record could stand for a change that was never made.
        _alter_file(context, found, changes)
        recorded = _record(context)
    with begun():
        return describe_altered(recorded, context, request)


def _judge(sight: Sight, found: FoundBatch | FoundTransaction) -> None:
    """Raise PermissionDeniedError (15) for the batch of another one, and a transaction of a table not to be written."""
    if isinstance(found, FoundTransaction):
        sight.require({Privilege.WRITE}, found.entry.table_id)
    elif not sight.owns(found.record.principal):
        sight.require({Privilege.MAINTAIN}, ())


def _record(context: ChangeContext) -> Recorded:
    """Record that notes were written. Raises `StorageUnknown` where that fails: the notes stand."""
    try:
        with begun():
            return context.commit(KeepAnswer("alter_transaction"))
    except ServiceUnavailableError as error:
        raise StorageUnknown(f"the properties are noted, and that is not recorded: {error}") from error


def describe_altered(recorded: Recorded, context: ChangeContext, request: Request) -> Answer:
    """The transaction as it is now; to a repeated request, too: its properties may be as long as clients like."""
    view = ReadContext(context.catalog, recorded.snapshot, sight=sight_of(recorded.snapshot, context.subject))
    return Answer(describe_found(view, find_transaction(view, request)), recorded.snapshot.version)


def _alter_file(context: ChangeContext, found: FoundTransaction, changes: Sequence[NoteChange]) -> None:
    """Change the file of notes by compare-and-set (see `ObjectStore.replace`)."""
    store = context.catalog.store
    path = notes_path(found.entry)
    for _ in range(_ATTEMPTS):
        try:
            e_tag = store.head(path).e_tag or ""
            data = store.get(path)
            before = decode_notes(path, data)
        except NotFound:
            after = change_notes({}, changes, context.limits)
            if not after:
                return
            outcome = claim_slot(store, path, encode_notes(after))
            if isinstance(outcome, SlotUnknown):
                raise StorageUnknown(f"{path}: {outcome.reason}") from None
            if isinstance(outcome, SlotLost):
                continue
            return
        after = change_notes(before, changes, context.limits)
        if after == before:
            return
        try:
            store.replace(path, encode_notes(after, data), if_match=e_tag)
        except (PreconditionFailed, NotFound):
            continue
        return
    raise ConcurrentModificationError(
        f"transaction {found.entry.transaction_uuid}: its properties were changed by others during each of "
        f"{_ATTEMPTS} attempts"
    )

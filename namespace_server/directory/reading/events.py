"""Answers about events and cursors: what the history of the catalog tells to those who follow it."""

from __future__ import annotations

from typing import Final

from lance_namespace.errors import InvalidInputError

from namespace_server.directory.manifest_table.history import CatalogStep
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.errors import HistoryGone
from namespace_server.directory.model.events import VersionContent, cloud_event
from namespace_server.directory.model.history import Body, outline_of_record, without_private
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.model.results import cursor_json
from namespace_server.directory.reading.read_context import ReadContext
from namespace_server.directory.reading.visible_history import visible_content

_USUAL: Final = 100
_PAGE_BYTES: Final = 1 << 20
"""Bytes of the events of one answer, about, after which it ends: one event may be longer."""
_EVENT_BYTES: Final = 512
"""Of an event without its content."""


def list_catalog_events(context: ReadContext, request: Request) -> Body:
    """Ours: the events of the catalog versions after `since`, oldest first; without it none, and the newest version.

    `last` is the version from which to go on, `newest` that of the catalog. Raises HistoryGone (11) if one of the
    versions is not kept, InvalidInputError (13) for one in the future: whoever has seen it follows another catalog.
    """
    snapshot = context.snapshot
    if request_fields.integer(request, "wait"):
        raise InvalidInputError("wait: expected none: a server waits, and clients of a catalog in their process do")
    since, limit = request_fields.integer(request, "since"), context.entry_count(request, _USUAL)
    if since is None:
        return {"events": [], "last": snapshot.version, "newest": snapshot.version}
    if not 0 <= since <= snapshot.version:
        raise InvalidInputError(f"since: expected a catalog version from 0 to {snapshot.version}, found {since}")
    events: list[Body] = []
    size, last = 0, since
    if since < snapshot.version and since + 1 < snapshot.collector.oldest:
        raise HistoryGone(since, snapshot.collector.oldest)
    for step in context.catalog.table.versions_after(since, snapshot, limit):
        content = _content(step)
        events.append(cloud_event(content if context.sight is None else visible_content(context.sight, content)))
        last, size = step.entry.version, size + _EVENT_BYTES + step.size
        if size >= _PAGE_BYTES:
            break
    if not events and since < snapshot.version:  # removed meanwhile, as after a collection by another server
        newest = context.catalog.table.refresh()
        raise HistoryGone(since, max(newest.collector.oldest, since + 2))
    return {"events": events, "last": last, "newest": snapshot.version}


def list_cursors(context: ReadContext, _request: Request) -> Body:
    """Ours: all cursors, by name. An expired one is behind what is kept: its consumer takes a baseline."""
    snapshot = context.snapshot
    return {
        "cursors": [
            {
                **cursor_json(cursor),
                "lag": max(snapshot.version - cursor.version, 0),
                **({"expired": True} if cursor.is_expired(snapshot.collector.oldest) else {}),
            }
            for cursor in snapshot.cursors()
        ]
    }


def _content(step: CatalogStep) -> VersionContent:
    entry = step.entry
    records = {record.batch_uuid: record for record in step.records}
    batches: list[Body] = []
    for uid, message in entry.batches:
        outline = entry.outline.batches.get(uid)
        if outline is None:  # of an earlier release
            outline = outline_of_record(records[uid]) if uid in records else {}
        batches.append(
            {"transaction_id": uid, **({} if message is None else {"message": message}), **without_private(outline)}
        )
    return VersionContent(
        entry.version,
        entry.timestamp_ms,
        entry.identity,
        entry.made_by_catalog,
        batches,
        entry.outline.adopted,
        step.records,
    )

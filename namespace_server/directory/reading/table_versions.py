"""Answers about table versions.

Versions are promoted before they are returned. A canonical path is returned only when the file there was seen to be
the row's, else the staged path (M3). Versions whose file a client's cleanup removed are not there (M5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from operator import attrgetter

from lance_namespace.errors import ServiceUnavailableError, TableBranchNotFoundError, TableVersionNotFoundError

from lance_core.versions import find_contents, list_versions
from namespace_server.directory.manifests.manifest_reader import is_row
from namespace_server.directory.manifests.stored_versions import find_removed, stored_entries
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.entries import TableEntry, VersionEntry
from namespace_server.directory.model.errors import table_not_found
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.model.results import TableVersionJson, table_version_json
from namespace_server.directory.reading.read_context import Naming, ReadContext
from namespace_server.outcomes import with_nothing_done
from table_data.batch_operations import TableState, VersionIdentity

Body = dict[str, object]

_version_of = attrgetter("version")


def describe_table_version(context: ReadContext, request: Request) -> Body:
    """DescribeTableVersionResponse; without a version the head. 404/11 for versions that are not there (any more)."""
    table = require_table(context, request)
    branch, version = request_fields.branch(request), request_fields.integer(request, "version")
    entry = find(context, table, branch, version)
    if entry is None:
        found = missing(version)
        place = f"table {join(table.id)}" if branch is None else f"branch {branch} of table {join(table.id)}"
        raise TableVersionNotFoundError(f"{place}: {found}")
    return {"version": _finished(context, [entry])[0]}


def missing(version: int | None) -> str:
    """The words of an error for a version that does not exist; None is any version."""
    return "it has no version" if version is None else f"version {version} does not exist"


def list_table_versions(context: ReadContext, request: Request) -> Body:
    """ListTableVersionsResponse. The token of the next page is the last version of this one."""
    table = require_table(context, request)
    branch = request_fields.branch(request)
    descending = request_fields.flag(request, "descending")
    limit = context.page_size(request)
    last = request_fields.page_position(request, "a version number")
    start = None if last is None else last + (-1 if descending else 1)
    entries = _existing(context, table, branch, descending, start, limit)
    if not entries and branch is not None and _is_no_branch(context, table, branch):
        raise TableBranchNotFoundError(f"table {join(table.id)}: branch {branch!r} does not exist")
    wanted = entries[:limit]
    body: Body = {"versions": _finished(context, wanted)}
    if wanted and len(entries) > len(wanted):
        body["page_token"] = str(wanted[-1].version)
    return body


def find(context: ReadContext, table: TableEntry, branch: str | None, version: int | None) -> VersionEntry | None:
    """One version, or the head; None if it does not exist or is gone, which the newest head never is (M5)."""
    snapshot = context.about(table.id)
    if not snapshot.managed:
        stored = stored_entries(context.catalog.store, table, branch)
        wanted = [entry for entry in stored if version in {None, entry.version}]
        return wanted[-1] if wanted else None
    head = snapshot.head(table.id, branch)
    if head is None or version is None or version == head.version:
        if head is None or context.is_deleted(head) or _is_removed_head(context, head):
            return None
        return None if branch is not None and context.catalog.forget_if_deleted(snapshot, table.id, branch) else head
    entry = snapshot.version_entry(table.id, branch, version)
    if entry is None or context.is_deleted(entry):
        return None
    if not context.is_promoted(entry):
        return entry
    if _gone(context, head, [entry]):
        context.catalog.record_housekeeping.remove([entry])
        return None
    return entry


def version_body(naming: Naming, entry: VersionEntry, path: str) -> TableVersionJson:
    """TableVersion of a version whose manifest stands at `path`."""
    return table_version_json(entry, naming.object_path(path), with_e_tag=naming.content_e_tags)


def _existing(
    context: ReadContext,
    table: TableEntry,
    branch: str | None,
    descending: bool,
    start: int | None,
    limit: int,
) -> list[VersionEntry]:
    """The versions from `start` on, at most one more than `limit`, without those that are gone (M5)."""
    snapshot = context.about(table.id)
    if not snapshot.managed:
        return _unmanaged(context, table, branch, descending, start)
    head = snapshot.head(table.id, branch)
    if head is None or context.is_deleted(head):
        return []
    if _is_removed_head(context, head):  # a version left below it would be taken for the head (M5)
        raise TableVersionNotFoundError(
            f"version {head.version} of table {join(table.id)}, the newest one at this catalog version, was removed by "
            "a cleanup"
        )
    if limit == 1 and descending and start is None:  # the question that every open asks: a head is never gone
        if branch is not None and context.catalog.forget_if_deleted(snapshot, table.id, branch):
            return []
        return list(islice(snapshot.versions(table.id, branch, descending=True), 2))
    present = {found.version for found in list_versions(context.catalog.store, head.base)}
    if not present and branch is not None and context.catalog.forget_if_deleted(snapshot, table.id, branch):
        return []
    rows = snapshot.versions(table.id, branch, descending=descending, start=start)
    existing = _without_gone(context, head, rows, present, limit)
    existing.sort(key=_version_of, reverse=descending)
    return existing


def _unmanaged(
    context: ReadContext, table: TableEntry, branch: str | None, descending: bool, start: int | None
) -> list[VersionEntry]:
    stored = stored_entries(context.catalog.store, table, branch)
    ordered = stored[::-1] if descending else stored
    if start is None:
        return ordered
    return [entry for entry in ordered if (entry.version <= start if descending else entry.version >= start)]


def _without_gone(
    context: ReadContext, head: VersionEntry, rows: Iterable[VersionEntry], present: Collection[int], limit: int
) -> list[VersionEntry]:
    """At most one more of these rows than `limit`, without those that are gone, and in another order perhaps.

    Those that are not among the `present` files, and were promoted, are looked at once more.
    """
    existing: list[VersionEntry] = []
    absent: list[VersionEntry] = []
    for entry in rows:
        if entry.version in present or entry.version == head.version or not context.is_promoted(entry):
            existing.append(entry)
        else:
            absent.append(entry)
        if limit < len(existing):
            break
    gone = _gone(context, head, absent) if absent else []
    context.catalog.record_housekeeping.remove(gone)
    return [*existing, *(entry for entry in absent if entry not in gone)]


def _is_removed_head(context: ReadContext, head: VersionEntry) -> bool:
    """Whether a client's cleanup removed the version that was the head at an earlier catalog version only (M5)."""
    if not context.as_of:
        return False
    if not context.is_promoted(head):  # by this process; another one may have promoted it before the cleanup
        context.catalog.promoter.promote([head], context.catalog.table.current)
    if not context.is_promoted(head) or not _gone(context, head, [head]):
        return False
    now = context.catalog.table.refresh().head_at(head.location, head.branch)
    return now is None or now.identity != head.identity


def _gone(context: ReadContext, head: VersionEntry, entries: list[VersionEntry]) -> list[VersionEntry]:
    """Those of promoted versions that a client's cleanup removed (M5)."""
    return find_removed(context.catalog.store, head, entries, context.catalog.unmanaged_manifests.quarantined_paths)


def _is_no_branch(context: ReadContext, table: TableEntry, branch: str) -> bool:
    snapshot = context.about(table.id)
    head = snapshot.head(table.id, branch) if snapshot.managed else None
    return head is None or context.is_deleted(head) or context.catalog.forget_if_deleted(snapshot, table.id, branch)


def _finished(context: ReadContext, entries: list[VersionEntry]) -> list[TableVersionJson]:
    """The answers, after finishing the promotion of the versions that they name (M3)."""
    waiting = [entry for entry in entries if not context.is_promoted(entry)]
    if not waiting:
        return [version_body(context.naming, entry, entry.canonical_path) for entry in entries]
    promoter, current = context.catalog.promoter, context.catalog.table.current
    promoter.promote(waiting, current)
    return [version_body(context.naming, entry, promoter.known_path(entry, current)) for entry in entries]


def require_table(context: ReadContext, request: Request) -> TableEntry:
    """The table that a request names, or TableNotFoundError (4)."""
    table_id = request_fields.table_id(request)
    table = context.about(table_id).table(table_id)
    if table is None:
        raise table_not_found(table_id)
    return table


def table_at_version(context: ReadContext, request: Request) -> TableState:
    """The table at the version (`version`, `branch`) that a request names, or at its head; promoted (rule M3).

    A table that is only declared has no version. Raises TableNotFoundError (4), TableVersionNotFoundError (11) and
    TableBranchNotFoundError (22).
    """
    table = require_table(context, request)
    branch, version = request_fields.branch(request), request_fields.integer(request, "version")
    entry = find(context, table, branch, version)
    uri, properties = context.naming.object_uri(table.location), dict(table.properties)
    if entry is None:
        if version is not None:
            raise TableVersionNotFoundError(f"table {join(table.id)}: version {version} does not exist")
        if branch is not None:
            raise TableBranchNotFoundError(f"table {join(table.id)}: branch {branch!r} does not exist")
        head = context.about(table.id).head(table.id, None)
        if head is not None:
            raise TableVersionNotFoundError(
                f"table {join(table.id)}: version {head.version} was removed, or replaced by another one"
            )
        return TableState(table.id, uri, None, properties)
    if not context.is_promoted(entry):
        context.catalog.promoter.promote([entry], context.catalog.table.current)
        _require_name(context, entry)
    identity = VersionIdentity(entry.sha256, entry.timestamp_ms) if entry.sha256 else None
    return TableState(table.id, uri, entry.version, properties, branch, identity=identity)


def _require_name(context: ReadContext, entry: VersionEntry) -> None:
    """Raise ServiceUnavailableError (17) if another writer's file has the name of a version, by which it is opened."""
    if context.is_promoted(entry):
        return
    found = find_contents(context.catalog.store, entry.canonical_path)
    if found is not None and not is_row(entry, found):
        raise with_nothing_done(
            ServiceUnavailableError(
                f"table {join(entry.table_id)}: nothing was done: version {entry.version} cannot be given its name "
                f"now: expected its manifest at {entry.canonical_path}, found another writer's; repeat the request"
            )
        )

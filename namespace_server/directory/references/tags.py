"""Tags of a table: files below its root, in the form of stock clients, and in step with the catalog (rule B1).

A tag is written first and confirmed by a flip, which fails if the version is no row any more. A deletion of versions
looks at the tags between the newest flip before it and its own. So of a tag and a deletion of its version one fails.
"""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import dataclass, replace
from typing import Final, Literal

from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    TableBranchNotFoundError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)

from lance_core.errors import AlreadyExists, CorruptFile, NotFound, PreconditionFailed, StorageError
from lance_core.format.refs import TagContents, decode_tag, encode_tag, format_timestamp, tag_path
from lance_core.tables.ref_files import claim_ref
from namespace_server.answer import Answer
from namespace_server.directory.manifests.conditional_removal import remove_if
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.entries import TableEntry, VersionEntry
from namespace_server.directory.model.errors import BatchUnknown, RequestUnknown, table_not_found
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import ConfirmTag, DeleteTag
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.reading import table_versions
from namespace_server.directory.reading.adopting_reads import newest_snapshot
from namespace_server.directory.reading.read_context import ReadContext
from namespace_server.directory.references.change_context import ChangeContext, Recorded, begun

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 10
_Change = Literal["create_table_tag", "update_table_tag"]


@dataclass(frozen=True, slots=True)
class _Target:
    """The version that a tag is to name, of the table whose files hold the tag."""

    table: TableEntry
    entry: VersionEntry


def create_tag(context: ChangeContext, request: Request) -> Answer:
    """CreateTableTagResponse. Of concurrent callers with one name exactly one succeeds.

    Raises TableTagAlreadyExistsError (9), TableNotFoundError (4), TableVersionNotFoundError (11),
    TableBranchNotFoundError (22), InvalidInputError (13), and ServiceUnavailableError (17), after which the tag may
    or may not be there.
    """
    name = request_fields.tag_name(request, new=True)
    target = _find_target(context, request, "create_table_tag")
    now = format_timestamp(time.time_ns())
    entry = target.entry
    data = encode_tag(TagContents(entry.version, entry.size, entry.branch, now, now))
    path = tag_path(target.table.location, name)
    try:
        claim_ref(context.catalog.store, path, f"tag {name}", data)
    except AlreadyExists as error:
        raise TableTagAlreadyExistsError(f"table {join(target.table.id)}: tag {name} exists") from error
    return _confirm(context, "create_table_tag", name, target, path, data, None)


def update_tag(context: ChangeContext, request: Request) -> Answer:
    """UpdateTableTagResponse. Of concurrent updates the last one wins.

    Raises TableTagNotFoundError (8), ConcurrentModificationError (14) where others keep changing the tag, and as
    `create_tag`.
    """
    name = request_fields.tag_name(request)
    target = _find_target(context, request, "update_table_tag")
    path = tag_path(target.table.location, name)
    for _ in range(_ATTEMPTS):
        try:
            e_tag = context.catalog.store.head(path).e_tag or ""
            before = context.catalog.store.get(path)
            data = encode_tag(_moved(decode_tag(before), target.entry))
            context.catalog.store.replace(path, data, if_match=e_tag)
        except NotFound as error:
            raise _no_tag(target.table, name) from error
        except PreconditionFailed:
            continue
        return _confirm(context, "update_table_tag", name, target, path, data, before)
    raise ConcurrentModificationError(
        f"table {join(target.table.id)}: tag {name} was changed by others during each of {_ATTEMPTS} attempts"
    )


def delete_tag(context: ChangeContext, request: Request) -> Answer:
    """DeleteTableTagResponse. The flip that records the deletion is before it, and a repeated request finishes it.

    A tag that others move meanwhile is removed as it is then; one that they delete and make again stays.

    Raises TableTagNotFoundError (8), TableNotFoundError (4), InvalidInputError (13), and ConcurrentModificationError
    (14) where others keep moving the tag.
    """
    name, table_id = request_fields.tag_name(request), request_fields.table_id(request)
    context.judge("delete_table_tag", table_id)
    snapshot = context.catalog.snapshot()
    context.require_changeable(snapshot)
    table = snapshot.table(table_id)
    if table is None:
        raise table_not_found(table_id)
    path = tag_path(table.location, name)
    try:
        data = context.catalog.store.get(path)
    except NotFound as error:
        raise _no_tag(table, name) from error
    recorded = context.commit(DeleteTag(table_id, name, table.location, hashlib.sha256(data).hexdigest()))
    with begun():
        if recorded.again:
            finish_deletion(context, request, recorded)
        else:
            _remove(context, table, name, data)
    return recorded.answer


def finish_deletion(context: ChangeContext, request: Request, recorded: Recorded) -> None:
    """Remove the file of a tag whose deletion is recorded, if it is still that file: a later tag has other bytes."""
    [removed] = recorded.plan.results
    store, path = context.catalog.store, tag_path(removed["location"], request_fields.tag_name(request))
    try:
        e_tag = store.head(path).e_tag
        if hashlib.sha256(store.get(path)).hexdigest() == removed["sha256"]:
            remove_if(store, path, e_tag)
    except (NotFound, PreconditionFailed):
        return


def _remove(context: ChangeContext, table: TableEntry, name: str, data: bytes) -> None:
    """Remove the file of a tag that was `data` when its deletion was recorded, whatever version it names by now."""
    store, path = context.catalog.store, tag_path(table.location, name)
    for _ in range(_ATTEMPTS):
        try:
            e_tag = store.head(path).e_tag
            if not _is_same_tag(data, store.get(path)):
                return
            remove_if(store, path, e_tag)
        except NotFound:
            return
        except PreconditionFailed:
            continue
        return
    raise ConcurrentModificationError(
        f"table {join(table.id)}: tag {name} was changed by others during each of {_ATTEMPTS} attempts to delete it"
    )


def _is_same_tag(before: bytes, now: bytes) -> bool:
    """Whether the files are of one tag, perhaps moved in between: a tag that is made again was created later."""
    if now == before:
        return True
    try:
        created = decode_tag(before).created_at
        return created is not None and decode_tag(now).created_at == created
    except CorruptFile:
        return False


def _find_target(context: ChangeContext, request: Request, change: _Change) -> _Target:
    """The version that a request names, after adopting what other writers committed above the head (P5)."""
    table_id, branch = request_fields.table_id(request), request_fields.branch(request)
    version = request_fields.integer(request, "version", required=True) or 0
    if version < 1:
        raise InvalidInputError(f"version: expected a version from 1 on, found {version}")
    context.judge(change, table_id)
    snapshot = newest_snapshot(context.catalog, (table_id, branch))
    context.require_changeable(snapshot)
    table = snapshot.table(table_id)
    if table is None:
        raise table_not_found(table_id)
    if branch is not None and (
        snapshot.head(table_id, branch) is None or context.catalog.forget_if_deleted(snapshot, table_id, branch)
    ):
        raise TableBranchNotFoundError(f"table {join(table_id)}: branch {branch!r} does not exist")
    entry = table_versions.find(ReadContext(context.catalog, snapshot), table, branch, version)
    if entry is None:
        place = f"table {join(table_id)}" if branch is None else f"branch {branch} of table {join(table_id)}"
        raise TableVersionNotFoundError(f"{place}: version {version} does not exist")
    if not context.catalog.promoter.is_promoted(entry, snapshot):
        context.catalog.promoter.promote([entry], snapshot)  # stock clients open a tag by the canonical name
    return _Target(table, entry)


def _confirm(
    context: ChangeContext,
    change: _Change,
    name: str,
    target: _Target,
    path: str,
    data: bytes,
    before: bytes | None,
) -> Answer:
    """Confirm a tag that was written, by a flip. Where that is refused, put back its contents `before`."""
    entry = target.entry
    operation = ConfirmTag(
        entry.table_id, entry.branch, entry.version, name, target.table.location, entry.sha256, change
    )
    try:
        with begun():
            recorded = context.commit(operation)
    except BatchUnknown:  # it may be confirmed
        raise
    except LanceNamespaceError:
        _withdraw(context, name, path, data, before)
        raise
    if recorded.again:  # the same request had its flip before; others may have changed the tag since
        _withdraw(context, name, path, data, before)
    return recorded.answer


def _withdraw(context: ChangeContext, name: str, path: str, data: bytes, before: bytes | None) -> None:
    """Undo the write, if the file still has its contents."""
    store = context.catalog.store
    try:
        e_tag = store.head(path).e_tag
        if store.get(path) != data:
            return
        if before is None:
            remove_if(store, path, e_tag)
        else:
            store.replace(path, before, if_match=e_tag or "")
    except (NotFound, PreconditionFailed):
        return
    except StorageError as error:
        logger.exception("tag %s at %s could not be withdrawn", name, path)
        raise RequestUnknown(f"tag {name}: it could not be confirmed, and could not be withdrawn; delete it") from error


def _moved(tag: TagContents, entry: VersionEntry) -> TagContents:
    return replace(
        tag,
        version=entry.version,
        branch=entry.branch,
        manifest_size=entry.size,
        updated_at=format_timestamp(time.time_ns()),
    )


def _no_tag(table: TableEntry, name: str) -> TableTagNotFoundError:
    return TableTagNotFoundError(f"table {join(table.id)}: tag {name} does not exist")

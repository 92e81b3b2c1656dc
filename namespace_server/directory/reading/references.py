"""Answers about tags and branches, from their files below the table's root. These files have no history."""

from __future__ import annotations

from collections.abc import Mapping

from lance_namespace.errors import InvalidInputError, TableTagNotFoundError

from lance_core.errors import CorruptFile, NotFound, ReferenceNotFound
from lance_core.format.naming import MAIN_BRANCH, branch_base
from lance_core.format.refs import BranchContents, TagContents, decode_tag, tag_path
from lance_core.tables.branches import Branches
from lance_core.tables.ref_files import read_ref
from lance_core.tables.tags import Tags
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.entries import TableEntry
from namespace_server.directory.model.errors import file_damaged
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.reading.read_context import ReadContext
from namespace_server.directory.reading.table_versions import require_table

Body = dict[str, object]


def list_table_tags(context: ReadContext, request: Request) -> Body:
    """ListTableTagsResponse: a page of the tags, in the order of their names as UTF-8 bytes."""
    _require_newest(context, "tags")
    table = require_table(context, request)
    try:
        tags = Tags(context.catalog.store, table.location).list()
    except CorruptFile as error:
        raise file_damaged(error, f"table {join(table.id)}: ") from error
    return _page(context, request, "tags", {name: _tag_body(tag) for name, tag in tags.items()})


def get_table_tag_version(context: ReadContext, request: Request) -> Body:
    """GetTableTagVersionResponse, or TableTagNotFoundError (8)."""
    _require_newest(context, "tags")
    table, name = require_table(context, request), request_fields.tag_name(request)
    try:
        tag = read_ref(context.catalog.store, tag_path(table.location, name), f"tag {name}", decode_tag)
    except ReferenceNotFound as error:
        raise TableTagNotFoundError(f"table {join(table.id)}: tag {name} does not exist") from error
    except CorruptFile as error:
        raise file_damaged(error, f"table {join(table.id)}: ") from error
    branch = _branch_of(tag)
    return {"version": tag.version} if branch is None else {"version": tag.version, "branch": branch}


def list_table_branches(context: ReadContext, request: Request) -> Body:
    """ListTableBranchesResponse: a page of the branches, in the order of their names as UTF-8 bytes.

    These are the branches that have a reference file, and those whose client has not written it yet (M8). A branch
    that was deleted is none, while its files are removed.
    """
    _require_newest(context, "branches")
    table = require_table(context, request)
    try:
        branches = Branches(context.catalog.store, table.location).list()
        forming = _forming(context, table, branches)
    except CorruptFile as error:
        raise file_damaged(error, f"table {join(table.id)}: ") from error
    bodies = {
        name: _branch_body(contents)
        for name, contents in {**branches, **forming}.items()
        if context.about(table.id).tombstone_at(branch_base(table.location, name)) is None
    }
    return _page(context, request, "branches", bodies)


def _forming(
    context: ReadContext, table: TableEntry, branches: Mapping[str, BranchContents]
) -> dict[str, BranchContents]:
    """The branches of the catalog that have no reference file yet, and were not deleted by a client."""
    snapshot = context.about(table.id)
    found: dict[str, BranchContents] = {}
    for name in snapshot.branches(table.id) if snapshot.managed else ():
        if name in branches or context.catalog.forget_if_deleted(snapshot, table.id, name):
            continue
        try:
            contents = context.catalog.branch_refs.beginning(snapshot, table.id, name)
        except NotFound:  # removed meanwhile
            continue
        if contents is not None:
            found[name] = contents
    return found


def _page(context: ReadContext, request: Request, field: str, bodies: Mapping[str, Body]) -> Body:
    limit, token = context.page_size(request), request_fields.text(request, "page_token")
    names = sorted(bodies, key=str.encode)
    if token is not None:
        after = token.encode()
        names = [name for name in names if name.encode() > after]
    body: Body = {field: {name: bodies[name] for name in names[:limit]}}
    if 0 < limit < len(names):
        body["page_token"] = names[limit - 1]
    return body


def _tag_body(tag: TagContents) -> Body:
    branch = _branch_of(tag)
    body: Body = {"version": tag.version, "manifestSize": tag.manifest_size}
    return body if branch is None else {"branch": branch, **body}


def _branch_body(contents: BranchContents) -> Body:
    body: Body = {
        "parentVersion": contents.parent_version,
        "createAt": contents.created_at,
        "manifestSize": contents.manifest_size,
    }
    if contents.parent_branch not in {None, MAIN_BRANCH}:
        body["parentBranch"] = contents.parent_branch
    if contents.metadata:
        body["metadata"] = dict(contents.metadata)
    return body


def _branch_of(tag: TagContents) -> str | None:
    return None if tag.branch == MAIN_BRANCH else tag.branch


def _require_newest(context: ReadContext, what: str) -> None:
    if context.as_of:
        raise InvalidInputError(
            f"{what} are not versioned with the catalog: expected a request without x-lance-catalog-version"
        )

"""Shallow clones: a new table that begins with a version of another one, and refers to its files (P14)."""

from __future__ import annotations

import uuid

from lance_namespace.errors import (
    InvalidInputError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)

from lance_core.errors import ReferenceNotFound
from lance_core.format.naming import MAIN_BRANCH
from lance_core.format.refs import decode_tag, tag_path
from lance_core.tables.ref_files import read_ref
from namespace_server.access.subjects import Privilege
from namespace_server.answer import Answer
from namespace_server.directory.model import naming_rules, request_fields
from namespace_server.directory.model.entries import TableEntry, VersionEntry
from namespace_server.directory.model.errors import clone_source_not_found
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import CloneTable
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.model.requests import location_key
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.cloning import OF_A_BRANCH
from namespace_server.directory.planning.planner import require_managed
from namespace_server.directory.reading import table_versions
from namespace_server.directory.reading.adopting_reads import newest_snapshot
from namespace_server.directory.reading.read_context import ReadContext
from namespace_server.directory.references.change_context import ChangeContext, Recorded


def clone_table(context: ChangeContext, request: Request) -> Answer:
    """CloneTableResponse: location and first version of a table that refers to the files of another one.

    Raises TableNotFoundError (4) for a location at which there is no table that the caller may see, whatever is there;
    UnsupportedOperationError (0) for a deep clone, and for a version with files of a branch; TableTagNotFoundError (8),
    TableVersionNotFoundError (11), and as the declaration of a table.
    """
    target = request_fields.table_id(request)
    wanted = request_fields.text(request, "source_location", required=True) or ""
    version = request_fields.integer(request, "source_version")
    tag = None if request.get("source_tag") is None else request_fields.tag_name(request, "source_tag")
    if not request_fields.flag(request, "is_shallow", default=True):
        raise UnsupportedOperationError("is_shallow: expected true, since a deep clone copies files for minutes")
    if version is not None and tag is not None:
        raise InvalidInputError("source_version, source_tag: expected one of them, found both")
    is_implicit = context.rules.implicit_namespaces or _is_within(target, context.implicit)
    naming_rules.check_new_id(target, "table", implicit_namespaces=is_implicit)
    source = _find_source(context, wanted)
    chain = (source.id, None)
    snapshot = newest_snapshot(context.catalog, chain)
    source = _table_at(snapshot, source.location)
    if tag is not None:
        version = _tagged(context, source, tag)
    entry = table_versions.find(ReadContext(context.catalog, snapshot), source, None, version)
    if entry is None:
        found = table_versions.missing(version)
        raise TableVersionNotFoundError(f"table {join(target)}: source table {join(source.id)}: {found}")
    return cloned(context, context.commit(_operation(target, source, entry, is_implicit=is_implicit)))


def cloned(context: ChangeContext, recorded: Recorded) -> Answer:
    """The answer about a clone that is in the catalog."""
    [result] = recorded.plan.results
    made = {"location": context.catalog.store.object_uri(result["location"]), "version": result["version"]["version"]}
    return Answer({**recorded.answer.body, **made}, recorded.answer.catalog_version)


def _operation(target: ObjectId, source: TableEntry, entry: VersionEntry, *, is_implicit: bool) -> CloneTable:
    return CloneTable(
        target,
        naming_rules.new_location(target),
        source.location,
        entry.version,
        entry.sha256,
        str(uuid.uuid4()),
        implicit_namespaces=is_implicit,
    )


def _is_within(target: ObjectId, implicit: ObjectId) -> bool:
    """Whether a table is to lie in the implicit namespace itself, or above it."""
    return bool(implicit) and target[:-1] == implicit[: len(target) - 1]


def _find_source(context: ChangeContext, wanted: str) -> TableEntry:
    """The table at a location, which the caller may read. Before anything is read for it; the flip judges again."""
    snapshot = context.catalog.snapshot()
    require_managed(snapshot)
    sight = context.sight
    view = snapshot if sight is None else sight.view(sight.today)
    try:
        key = location_key(wanted, context.rules)
    except InvalidInputError:
        raise clone_source_not_found() from None
    found = None if key is None else view.table_at(key)
    if found is None:
        raise clone_source_not_found()
    if sight is not None:
        sight.require({Privilege.READ}, found)
    return _table_at(view, key or "")


def _table_at(snapshot: CatalogSnapshot, location: str) -> TableEntry:
    table_id = snapshot.table_at(location)
    table = None if table_id is None else snapshot.table(table_id)
    if table is None:
        raise clone_source_not_found()
    return table


def _tagged(context: ChangeContext, source: TableEntry, name: str) -> int:
    """The version of main that a tag names."""
    try:
        tag = read_ref(context.catalog.store, tag_path(source.location, name), f"tag {name}", decode_tag)
    except ReferenceNotFound as error:
        raise TableTagNotFoundError(f"table {join(source.id)}: tag {name} does not exist") from error
    if tag.branch not in {None, MAIN_BRANCH}:
        raise UnsupportedOperationError(f"tag {name} names a version of branch {tag.branch}: {OF_A_BRANCH}")
    return tag.version

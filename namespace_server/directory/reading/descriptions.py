"""Answers about namespaces, tables and the catalog, from one snapshot. JSON-ready, with the exact wire names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

import pyarrow as pa
from lance_namespace.errors import (
    InvalidInputError,
    TableBranchNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)

from lance_core.data import arrow_schema
from lance_core.errors import NotFound
from lance_core.format.refs import decode_tag, tag_path
from namespace_server.access.subjects import Privilege
from namespace_server.directory.manifest_table.history import CatalogHistoryEntry
from namespace_server.directory.manifests.stored_versions import stored_entries
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.collector_rows import IntendedChain
from namespace_server.directory.model.entries import DROPPED, NamespaceEntry, TableEntry, VersionEntry
from namespace_server.directory.model.errors import namespace_not_found
from namespace_server.directory.model.history import outline_of_record, without_private
from namespace_server.directory.model.object_ids import DELIMITER, ObjectId, join
from namespace_server.directory.model.persistent.name_index import words_of
from namespace_server.directory.model.persistent.sorted_names import SortedNames
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.model.results import intent_json, pin_json
from namespace_server.directory.reading import events, fragments, references, table_versions, transactions
from namespace_server.directory.reading.arrow_json import lance_schema_json, schema_json
from namespace_server.directory.reading.grants import check_privilege, list_grants
from namespace_server.directory.reading.read_context import ReadContext
from namespace_server.directory.reading.visible_history import visible_batches, visible_versions

_READ = frozenset({Privilege.READ})
_SHORT_PAGE = 100
"""Entries of an answer of which a client takes the first, unless it wants more."""
_REFERENCES = ("branch", "version", "tag")

Body = dict[str, object]
Read = Callable[[ReadContext, Request], Body]


def describe_namespace(context: ReadContext, request: Request) -> Body:
    """DescribeNamespaceResponse."""
    namespace = _require_namespace(context, request_fields.object_id(request, "namespace"))
    return {"properties": dict(namespace.properties)}


def namespace_exists(context: ReadContext, request: Request) -> Body:
    """Nothing, or NamespaceNotFoundError (1)."""
    _require_namespace(context, request_fields.object_id(request, "namespace"))
    return {}


def list_namespaces(context: ReadContext, request: Request) -> Body:
    """ListNamespacesResponse: names of direct children, in byte order."""
    namespace_id = _listed(context, request)
    names, token = page(context, context.about(namespace_id).child_namespaces(namespace_id), request)
    return _paged({"namespaces": names}, token)


def list_tables(context: ReadContext, request: Request) -> Body:
    """ListTablesResponse: names of direct children, in byte order; without `include_declared` only created ones."""
    namespace_id = _listed(context, request)
    tables = context.about(namespace_id).child_tables(namespace_id)
    if request_fields.flag(request, "include_declared", default=True):
        names, token = page(context, tables, request)
    else:
        names, token = page(context, tables, request, lambda name: _is_created(context, (*namespace_id, name)))
    return _paged({"tables": names}, token)


def list_all_tables(context: ReadContext, request: Request) -> Body:
    """ListTablesResponse with whole ids, joined by `delimiter` or '$', in the order of their components.

    With an `id` only those below that namespace, from there.
    """
    root = request_fields.object_id(request, "namespace") if "id" in request else ()
    if root:
        _require_namespace(context, root)
    limit, token = context.page_size(request), request_fields.text(request, "page_token")
    delimiter = request_fields.text(request, "delimiter") or DELIMITER
    created_only = not request_fields.flag(request, "include_declared", default=True)
    tables: list[str] = []
    last: str | None = None
    after = root if token is None else (*root, *token.split(DELIMITER))
    for table_id in context.snapshot.all_tables(after or None):
        if table_id[: len(root)] != root:
            break
        if created_only and not _is_created(context, table_id):
            continue
        if len(tables) == limit:
            return _paged({"tables": tables}, last)
        tables.append(delimiter.join(table_id[len(root) :]))
        last = join(table_id[len(root) :])
    return {"tables": tables}


def find_tables(context: ReadContext, request: Request) -> Body:
    """Ours: the tables whose ids have all words of `text`, the best first, and whether there are more of them."""
    words = words_of(request_fields.text(request, "text", required=True) or "")
    most = context.entry_count(request, _SHORT_PAGE)
    found = context.snapshot.find_tables(words, most + 1)
    return {"tables": [list(table_id) for table_id in found[:most]], "more": len(found) > most}


def table_exists(context: ReadContext, request: Request) -> Body:
    """Nothing, or TableNotFoundError (4); with a version that does not exist 11."""
    table = table_versions.require_table(context, request)
    version = request_fields.integer(request, "version")
    if version is not None:
        context.require(_READ, table.id)
        _require_version(context, table, None, version)
    return {}


def describe_table_in_lance_types(context: ReadContext, request: Request) -> Body:
    """DescribeTableResponse whose schema is in the form of Lance; see `arrow_json`."""
    return describe_table(context, request, lance_schema_json)


def describe_table(
    context: ReadContext, request: Request, described: Callable[[pa.Schema], Body] = schema_json
) -> Body:
    """DescribeTableResponse. Storage options are those that clients are handed, never the server's own."""
    table = table_versions.require_table(context, request)
    uri = context.naming.object_uri(table.location)
    body: Body = {
        "table": table.id[-1],
        "namespace": list(table.id[:-1]),
        "location": uri,
        "properties": dict(table.properties),
    }
    if request_fields.flag(request, "with_table_uri", default=True):  # stock servers answer it unless it is refused
        body["table_uri"] = uri
    if context.about(table.id).managed:
        body["managed_versioning"] = True
    detailed = request_fields.flag(request, "load_detailed_metadata")
    if context.sight is not None and (detailed or any(request.get(name) is not None for name in _REFERENCES)):
        context.require(_READ, table.id)
    if detailed or request_fields.flag(request, "check_declared"):
        body["is_only_declared"] = not _is_created(context, table.id)
    if request_fields.flag(request, "vend_credentials", default=True) and (options := context.storage_options(table)):
        body["storage_options"] = options
    branch, version = _reference(context, table, request)
    if version is not None or branch is not None or (detailed and not body["is_only_declared"]):
        entry = _require_version(context, table, branch, version)
        if detailed:
            body |= _details(context, entry, described)
    return body


def describe_catalog(context: ReadContext, _request: Request) -> Body:
    """Ours: the root and the newest catalog version."""
    return {
        "root": context.naming.uri,
        "version": context.snapshot.version,
        "managed": context.snapshot.managed or context.snapshot.is_empty_root,
        "timestamp_millis": context.snapshot.timestamp_ms,
    }


def describe_catalog_figures(context: ReadContext, _request: Request) -> Body:
    """Ours: what the catalog holds, of the tables as far as they are known; a look at some that were not."""
    if context.as_of:
        raise InvalidInputError("catalog version: expected none: figures are of the newest catalog version")
    known = context.catalog.figures.look(context.unfiltered)
    amounts = known.amounts
    return {
        "catalog_version": known.catalog_version,
        "namespaces": known.namespaces,
        "tables": known.tables,
        "known_tables": amounts.tables,
        "rows": amounts.rows,
        "bytes": amounts.size,
        "files": amounts.files,
        "versions": amounts.versions,
        "versions_beyond_policy": amounts.beyond,
        "num_worth_maintenance": amounts.worth,
        "worth_maintenance": [
            {"id": list(table_id), "num_fragments": work.fragments, "num_indices": work.indices}
            for table_id, work in known.worth
        ],
    }


def describe_catalog_version(context: ReadContext, request: Request) -> Body:
    """Ours: which version of every table a catalog version pins."""
    tables: list[Body] = []
    for table_id in context.snapshot.all_tables():
        table = context.snapshot.table(table_id)
        if table is None:
            continue
        described: Body = {"id": list(table_id), "location": context.naming.object_uri(table.location)}
        is_told = context.allows(Privilege.READ, table_id)
        head = context.snapshot.head(table_id) if is_told else None
        if head is not None:
            described["version"] = head.version
            described["timestamp_millis"] = head.timestamp_ms
            if head.sha256:
                described["manifest_sha256"] = head.sha256
        branches = {
            name: entry.version
            for name in (context.snapshot.branches(table_id) if is_told else ())
            if (entry := context.snapshot.head(table_id, name))
        }
        if branches:
            described["branches"] = branches
        tables.append(described)
    return {
        "version": request_fields.integer(request, "version") or context.snapshot.version,
        "timestamp_millis": context.snapshot.timestamp_ms,
        "tables": tables,
    }


def list_catalog_versions(context: ReadContext, request: Request) -> Body:
    """Ours: the kept catalog versions, newest first, with the batches that each committed."""
    return _versions(context, request, without_private)


def list_audited_versions(context: ReadContext, request: Request) -> Body:
    """Ours: the same with where each batch came from, for auditors. Who is one is decided by the caller of this."""
    return _versions(context, request, dict)


def _versions(context: ReadContext, request: Request, told: Callable[[Body], Body]) -> Body:
    last = request_fields.page_position(request, "a catalog version")
    before = context.snapshot.version + 1 if last is None else last
    wanted = context.entry_count(request, _SHORT_PAGE)
    history = context.catalog.table.history(limit=wanted + 1, before=before)
    versions = [_historic(context, entry, told) for entry in history[:wanted]]
    return _paged({"versions": versions}, str(history[wanted - 1].version) if len(history) > wanted else None)


def _historic(context: ReadContext, entry: CatalogHistoryEntry, told: Callable[[Body], Body]) -> Body:
    batches: list[Body] = []
    for uid, message in entry.batches:
        batch: Body = {"transaction_id": uid, **({"message": message} if message is not None else {})}
        outline = entry.outline.batches.get(uid)
        if outline is None:
            record = context.snapshot.record(uid)
            outline = {} if record is None else outline_of_record(record)
        batches.append(batch | told(outline))
    adopted = entry.outline.adopted
    if context.sight is not None:
        batches = visible_batches(context.sight, batches, entry.version)
        adopted = visible_versions(context.sight, adopted, entry.version)
    described: Body = {"version": entry.version, "timestamp_millis": entry.timestamp_ms, "batches": batches}
    if adopted:
        described["adopted"] = list(adopted)
    if not entry.made_by_catalog:
        described["unmanaged"] = True
    return described


def list_dropped_tables(context: ReadContext, request: Request) -> Body:
    """Ours: the dropped tables that can come back, the last one first."""
    last = request_fields.page_position(request, "a number of dropped tables") or 0
    records = sorted(
        context.snapshot.records(DROPPED),
        key=lambda record: (-record.catalog_version, -record.timestamp_ms, record.batch_uuid),
    )
    parties = [(record, party) for record in records for party in record.participants]
    end = last + context.entry_count(request)
    tables = [
        {
            "id": list(party.table_id),
            "location": context.naming.object_uri(party.location),
            "tombstone_id": record.batch_uuid,
            "timestamp_millis": record.timestamp_ms,
            "catalog_version": record.catalog_version,
            **({"version": party.version} if party.version else {}),
            **({"principal": record.principal} if record.principal is not None else {}),
        }
        for record, party in parties[last:end]
    ]
    return _paged({"tables": tables}, str(end) if len(parties) > end else None)


def list_catalog_pins(context: ReadContext, _request: Request) -> Body:
    """Ours: all pins, by name."""
    return {"pins": [pin_json(pin) for pin in context.snapshot.pins()]}


def list_intents(context: ReadContext, _request: Request) -> Body:
    """Ours: all intents, by uuid, with their tables."""
    snapshot = context.snapshot
    return {
        "intents": [
            {**intent_json(intent), "tables": [_intended(context, chain) for chain in intent.chains]}
            for intent in snapshot.intents()
        ]
    }


def _intended(context: ReadContext, chain: IntendedChain) -> Body:
    table_id = context.snapshot.table_at(chain.location)
    return {
        "location": context.naming.object_uri(chain.location),
        "since_millis": chain.since * 1_000,
        **({"id": list(table_id)} if table_id is not None else {}),
        **({"branch": chain.branch} if chain.branch is not None else {}),
        **({"read_version": chain.read_version} if chain.read_version else {}),
    }


def _listed(context: ReadContext, request: Request) -> ObjectId:
    """The namespace that is listed. It must exist; where namespaces are implicit, any other is an empty one."""
    namespace_id = request_fields.object_id(request, "namespace")
    if not context.implicit_namespaces:
        _require_namespace(context, namespace_id)
    return namespace_id


def _require_namespace(context: ReadContext, namespace_id: ObjectId) -> NamespaceEntry:
    namespace = context.about(namespace_id).namespace(namespace_id)
    if namespace is None:
        raise namespace_not_found(namespace_id)
    return namespace


def page(
    context: ReadContext, names: SortedNames, request: Request, wanted: Callable[[str], bool] | None = None
) -> tuple[list[str], str | None]:
    """One page of the `wanted` names behind `page_token` (exclusive), and the token of the next.

    No more names are looked at than it takes to fill the page and to know whether another one follows.
    """
    limit, token = context.page_size(request), request_fields.text(request, "page_token")
    count = limit + 1 if limit else 0
    if wanted is None:
        chosen = names.first(count, after=token)
    else:
        chosen = list(islice(filter(wanted, names if token is None else names.after(token)), count))
    if len(chosen) <= limit:
        return chosen, None
    return chosen[:limit], chosen[limit - 1]


def _paged(body: Body, token: str | None) -> Body:
    if token is not None:
        body["page_token"] = token
    return body


def _is_created(context: ReadContext, table_id: ObjectId) -> bool:
    snapshot = context.about(table_id)
    if snapshot.managed:
        return snapshot.head(table_id) is not None
    table = snapshot.table(table_id)
    return table is not None and bool(stored_entries(context.catalog.store, table, None))


def _reference(context: ReadContext, table: TableEntry, request: Request) -> tuple[str | None, int | None]:
    branch, version = request_fields.branch(request), request_fields.integer(request, "version")
    tag = request_fields.text(request, "tag")
    if tag is None:
        return branch, version
    if branch is not None or version is not None:
        raise InvalidInputError(f"table {join(table.id)}: a tag goes without version and branch")
    try:
        contents = decode_tag(context.catalog.store.get(tag_path(table.location, tag)))
    except (NotFound, ValueError) as error:
        raise TableTagNotFoundError(f"table {join(table.id)}: tag {tag!r} does not exist") from error
    return contents.branch, contents.version


def _require_version(context: ReadContext, table: TableEntry, branch: str | None, version: int | None) -> VersionEntry:
    entry = table_versions.find(context, table, branch, version)
    if entry is not None:
        return entry
    if version is None and branch is not None:
        raise TableBranchNotFoundError(f"table {join(table.id)}: branch {branch!r} does not exist")
    raise TableVersionNotFoundError(f"table {join(table.id)}: {table_versions.missing(version)}")


def _details(context: ReadContext, entry: VersionEntry, described: Callable[[pa.Schema], Body]) -> Body:
    try:
        manifest = context.catalog.load_manifest(entry).manifest
    except NotFound as error:
        raise TableVersionNotFoundError(
            f"table {join(entry.table_id)}: version {entry.version} was removed by a cleanup"
        ) from error
    body: Body = {
        "version": entry.version,
        "schema": described(arrow_schema(manifest.fields, manifest.schema_metadata)),
        "stats": {
            "num_deleted_rows": sum(fragment.deletion_file.num_deleted_rows for fragment in manifest.fragments),
            "num_fragments": len(manifest.fragments),
        },
    }
    if manifest.table_metadata:
        body["metadata"] = dict(manifest.table_metadata)
    return body


READS: Mapping[str, Read] = {
    "describe_namespace": describe_namespace,
    "namespace_exists": namespace_exists,
    "list_namespaces": list_namespaces,
    "list_tables": list_tables,
    "list_all_tables": list_all_tables,
    "find_tables": find_tables,
    "table_exists": table_exists,
    "describe_table": describe_table,
    "describe_table_in_lance_types": describe_table_in_lance_types,
    "list_table_versions": table_versions.list_table_versions,
    "describe_table_version": table_versions.describe_table_version,
    "list_table_fragments": fragments.list_table_fragments,
    "list_table_tags": references.list_table_tags,
    "get_table_tag_version": references.get_table_tag_version,
    "list_table_branches": references.list_table_branches,
    "describe_transaction": transactions.describe_transaction,
    "describe_catalog": describe_catalog,
    "describe_catalog_figures": describe_catalog_figures,
    "describe_catalog_version": describe_catalog_version,
    "list_catalog_versions": list_catalog_versions,
    "list_audited_versions": list_audited_versions,
    "list_dropped_tables": list_dropped_tables,
    "list_catalog_pins": list_catalog_pins,
    "list_intents": list_intents,
    "list_cursors": events.list_cursors,
    "list_catalog_events": events.list_catalog_events,
    "list_grants": list_grants,
    "check_privilege": check_privilege,
}

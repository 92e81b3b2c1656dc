"""Answers about the fragments of a table version, and their files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter

from lance_namespace.errors import TableVersionNotFoundError

from lance_core.errors import NotFound
from lance_core.format.deletion import deletion_file_path, live_row_count
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.reading import table_versions
from namespace_server.directory.reading.read_context import ReadContext

Body = dict[str, object]

_fragment_id = attrgetter("id")


def list_table_fragments(context: ReadContext, request: Request) -> Body:
    """Ours: the fragments of a version, by their ids, with their rows and files. 404/11 for one that is not there."""
    table = table_versions.require_table(context, request)
    branch, version = request_fields.branch(request), request_fields.integer(request, "version")
    limit, last = context.page_size(request), request_fields.page_position(request, "the id of a fragment")
    entry = table_versions.find(context, table, branch, version)
    if entry is None:
        raise TableVersionNotFoundError(f"table {join(table.id)}: {table_versions.missing(version)}")
    try:
        file = context.catalog.load_manifest(entry)
    except NotFound as error:
        raise TableVersionNotFoundError(
            f"table {join(table.id)}: version {entry.version} was removed by a cleanup"
        ) from error
    fragments = sorted(file.manifest.fragments, key=_fragment_id)
    begin = 0 if last is None else bisect_right(fragments, last, key=_fragment_id)
    wanted = fragments[begin : begin + limit]
    names = _columns(file)
    body: Body = {
        "version": entry.version,
        "num_fragments": len(fragments),
        "fragments": [_described(each, names) for each in wanted],
    }
    if wanted and begin + len(wanted) < len(fragments):
        body["page_token"] = str(wanted[-1].id)
    return body


def _columns(file: ManifestFile) -> Mapping[int, str]:
    """The column that each field belongs to, by the ids of the fields."""
    parents = {field.id: field.parent_id for field in file.manifest.fields}
    names = {field.id: field.name for field in file.manifest.fields}
    found: dict[int, str] = {}
    for field in parents:
        top = field
        while parents.get(top, -1) >= 0:
            top = parents[top]
        found[field] = names.get(top, "")
    return found


def _described(fragment: pb.DataFragment, names: Mapping[int, str]) -> Body:
    files: list[Body] = [_data_file(each, names) for each in fragment.files]
    described: Body = {"id": fragment.id, "num_rows": live_row_count(fragment), "files": files}
    if fragment.HasField("deletion_file"):
        deletions = fragment.deletion_file
        described["num_deleted_rows"] = deletions.num_deleted_rows
        described["deletion_file"] = deletion_file_path("", fragment.id, deletions).lstrip("/")
    return described


def _data_file(file: pb.DataFile, names: Mapping[int, str]) -> Body:
    columns: Sequence[str] = list(dict.fromkeys(names[field] for field in file.fields if field in names))
    described: Body = {"path": f"data/{file.path}", "columns": columns}
    if file.file_size_bytes:
        described["size_bytes"] = file.file_size_bytes
    if file.HasField("base_id"):
        described["base_id"] = file.base_id
    return described

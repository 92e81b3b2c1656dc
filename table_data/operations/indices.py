"""Indices of a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from lance_core.transaction.indices import SYSTEM_INDICES
from table_data import staging
from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Json, Result
from table_data.errors import IndexNotFound, InvalidCall
from table_data.pylance_errors import plain_text
from table_data.requests.schema_paths import canonical_path, field_at
from table_data.staging.index_parameters import FIELDS, SCALAR, index_arguments, index_type_of
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    import lance

    from table_data.requests.table_requests import CreateTableIndex, DescribeIndex, DropIndex, ListIndices

_READY: Final = "SUCCEEDED"
_REFUSED: Final = "LanceError(Index): "
"""Begins errors of pylance about rows and options that an index cannot be built with."""


def create_table_index(changes: TableChanges, request: CreateTableIndex, _rows: ArrowBody | None) -> Result:
    """Build an index of any type over all rows."""
    _create(changes, request, index_type_of(request["index_type"]))
    return {}


def create_table_scalar_index(changes: TableChanges, request: CreateTableIndex, _rows: ArrowBody | None) -> Result:
    """Build an index that is not over vectors."""
    index_type = index_type_of(request["index_type"])
    if index_type not in SCALAR:
        raise InvalidCall(f"index_type {index_type}: expected one of {', '.join(SCALAR)}")
    _create(changes, request, index_type)
    return {}


def drop_table_index(changes: TableChanges, request: DropIndex, _rows: ArrowBody | None) -> Result:
    """Remove an index. Of several that remove one at once, one succeeds."""
    operation = staging.stage_index_removal(changes.require_head(), request["index_name"])
    call = f"drop_index {request['index_name']}"
    changes.take(call, operation, message=None, guard="a removal of an index that is gone would be rebased")
    return {}


def list_table_indices(dataset: lance.LanceDataset, request: ListIndices) -> Result:
    """The indices in the order of their names, those after `page_token` and at most `limit`."""
    found = {index.name: index for index in dataset.describe_indices() if index.name not in SYSTEM_INDICES}
    names = sorted(name for name in found if name > (request.get("page_token") or ""))
    limit = request.get("limit")
    page = names if limit is None or limit < 0 else names[:limit]
    rows = dataset.count_rows()
    answer: Json = {"indexes": [_content(found[name], rows) for name in page]}
    if page and len(page) < len(names):
        answer["page_token"] = page[-1]
    return answer


def describe_table_index_stats(dataset: lance.LanceDataset, request: DescribeIndex) -> Result:
    """Type, rows and segments of one index. Raises `IndexNotFound`."""
    name = request["index_name"]
    for index in dataset.describe_indices():
        if index.name == name and name not in SYSTEM_INDICES:
            metric = index.details.get("metric_type")
            answer = {
                "distance_type": None if metric is None else metric.lower(),
                "index_type": index.index_type,
                "num_indexed_rows": index.num_rows_indexed,
                "num_unindexed_rows": dataset.count_rows() - index.num_rows_indexed,
                "num_indices": len(index.segments),
            }
            return {key: value for key, value in answer.items() if value is not None}
    raise IndexNotFound(f"index {name[:200]!r}: expected one of the table's, found none of this name")


def _create(changes: TableChanges, request: CreateTableIndex, index_type: str) -> None:
    head = changes.require_head()
    fields = head.outline.fields
    column = request["column"]
    field = field_at(fields, column, "column", through_lists=index_type == "INVERTED")
    path = canonical_path(fields, field.id)
    if index_type == "INVERTED":
        path = column  # pylance finds the texts in lists of structs by a path without the items
    given = {name: value for name, value in request.items() if name in FIELDS and value is not None}
    parameters = index_arguments(index_type, given, "field")
    name = request.get("name") or staging.default_index_name(head, field.id, path, index_type)
    replaces = bool(request.get("replace"))
    try:
        operation = staging.stage_index(
            changes.dataset(), head, path, index_type, name, replace=replaces, parameters=parameters, empty=True
        )
    except RuntimeError as error:
        if str(error).startswith(_REFUSED):
            raise InvalidCall(f"{index_type} index over {column[:200]!r}: {plain_text(error)}") from error
        raise
    changes.take(f"create_index {operation.new[0].name}", operation, message=None)


def _content(index: Any, rows: int) -> Result:
    first = index.segments[0]
    content = {
        "index_name": index.name,
        "index_uuid": first.uuid,
        "columns": list(index.field_names),
        "status": _READY,
        "index_type": index.index_type,
        "type_url": index.type_url,
        "num_indexed_rows": index.num_rows_indexed,
        "num_unindexed_rows": rows - index.num_rows_indexed,
        "size_bytes": index.total_size_bytes,
        "num_segments": len(index.segments),
        "created_at": None if first.created_at is None else first.created_at.isoformat(timespec="milliseconds"),
        "index_version": first.index_version,
        "index_details": json.dumps(index.details),
    }
    return {name: value for name, value in content.items() if value is not None}

"""The operations of the namespace specification on the rows of one table, by the names of `LanceNamespace`.

And those of maintenance, which it does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result
from table_data.operations import blobs, branches, columns, compacting, indices, metadata, querying, rows
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    import lance


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """`stage` applies the request to the table and returns what the operation answers beside the version.

    It is `repeatable` if it may be staged again on a newer version. It is `independent` if it may be staged again after
    an irreconcilable conflict too: it means the same whatever the table was.
    """

    stage: Callable[[TableChanges, Any, ArrowBody | None], Result]
    repeatable: bool = True
    independent: bool = False


CHANGES: Mapping[str, ChangeKind] = {
    "create_table": ChangeKind(rows.create_table, repeatable=False),
    "insert_into_table": ChangeKind(rows.insert_into_table),
    "merge_insert_into_table": ChangeKind(rows.merge_insert_into_table),
    "update_table": ChangeKind(rows.update_table),
    "delete_from_table": ChangeKind(rows.delete_from_table),
    "update_table_schema_metadata": ChangeKind(metadata.update_table_schema_metadata, independent=True),
    "update_field_metadata": ChangeKind(metadata.update_field_metadata, independent=True),
    "restore_table": ChangeKind(metadata.restore_table, independent=True),
    "create_table_index": ChangeKind(indices.create_table_index, independent=True),
    "create_table_scalar_index": ChangeKind(indices.create_table_scalar_index, independent=True),
    "drop_table_index": ChangeKind(indices.drop_table_index, independent=True),
    "alter_table_add_columns": ChangeKind(columns.alter_table_add_columns, independent=True),
    "alter_table_alter_columns": ChangeKind(columns.alter_table_alter_columns, independent=True),
    "alter_table_drop_columns": ChangeKind(columns.alter_table_drop_columns, independent=True),
    "reserve_fragments": ChangeKind(compacting.reserve_fragments, independent=True),
    "compact_table": ChangeKind(compacting.compact_table, repeatable=False),
    "optimize_indices": ChangeKind(compacting.optimize_indices, repeatable=False),
    "cherry_pick_table_branch": ChangeKind(branches.cherry_pick),
}
"""Changes by name. What the request of each is, `table_data.requests` says."""
READS: Mapping[str, Callable[[lance.LanceDataset, Any], object | pa.RecordBatchReader]] = {
    "count_table_rows": querying.count_table_rows,
    "get_table_stats": querying.get_table_stats,
    "query_table": querying.query_table,
    "explain_table_query_plan": querying.explain_table_query_plan,
    "analyze_table_query_plan": querying.analyze_table_query_plan,
    "list_table_indices": indices.list_table_indices,
    "describe_table_index_stats": indices.describe_table_index_stats,
    "locate_blobs": blobs.locate_blobs,
    "read_blobs": blobs.read_blobs,
    "read_blob": blobs.read_blob,
    "prewarm_table_index": querying.prewarm_table_index,
    "prewarm_table_pages": querying.prewarm_table_pages,
}
"""Reads by name: each answers a request from one version of a table, with a JSON value or rows."""

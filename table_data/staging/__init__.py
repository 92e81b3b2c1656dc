"""Local staging: the part of the client that calls pylance.

Every `stage_*` function computes what one operation does to a version, writes its data, deletion or index files, and
returns the operation of the engine that describes them. None of them commits: the files are visible to readers only
after a batch that names them is committed.

handles     read-only datasets on published and on unpublished versions
rows        append, create, overwrite, delete, update
matching    the rows that an update or a deletion changes, values cast to the types of their columns
overflow    arithmetic of expressions that must not wrap round
merge       upserts and other merges by key
columns     new columns
alterations altered and dropped columns
casts       columns of another type
indices     new indices
branch_changes
            what a branch changed, as changes of main
index_parameters
            types of indices, and the parameters that each has
"""

from __future__ import annotations

from table_data.staging.alterations import Alteration, stage_alterations, stage_removal
from table_data.staging.columns import stage_columns
from table_data.staging.handles import ReadOnlyTable, expression_of, open_local, open_version
from table_data.staging.index_parameters import index_arguments, index_type_of
from table_data.staging.indices import default_index_name, stage_index, stage_index_removal
from table_data.staging.merge import MAX_CLAIMED_KEYS, StagedMergeInsert, stage_merge
from table_data.staging.rows import (
    RowSet,
    check_rows,
    data_format,
    stage_delete,
    stage_rows,
    stage_table,
    stage_update,
    validated_rows,
)

__all__ = [
    "MAX_CLAIMED_KEYS",
    "Alteration",
    "ReadOnlyTable",
    "RowSet",
    "StagedMergeInsert",
    "check_rows",
    "data_format",
    "default_index_name",
    "expression_of",
    "index_arguments",
    "index_type_of",
    "open_local",
    "open_version",
    "stage_alterations",
    "stage_columns",
    "stage_delete",
    "stage_index",
    "stage_index_removal",
    "stage_merge",
    "stage_removal",
    "stage_rows",
    "stage_table",
    "stage_update",
    "validated_rows",
]

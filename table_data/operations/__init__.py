"""The operations of the namespace specification on the rows of one table, by the names of `LanceNamespace`.

And those of maintenance, which it does not have.
"""

from __future__ import annotations

from table_data.operations import (
    blobs,
    branches,
    columns,
    compacting,
    indices,
    matching_rows,
    merging_rows,
    metadata,
    prewarming,
    querying,
    rows,
)
from table_data.operations.kinds import Changes, Reads

CHANGES: Changes = {
    **rows.CHANGES,
    **merging_rows.CHANGES,
    **matching_rows.CHANGES,
    **metadata.CHANGES,
    **indices.CHANGES,
    **columns.CHANGES,
    **compacting.CHANGES,
    **branches.CHANGES,
}
READS: Reads = {**querying.READS, **indices.READS, **blobs.READS, **prewarming.READS}

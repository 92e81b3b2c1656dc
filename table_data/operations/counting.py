"""Numbers of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from table_data.arrow.batch_sizes import batch_rows
from table_data.operations.kinds import Reads

if TYPE_CHECKING:
    import lance

    from table_data.requests.table_requests import CountRows


def count_table_rows(dataset: lance.LanceDataset, request: CountRows) -> int:
    """The number of rows that match `predicate`, of all rows without one."""
    predicate = request.get("predicate")
    if not predicate:
        return int(dataset.count_rows())
    # A scanner takes four fifths of the time of `count_rows` with a filter.
    rows = batch_rows(dataset.schema, [predicate])
    return int(dataset.scanner(columns=[], filter=predicate, with_row_id=True, batch_size=rows).count_rows())


READS: Reads = {"count_table_rows": count_table_rows}

"""Numbers of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from table_data.arrow.batch_sizes import batch_rows
from table_data.batch_operations import Json
from table_data.operations.kinds import Read

if TYPE_CHECKING:
    import lance


def count_table_rows(dataset: lance.LanceDataset, request: Json) -> int:
    """The number of rows that match `predicate`, of all rows without one."""
    predicate = request.get("predicate")
    if not predicate:
        return int(dataset.count_rows())
    # A scanner takes four fifths of the time of `count_rows` with a filter.
    rows = batch_rows(dataset.schema, [predicate])
    return int(dataset.scanner(columns=[], filter=predicate, with_row_id=True, batch_size=rows).count_rows())


READS: Mapping[str, Read] = {"count_table_rows": count_table_rows}

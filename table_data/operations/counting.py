"""Numbers of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from table_data.batch_operations import Json
from table_data.operations.kinds import Read

if TYPE_CHECKING:
    import lance


def count_table_rows(dataset: lance.LanceDataset, request: Json) -> int:
    """The number of rows that match `predicate`, of all rows without one."""
    return int(dataset.count_rows(request.get("predicate") or None))


READS: Mapping[str, Read] = {"count_table_rows": count_table_rows}

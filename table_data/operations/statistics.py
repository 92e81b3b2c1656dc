"""Statistics of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from table_data.batch_operations import Result
from table_data.operations.kinds import Reads

if TYPE_CHECKING:
    import lance

    from table_data.requests.table_requests import ReadRequest

_SMALL_FRAGMENT = 1 << 20
"""Rows from which a fragment is not small. Pylance compacts to fragments of this size."""


def get_table_stats(dataset: lance.LanceDataset, _request: ReadRequest) -> Result:
    """Bytes of the columns, rows, indices, and the sizes of fragments in rows (deleted ones included)."""
    lengths = sorted(fragment.physical_rows for fragment in dataset.get_fragments())
    return {
        "total_bytes": sum(field.bytes_on_disk for field in dataset.stats.data_stats().fields),
        "num_rows": dataset.count_rows(),
        "num_indices": len(dataset.describe_indices()),
        "fragment_stats": {
            "num_fragments": len(lengths),
            "num_small_fragments": sum(length < _SMALL_FRAGMENT for length in lengths),
            "lengths": {
                "min": lengths[0] if lengths else 0,
                "max": lengths[-1] if lengths else 0,
                "mean": sum(lengths) // len(lengths) if lengths else 0,
                **{f"p{percent}": _percentile(lengths, percent) for percent in (25, 50, 75, 99)},
            },
        },
    }


def _percentile(ascending: Sequence[int], percent: int) -> int:
    return ascending[(len(ascending) - 1) * percent // 100] if ascending else 0


READS: Reads = {"get_table_stats": get_table_stats}

"""Numbers of rows from manifests."""

from __future__ import annotations

from collections.abc import Iterable

from lance_core.proto import lance_table_pb2 as pb


def rows_in(fragment: pb.DataFragment) -> int:
    """Number of rows of a fragment without the deleted ones."""
    return int(fragment.physical_rows) - int(fragment.deletion_file.num_deleted_rows)


def rows_of(fragments: Iterable[pb.DataFragment]) -> int:
    """Number of rows of some fragments without the deleted ones."""
    return sum(map(rows_in, fragments))

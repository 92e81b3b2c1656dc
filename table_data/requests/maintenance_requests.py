"""The requests of operations that maintenance asks for, and no client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from table_data.requests.table_requests import TableRequest

if TYPE_CHECKING:
    from lance_core.compaction import CompactionOptions


class ReserveFragmentIds(TableRequest):
    """How many fragment ids are reserved."""

    count: int


class ReservedIds(TypedDict):
    """So many fragment ids, from the first one on."""

    first: int
    count: int


class CompactTable(TableRequest):
    """The fragments to rewrite, and the reserved ids that new fragments of an indexed table get."""

    options: CompactionOptions
    reserved: ReservedIds


class OptimizeIndices(TableRequest):
    """The names of the indices of which each gets one segment over all rows."""

    names: list[str]

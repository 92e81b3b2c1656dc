"""`Scan`: the rows and columns to read of a table. Pickled into tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

ROW_ID: Final = "_rowid"
ROW_ADDRESS: Final = "_rowaddr"
CREATED_AT: Final = "_row_created_at_version"
UPDATED_AT: Final = "_row_last_updated_at_version"
METADATA_COLUMNS: Final = (ROW_ID, ROW_ADDRESS, CREATED_AT, UPDATED_AT)
"""Columns of a row's identity and history, which a read returns only where they are named."""

SCORE_COLUMNS: Final = ("_distance", "_score")
"""Columns of a vector search and of a full-text search, which a read returns only where they are named."""


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """Search for the `k` nearest rows. Options that are None are left to pylance."""

    column: str
    vector: tuple[float, ...]
    k: int = 10
    nprobes: int | None = None
    refine_factor: int | None = None
    metric: str | None = None

    def options(self) -> dict[str, object]:
        """The argument `nearest` of pylance."""
        given = {
            "column": self.column,
            "q": list(self.vector),
            "k": self.k,
            "nprobes": self.nprobes,
            "refine_factor": self.refine_factor,
            "metric": self.metric,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class TextSearch:
    """Full-text search, in all columns that have such an index if `columns` is empty."""

    query: str
    columns: tuple[str, ...] = ()

    def options(self) -> dict[str, object]:
        """The argument `full_text_query` of pylance."""
        return {"query": self.query, "columns": list(self.columns) or None}


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan of a table.

    Attributes:
        columns: Names of the columns, in order. Metadata columns and, for a search, `_distance` or `_score` may be
            among them. None for all columns that are stored.
        filter: SQL expression of Lance that rows must match.
        limit: Largest number of rows.
        nearest: Vector search. The filter applies before it.
        text: Full-text search. The filter applies before it.
    """

    columns: tuple[str, ...] | None = None
    filter: str | None = None
    limit: int | None = None
    nearest: VectorSearch | None = field(default=None)
    text: TextSearch | None = field(default=None)

    @property
    def is_search(self) -> bool:
        """Whether the rows are ranked, so that one task must read them."""
        return self.nearest is not None or self.text is not None

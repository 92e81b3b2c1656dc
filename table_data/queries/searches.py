"""A search as pylance takes it: by a vector, or by words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from table_data.errors import InvalidCall, require_count


def search_options(schema: pa.Schema, query: Any, column: str | None, k: int) -> tuple[dict[str, Any], str]:
    """The arguments of `lance.LanceDataset.to_table`, and the column of the result by which it is sorted.

    `query` is a vector, or words. Raises `InvalidCall` if it is neither, and where the column is not given and cannot
    be guessed.
    """
    k = require_count("k", k, 1)
    if isinstance(query, str):
        text: Any = query if column is None else {"query": query, "columns": [column]}
        return {"full_text_query": text, "limit": k}, "_score"
    _check_numbers(query)
    return {"nearest": {"column": column or _vector_column(schema), "q": query, "k": k}}, "_distance"


def _check_numbers(query: Any) -> None:
    """Raise `InvalidCall` for a vector without values or with one that is no number: pylance finds nothing near it."""
    try:
        numbers = np.asarray(query, np.float64)
    except (TypeError, ValueError):
        raise InvalidCall(f"query: expected words or a vector, found {query!r:.80}") from None
    if not numbers.size or not np.isfinite(numbers).all():
        raise InvalidCall(f"query: expected a vector of numbers, found {query!r:.80}")


def _vector_column(schema: pa.Schema) -> str:
    found = [
        field.name
        for field in schema
        if pa.types.is_fixed_size_list(field.type) and pa.types.is_floating(field.type.value_type)
    ]
    if len(found) != 1:
        raise InvalidCall(f"column: expected one, found {len(found)} columns of vectors: {', '.join(found) or 'none'}")
    return str(found[0])

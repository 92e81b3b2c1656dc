"""Searches whose results are merged into one list.

A query for vectors and for text is two searches of `offset` + `k` rows each. Their lists are merged by reciprocal
rank fusion: a row at rank r of a list gets 1 / (60 + r) of it, as lancedb does by default. `_relevance_score` is the
sum, `_distance` and `_score` are null where a row was found by the other search only.

Matches that differ are one search each, and the best score of a row counts. A filter applies to each search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from table_data.errors import InvalidCall
from table_data.queries.full_text import Matches
from table_data.queries.scans import SCORES, QueryScan

if TYPE_CHECKING:
    import lance

MAX_ROWS: Final = 10_000
"""Rows of each search that are in memory at one time."""
_RANK_OFFSET: Final = 60
_ROW_ID: Final = "_rowid"


def searches_of(scan: QueryScan, rows: int) -> dict[str, QueryScan]:
    """The searches, each for its first `rows`, with row ids."""
    if scan.nearest is not None and isinstance(scan.nearest["q"][0], list):
        raise InvalidCall("multi_vector: expected single_vector where full_text_query is given, found several")
    columns = scan.columns
    if isinstance(columns, list):
        columns = [name for name in columns if name not in SCORES | {_ROW_ID}]
    base = replace(scan, columns=columns, with_row_id=True)
    found: dict[str, QueryScan] = {}
    if scan.nearest is not None:
        found["vector search"] = base.first(rows, text=None)
    texts = scan.text.queries if isinstance(scan.text, Matches) else (scan.text,)
    for number, text in enumerate(texts, start=1):
        name = "full-text search" if len(texts) == 1 else f"full-text search {number}"
        found[name] = base.first(rows, text=text, nearest=None)
    return found


def rows_wanted(dataset: lance.LanceDataset, scan: QueryScan) -> int:
    """How many rows each search is to find. Raises `InvalidCall` if they are too many."""
    wanted = (scan.limit or 0) + scan.offset
    if wanted > MAX_ROWS:
        wanted = min(wanted, max(dataset.count_rows(), 1))
    if wanted > MAX_ROWS:
        raise InvalidCall(f"k + offset: expected at most {MAX_ROWS} where searches are merged, found {wanted}")
    return wanted


def fused(dataset: lance.LanceDataset, scan: QueryScan) -> pa.Table:
    """The merged rows, best first. Raises `InvalidCall` and what pylance raises."""
    wanted = rows_wanted(dataset, scan)
    found = {name: search.scanner(dataset).to_table() for name, search in searches_of(scan, wanted).items()}
    vectors = found.pop("vector search", None)
    texts = list(found.values())
    text = _merged(texts, _best_scores(texts), "_score") if len(texts) > 1 else texts[0]
    if vectors is not None:
        text = text.slice(0, wanted)
        merged = _merged([vectors, text], _relevance([vectors, text]), "_relevance_score")
    else:
        merged = text
    merged = merged.slice(scan.offset, scan.limit)
    asked = isinstance(scan.columns, list) and _ROW_ID in scan.columns
    return merged if scan.with_row_id or asked else merged.drop_columns([_ROW_ID])


def _relevance(lists: list[pa.Table]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for found in lists:
        for rank, row in enumerate(found[_ROW_ID].to_pylist(), start=1):
            scores[row] = scores.get(row, 0.0) + 1 / (rank + _RANK_OFFSET)
    return scores


def _best_scores(lists: list[pa.Table]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for found in lists:
        for row, score in zip(found[_ROW_ID].to_pylist(), found["_score"].to_pylist(), strict=True):
            scores[row] = max(score, scores.get(row, score))
    return scores


def _merged(lists: list[pa.Table], scores: dict[int, float], name: str) -> pa.Table:
    """One row for each of `scores`, best first; equal ones in the order of the lists."""
    shared = [column for column in lists[0].column_names if column not in SCORES]
    everything = pa.concat_tables([found.select(shared) for found in lists])
    place: dict[int, int] = {}
    for index, row in enumerate(everything[_ROW_ID].to_pylist()):
        place.setdefault(row, index)
    order = sorted(place, key=lambda row: -scores[row])
    merged = everything.take(pa.array([place[row] for row in order], pa.int64()))
    kept = merged.drop_columns([_ROW_ID])
    for other in sorted(SCORES - {name}):
        values = _values(lists, other)
        if values is not None:
            kept = kept.append_column(other, pa.array([values.get(row) for row in order], pa.float32()))
    kept = kept.append_column(name, pa.array([scores[row] for row in order], pa.float32()))
    return kept.append_column(_ROW_ID, merged[_ROW_ID])


def _values(lists: list[pa.Table], name: str) -> dict[int, float] | None:
    having = [found for found in lists if name in found.column_names]
    if not having:
        return None
    return {
        row: value
        for found in having
        for row, value in zip(found[_ROW_ID].to_pylist(), found[name].to_pylist(), strict=True)
    }


def plan_of(dataset: lance.LanceDataset, scan: QueryScan, text: Callable[[lance.LanceScanner], str]) -> str:
    """The plans of all searches, one after another, each under its name."""
    searches = searches_of(scan, rows_wanted(dataset, scan))
    return "\n".join(f"{name}:\n{text(search.scanner(dataset)).rstrip()}\n" for name, search in searches.items())

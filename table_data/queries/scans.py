"""From a QueryTable request to the arguments of a scan of pylance.

A request without vectors and without a text query is a plain scan, where `k` bounds the rows; zero is no bound. A
search returns the `k` best rows after the first `offset`, ten if `k` is zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from lance.dataset import ColumnOrdering

from table_data.arrow.batch_sizes import batch_rows
from table_data.batch_operations import Json
from table_data.errors import InvalidCall
from table_data.queries.full_text import Matches, full_text_query
from table_data.requests.field_paths import dotted

if TYPE_CHECKING:
    import lance
    from lance.query import FullTextQuery

    from table_data.requests.table_requests import QueryColumns, QueryTable, QueryVector

DEFAULT_K: Final = 10
_LARGE_K: Final = 10_000
"""Searches for more rows than this are bounded by the rows of the table: pylance allocates memory for `k`."""
_MAX_INTEGER: Final = 2**63 - 1
_MAX_UINT32: Final = 2**32 - 1
_METRICS: Final = {"l2": "L2", "euclidean": "L2", "cosine": "cosine", "dot": "dot", "hamming": "hamming"}
_OF_VECTORS: Final = (
    *("distance_type", "ef", "lower_bound", "maximum_nprobes", "minimum_nprobes", "nprobes", "refine_factor"),
    *("upper_bound", "vector_column"),
)
"""Fields that say how vectors are searched for; lancedb asks for no index of them with every query."""
_BATCH: Final = 4 << 20
_READ_AHEAD: Final = 64 << 20
"""Bytes that a scan reads ahead. Pylance's default is gigabytes, which one worker of several must not take."""
SCORES: Final = frozenset({"_distance", "_score", "_relevance_score"})


@dataclass(frozen=True, slots=True)
class QueryScan:
    """A query of one table version. `limit` None is no bound; `nearest` holds the options of a vector search.

    `text` is what pylance takes as a full-text query, or `Matches`, which it cannot do as one query.
    """

    columns: list[str] | dict[str, str] | None
    filter: str | None
    prefilter: bool
    limit: int | None
    offset: int
    with_row_id: bool
    fast_search: bool
    nearest: Json | None = None
    text: FullTextQuery | Json | Matches | None = field(default=None)
    order: tuple[ColumnOrdering, ...] = ()

    @property
    def is_fused(self) -> bool:
        """Whether it takes several searches, whose results are merged."""
        return isinstance(self.text, Matches) or (self.text is not None and self.nearest is not None)

    @property
    def is_search(self) -> bool:
        """Whether its rows are ranked."""
        return self.nearest is not None or self.text is not None

    @property
    def hides_row_id(self) -> bool:
        """Whether its scanner has row ids that are not asked for: pylance orders by columns that it takes by them."""
        return bool(self.order) and not self.with_row_id and isinstance(self.columns, list)

    def scanner(self, dataset: lance.LanceDataset, most: int | None = None) -> lance.LanceScanner:
        """The scanner of the query, with at most so many rows in a batch of a plain scan.

        Raises as pylance does for a query that does not fit the table.
        """
        return dataset.scanner(
            columns=self._with_score(),
            disable_scoring_autoprojection=bool(self.columns),
            filter=self.filter,
            prefilter=self.prefilter,
            limit=self.limit if self.nearest is None or self.offset else None,  # a search ends after `k` rows
            offset=self.offset or None,
            with_row_id=self.with_row_id or self.hides_row_id,
            fast_search=self.fast_search,
            nearest=self.nearest,
            full_text_query=self.text,
            batch_size=most or self._batch_rows(dataset.schema),
            batch_size_bytes=_BATCH,
            io_buffer_size=_READ_AHEAD,
            order_by=list(self.order) or None,
        )

    def _batch_rows(self, schema: pa.Schema) -> int | None:
        """Rows of a batch of a plain scan."""
        if self.is_search:
            return None
        if not self.columns:
            return batch_rows(schema, None)
        chosen = self.columns if isinstance(self.columns, list) else self.columns.values()
        return batch_rows(schema, [*chosen, self.filter or ""])

    def _with_score(self) -> list[str] | dict[str, str] | None:
        """The columns, and the score of a search.

        Pylance adds the score, too, but logs a warning each time that it does so to given columns.
        """
        score = "_distance" if self.nearest is not None else "_score" if self.text is not None else None
        if not self.columns or score is None or score in self.columns:
            return self.columns
        return [*self.columns, score] if isinstance(self.columns, list) else {**self.columns, score: score}

    def first(self, rows: int, **changes: Any) -> QueryScan:
        """The same query for its first rows, with other changes."""
        nearest = changes.pop("nearest", self.nearest)
        if nearest is not None:
            nearest = {**nearest, "k": rows}
        return replace(self, limit=rows, offset=0, nearest=nearest, **changes)


def scan_of(dataset: lance.LanceDataset, request: QueryTable) -> QueryScan:
    """The scan for a request. Raises `InvalidCall`."""
    k, offset = _integer(request.get("k"), "k") or 0, _integer(request.get("offset"), "offset") or 0
    text = full_text_query(dataset, request.get("full_text_query") or {})
    nearest = _nearest(dataset, request, k, offset)
    is_search = nearest is not None or text is not None
    limit = k or (DEFAULT_K if is_search else None)
    if nearest is not None and text is None and _is_batch(dataset, nearest):
        if offset:
            raise InvalidCall(f"offset: expected 0 where several vectors are searched for, found {offset}")
        limit = None  # there are `k` rows for each vector
    scan = QueryScan(
        columns=_columns(request.get("columns") or {}),
        filter=request.get("filter"),
        prefilter=bool(request.get("prefilter")),
        limit=limit,
        offset=offset,
        with_row_id=bool(request.get("with_row_id")),
        # Without its index a search finds nothing among the rows that are indexed.
        fast_search=bool(request.get("fast_search")) and (nearest is None or bool(nearest["use_index"])),
        nearest=nearest,
        text=text,
        order=_order(request),
    )
    if scan.order and (scan.is_fused or (nearest is not None and _is_batch(dataset, nearest))):
        raise InvalidCall("order_by: expected one search, or none; the rows of several come in an order of their own")
    return scan


def _order(request: QueryTable) -> tuple[ColumnOrdering, ...]:
    """The order of the rows of a scan, or of those that a search finds."""
    given = request.get("order_by") or []
    return tuple(
        ColumnOrdering(
            each["column_name"],
            ascending=each.get("ascending") is not False,
            nulls_first=bool(each.get("nulls_first")),
        )
        for each in given
    )


def vector_columns(schema: pa.Schema) -> dict[str, bool]:
    """The paths of all columns that a vector search can search, and whether their rows hold several vectors."""
    return {path: several for item in schema for path, several in _vectors_below(item, "")}


def _vectors_below(item: pa.Field, parent: str) -> Iterator[tuple[str, bool]]:
    path = parent + dotted([item.name])
    kind = _storage(item.type)
    if pa.types.is_struct(kind):
        for inner in kind:
            yield from _vectors_below(inner, f"{path}.")
    elif _is_vector(kind):
        yield path, False
    elif pa.types.is_list(kind) and _is_vector(_storage(kind.value_type)):
        yield path, True


def _is_vector(kind: pa.DataType) -> bool:
    if not pa.types.is_fixed_size_list(kind):
        return False
    value = _storage(kind.value_type)
    return bool(pa.types.is_floating(value) or value.equals(pa.uint8()) or value.equals(pa.int8()))


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _columns(given: QueryColumns) -> list[str] | dict[str, str] | None:
    names, aliases = given.get("column_names"), given.get("column_aliases")
    if names and aliases:
        raise InvalidCall("columns: expected column_names or column_aliases, found both")
    return list(names) if names else dict(aliases) if aliases else None


def _nearest(dataset: lance.LanceDataset, request: QueryTable, k: int, offset: int) -> Json | None:
    given: QueryVector = request.get("vector") or {}
    single, several = given.get("single_vector"), given.get("multi_vector")
    if single and several:
        raise InvalidCall("vector: expected single_vector or multi_vector, found both")
    if not single and not several:
        _refuse_settings(request)
        return None
    rows = (k or DEFAULT_K) + offset
    effort = _integer(request.get("ef"), "ef", _MAX_INTEGER, least=1)
    refine = _integer(request.get("refine_factor"), "refine_factor", _MAX_UINT32, least=1)
    if max(rows, effort or 0, rows * (refine or 0)) > _LARGE_K:
        all_rows = max(dataset.count_rows(), 1)
        rows = min(rows, all_rows)
        effort = effort and max(min(effort, all_rows), rows)
        refine = refine and min(refine, -(-all_rows // rows))
    options: Json = {
        "column": _vector_column(dataset, request.get("vector_column")),
        "q": single or several,
        "k": rows,
        "metric": _metric(request.get("distance_type")),
        "ef": effort,
        "refine_factor": refine,
        "use_index": not request.get("bypass_vector_index"),
        **_probes(request),
    }
    bounds = (request.get("lower_bound"), request.get("upper_bound"))
    if bounds != (None, None):
        options["distance_range"] = bounds
    return options


def _refuse_settings(request: QueryTable) -> None:
    """Refuse settings of a vector search in a request that has none: they would have no effect."""
    given = [name for name in _OF_VECTORS if request.get(name) is not None]
    if given:
        raise InvalidCall(f"{', '.join(given)}: expected a vector with it, found none")


def _is_batch(dataset: lance.LanceDataset, nearest: Json) -> bool:
    """Whether the vectors are one search each, not one search in a column whose rows hold several."""
    return isinstance(nearest["q"][0], list) and not vector_columns(dataset.schema).get(nearest["column"], False)


def _probes(request: QueryTable) -> Json:
    least = _integer(request.get("minimum_nprobes"), "minimum_nprobes", _MAX_UINT32, least=1)
    most = _integer(request.get("maximum_nprobes"), "maximum_nprobes", _MAX_UINT32, least=1)
    if least is not None and most is not None and least > most:
        raise InvalidCall(f"minimum_nprobes {least}: expected at most maximum_nprobes = {most}")
    if least is None and most is None:
        return {"nprobes": _integer(request.get("nprobes"), "nprobes", _MAX_UINT32, least=1)}
    return {"minimum_nprobes": least, "maximum_nprobes": most}


def _metric(given: str | None) -> str | None:
    if not given:
        return None
    try:
        return _METRICS[given.lower()]
    except KeyError:
        raise InvalidCall(f"distance_type: expected l2, cosine, dot or hamming, found {given[:80]!r}") from None


def _vector_column(dataset: lance.LanceDataset, given: str | None) -> str:
    if given is not None:
        return given
    found = vector_columns(dataset.schema)
    if not found:
        raise InvalidCall("vector: expected a table with a column of vectors, found none")
    if len(found) > 1 and "vector" not in found:
        raise InvalidCall(f"vector_column: expected one of {', '.join(found)[:400]}, found nothing")
    return next(iter(found)) if len(found) == 1 else "vector"


def _integer(value: int | None, name: str, most: int = _MAX_INTEGER, *, least: int = 0) -> int | None:
    if value is not None and not least <= value <= most:
        raise InvalidCall(f"{name}: expected a number from {least} to {most}, found {str(value)[:40]}")
    return value

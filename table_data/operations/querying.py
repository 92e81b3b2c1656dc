"""Queries, and their plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from table_data.operations.kinds import Reads
from table_data.queries import fusion, plans
from table_data.queries.scans import scan_of

if TYPE_CHECKING:
    import lance

    from table_data.requests.table_requests import Explain, QueryTable


def query_table(dataset: lance.LanceDataset, request: QueryTable) -> pa.RecordBatchReader:
    """The rows of a scan or a search."""
    scan = scan_of(dataset, request)
    if scan.is_fused:
        return fusion.fused(dataset, scan).to_reader()
    return scan.scanner(dataset).to_reader()


def explain_table_query_plan(dataset: lance.LanceDataset, request: Explain) -> str:
    """The plan of a query."""
    verbose = bool(request.get("verbose"))
    return plans.plan_text(dataset, request["query"], lambda scanner: scanner.explain_plan(verbose=verbose))


def analyze_table_query_plan(dataset: lance.LanceDataset, request: QueryTable) -> str:
    """The plan of a query with what it took to do it. The query is done; its rows are not kept."""
    return plans.plan_text(dataset, request, lambda scanner: scanner.analyze_plan())


READS: Reads = {
    "query_table": query_table,
    "explain_table_query_plan": explain_table_query_plan,
    "analyze_table_query_plan": analyze_table_query_plan,
}

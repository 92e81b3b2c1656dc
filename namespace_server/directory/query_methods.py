"""The methods of `LanceNamespace` that read rows, for a catalog that is used in process."""

from __future__ import annotations

import lance_namespace as models

from namespace_server.data.reads import plan_request
from namespace_server.directory.data_methods import DataMethods, plain
from table_data.batch_operations import Json


class QueryMethods(DataMethods):
    """The methods that read rows. Rows come as the bytes of an Arrow IPC file."""

    def query_table(self, request: models.QueryTableRequest | Json) -> models.QueryTableResponse:
        """The rows of a scan, of a vector search, of a full-text search, or of both."""
        return models.QueryTableResponse(data=self.row_reads.rows("query_table", plain(request)))

    def count_table_rows(self, request: models.CountTableRowsRequest) -> models.CountTableRowsResponse:
        """The number of rows, or of those that match a predicate."""
        return models.CountTableRowsResponse(count=self.row_reads.value("count_table_rows", plain(request)).body)

    def explain_table_query_plan(self, request: models.ExplainTableQueryPlanRequest) -> str:
        """The plan of a query."""
        plan: str = self.row_reads.value("explain_table_query_plan", plan_request(plain(request))).body
        return plan

    def analyze_table_query_plan(self, request: models.AnalyzeTableQueryPlanRequest) -> str:
        """The plan of a query with what it took to do it."""
        plan: str = self.row_reads.value("analyze_table_query_plan", plain(request)).body
        return plan

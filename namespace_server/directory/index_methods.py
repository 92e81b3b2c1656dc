"""The methods of `LanceNamespace` about the indices of a table."""

from __future__ import annotations

import lance_namespace as models
from lance_namespace.errors import InvalidInputError

from namespace_server.directory.data_methods import DataMethods, made, plain
from table_data.batch_operations import Json


class IndexMethods(DataMethods):
    """Indices of one table. Pylance does the work in this process."""

    def create_table_index(self, request: models.CreateTableIndexRequest) -> models.CreateTableIndexResponse:
        """Build an index of any type."""
        return made(models.CreateTableIndexResponse, self.data.change("create_table_index", plain(request)).body)

    def create_table_scalar_index(
        self, request: models.CreateTableIndexRequest
    ) -> models.CreateTableScalarIndexResponse:
        """Build an index that is not over vectors."""
        answer = self.data.change("create_table_scalar_index", plain(request))
        return made(models.CreateTableScalarIndexResponse, answer.body)

    def list_table_indices(self, request: models.ListTableIndicesRequest) -> models.ListTableIndicesResponse:
        """The indices of a table."""
        return made(models.ListTableIndicesResponse, self.row_reads.value("list_table_indices", plain(request)).body)

    def describe_table_index_stats(
        self, request: models.DescribeTableIndexStatsRequest
    ) -> models.DescribeTableIndexStatsResponse:
        """Type, rows and segments of an index."""
        answer = self.row_reads.value("describe_table_index_stats", _named(plain(request)))
        return made(models.DescribeTableIndexStatsResponse, answer.body)

    def drop_table_index(self, request: models.DropTableIndexRequest) -> models.DropTableIndexResponse:
        """Remove an index."""
        return made(models.DropTableIndexResponse, self.data.change("drop_table_index", _named(plain(request))).body)


def _named(request: Json) -> Json:
    """A request with an index name. Raises `InvalidInputError` (13)."""
    if not isinstance(request.get("index_name"), str):
        raise InvalidInputError("index_name: expected a string, found none")
    return request

"""The methods of `LanceNamespace` about tags, branches and transactions, for a catalog that is used in process."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import lance_namespace as models
from lance_namespace import LanceNamespace

from namespace_server.answer import Answer
from namespace_server.directory.data_methods import made, plain
from namespace_server.directory.model.requests import Request
from namespace_server.directory.reading.objects import Body


class ReferenceMethods(LanceNamespace):
    """The methods about tags, branches and transactions. They need what `DirectoryNamespace` has."""

    @abstractmethod
    def _read(self, operation: str, request: Any) -> Body: ...

    @abstractmethod
    def _write(self, operation: str, request: Any) -> Answer: ...

    @abstractmethod
    def change(self, operation: str, request: Request, *, principal: str | None = None) -> Answer:
        """Make a change that writes or removes files beside the catalog."""

    def _change(self, operation: str, request: Any) -> Body:
        body: Body = self.change(operation, plain(request)).body
        return body

    def list_table_tags(self, request: models.ListTableTagsRequest) -> models.ListTableTagsResponse:
        """The tags of a table."""
        return made(models.ListTableTagsResponse, self._read("list_table_tags", request))

    def get_table_tag_version(self, request: models.GetTableTagVersionRequest) -> models.GetTableTagVersionResponse:
        """The version that a tag names, and its branch."""
        return made(models.GetTableTagVersionResponse, self._read("get_table_tag_version", request))

    def create_table_tag(self, request: models.CreateTableTagRequest) -> models.CreateTableTagResponse:
        """Name a version of a table, on any branch."""
        return made(models.CreateTableTagResponse, self._change("create_table_tag", request))

    def update_table_tag(self, request: models.UpdateTableTagRequest) -> models.UpdateTableTagResponse:
        """Let a tag name another version."""
        return made(models.UpdateTableTagResponse, self._change("update_table_tag", request))

    def delete_table_tag(self, request: models.DeleteTableTagRequest) -> models.DeleteTableTagResponse:
        """Remove a tag."""
        return made(models.DeleteTableTagResponse, self._change("delete_table_tag", request))

    def list_table_branches(self, request: models.ListTableBranchesRequest) -> models.ListTableBranchesResponse:
        """The branches of a table, without main."""
        return made(models.ListTableBranchesResponse, self._read("list_table_branches", request))

    def create_table_branch(self, request: models.CreateTableBranchRequest) -> models.CreateTableBranchResponse:
        """Begin a branch at a version of main or of another branch."""
        return made(models.CreateTableBranchResponse, self._write("create_table_branch", request).body)

    def delete_table_branch(self, request: models.DeleteTableBranchRequest) -> models.DeleteTableBranchResponse:
        """Remove a branch with its versions and files, if no tag and no other branch needs them."""
        return made(models.DeleteTableBranchResponse, self._change("delete_table_branch", request))

    def describe_transaction(self, request: models.DescribeTransactionRequest) -> models.DescribeTransactionResponse:
        """The transaction that made a version of a table, or a batch."""
        return made(models.DescribeTransactionResponse, self._read("describe_transaction", request))

    def alter_transaction(self, request: models.AlterTransactionRequest) -> models.AlterTransactionResponse:
        """Note properties on a transaction or a batch."""
        return made(models.AlterTransactionResponse, self._change("alter_transaction", request))

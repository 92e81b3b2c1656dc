"""The end of a branch: its rows go in a flip, then its files, then the record that says so (rule B2)."""

from __future__ import annotations

from namespace_server.answer import Answer
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.operations import DeleteBranch
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.references.change_context import ChangeContext


def delete_branch(context: ChangeContext, request: Request) -> Answer:
    """DeleteTableBranchResponse. What of the files cannot be removed now is left to the sweep.

    Raises TableBranchNotFoundError (22), TableNotFoundError (4), and InvalidInputError (13) for a branch that a tag
    names, that another one begins at, or whose files versions of another one have.
    """
    operation = DeleteBranch(request_fields.table_id(request), request_fields.branch_name(request))
    recorded = context.commit(operation)
    catalog = context.catalog
    catalog.finish_branches(catalog.branch_removal.waiting(recorded.snapshot, [(operation.id, operation.branch)]))
    return recorded.answer

"""The changes of this package by the names of their operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from lance_namespace.errors import LanceNamespaceError, TableTagAlreadyExistsError

from namespace_server.answer import Answer
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.operations import DeleteBranch
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.references.change_context import ChangeContext, Recorded, begun
from namespace_server.directory.references.clones import clone_table, cloned
from namespace_server.directory.references.tags import create_tag, delete_tag, finish_deletion, update_tag
from namespace_server.directory.references.transaction_notes import alter_transaction, describe_altered


def delete_branch(context: ChangeContext, request: Request) -> Answer:
    """DeleteTableBranchResponse: the rows go in a flip, then the files, then the record of the deletion (rule B2).

    Files that cannot be removed now are left to the sweep.

    Raises TableBranchNotFoundError (22), TableNotFoundError (4), and InvalidInputError (13) for a branch that a tag
    names, that another one begins at, or whose files versions of another one have.
    """
    operation = DeleteBranch(request_fields.table_id(request), request_fields.branch_name(request))
    context.judge("delete_table_branch", operation.id)
    recorded = context.commit(operation)
    catalog = context.catalog
    catalog.finish_branches(catalog.branch_removal.waiting(recorded.snapshot, [(operation.id, operation.branch)]))
    return recorded.answer


CHANGES: Final[Mapping[str, Callable[[ChangeContext, Request], Answer]]] = {
    "create_table_tag": create_tag,
    "update_table_tag": update_tag,
    "delete_table_tag": delete_tag,
    "delete_table_branch": delete_branch,
    "clone_table": clone_table,
    "alter_transaction": alter_transaction,
}

_LOOKS: Final = 20
_PAUSE: Final = 0.05
"""Seconds between looks for the record of a request under the same key that seems to be under way."""


def make_once(context: ChangeContext, operation: str, request: Request) -> Answer:
    """Make a change, unless it was made before under its idempotency key: then it is answered again.

    The flip decides the same again, but these changes look at files before it. So what a request under the same key
    did that was under way at the first look is met as an error: its record is looked for then. Raises the namespace
    errors of the operation, `StorageError` if nothing was done, `StorageUnknown`.
    """
    if context.idempotency_key is None:
        return CHANGES[operation](context, request)
    if (before := context.committed_before()) is not None:
        return _answer_again(before, context, operation, request)
    try:
        return CHANGES[operation](context, request)
    except LanceNamespaceError as error:
        # The file of a tag is written before the flip: the request that wrote it may not have come to that yet.
        for left in reversed(range(_LOOKS if isinstance(error, TableTagAlreadyExistsError) else 1)):
            with begun():
                before = context.committed_before()
            if before is not None:
                return _answer_again(before, context, operation, request)
            if left:
                time.sleep(_PAUSE)
        raise


def _answer_again(before: Recorded, context: ChangeContext, operation: str, request: Request) -> Answer:
    with begun():
        if operation == "delete_table_tag":
            finish_deletion(context, request, before)
        if operation == "clone_table":
            return cloned(context, before)
        return describe_altered(before, context, request) if operation == "alter_transaction" else before.answer

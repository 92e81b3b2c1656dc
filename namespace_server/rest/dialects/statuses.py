"""The HTTP statuses of errors for lancedb's remote clients, which look at nothing else.

They read 404 as "there is no such table", of a few operations as "no such index", "version" or "branch". They repeat a
request that is answered 409, 429, 500, 502, 503 or 504: an insert or a merge under another request id, so that what it
did would be done twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from lance_namespace.errors import ErrorCode, LanceNamespaceError

from namespace_server.outcomes import NOTHING_DONE, Outcome
from namespace_server.rest.errors import RouteNotFound, status_of
from namespace_server.workers.worker_process import WorkTimeout

OUTCOME_UNKNOWN: Final = 520
"""The status of a change whose outcome is unknown, where a repetition would be another change. No client repeats it."""
_REPEATED_ANEW: Final = frozenset({"insert_into_table", "merge_insert_into_table", "complete_multipart_write"})
"""Changes that are repeated under another request id, or as another upload."""
_PICK: Final = "cherry_pick_table_branch"
"""Its 409 is a result, with a body of its own, and not an error."""
_REPEATED: Final = frozenset({409, 429, 500, 502, 503, 504})
_MISSING: Final[Mapping[int, tuple[str, ...]]] = {
    ErrorCode.TABLE_NOT_FOUND: ("",),
    ErrorCode.NAMESPACE_NOT_FOUND: ("",),
    ErrorCode.TABLE_INDEX_NOT_FOUND: ("describe_table_index_stats", "drop_table_index", "prewarm_table_index"),
    ErrorCode.TABLE_VERSION_NOT_FOUND: ("describe_table",),
    ErrorCode.TABLE_BRANCH_NOT_FOUND: ("describe_table", "delete_table_branch", "diff_table_branch", _PICK),
    ErrorCode.TRANSACTION_NOT_FOUND: ("describe_jobs", "cancel_jobs"),
}
"""What a 404 of an operation means; the empty name stands for all."""
_CONFLICTS: Final[Mapping[int, tuple[str, ...]]] = {
    ErrorCode.CONCURRENT_MODIFICATION: ("",),
    ErrorCode.NAMESPACE_ALREADY_EXISTS: ("create_namespace",),
    ErrorCode.NAMESPACE_NOT_EMPTY: ("drop_namespace",),
    ErrorCode.TABLE_BRANCH_ALREADY_EXISTS: ("create_table_branch",),
}
"""Likewise of a 409: a conflict that has passed when the request is repeated, or what these operations report."""
_MEANT: Final = {404: _MISSING, 409: _CONFLICTS}


def lancedb_status(error: LanceNamespaceError, outcome: Outcome, operation: str) -> int:
    """The status that answers an error of an operation."""
    if isinstance(error, RouteNotFound):
        return HTTPStatus.NOT_ACCEPTABLE
    if isinstance(error, WorkTimeout):  # a repetition would take as long
        return HTTPStatus.REQUEST_TIMEOUT
    status = status_of(error)
    if status in _REPEATED and outcome != NOTHING_DONE and operation in _REPEATED_ANEW:
        return OUTCOME_UNKNOWN
    if status == HTTPStatus.CONFLICT and operation == _PICK:
        return HTTPStatus.SERVICE_UNAVAILABLE
    meant = _MEANT.get(status)
    if meant is None or not {"", operation}.isdisjoint(meant.get(int(error.code), ())):
        return status
    return HTTPStatus.BAD_REQUEST

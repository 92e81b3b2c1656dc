"""The changes of this package by the names of their operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from namespace_server.directory.model.requests import Request
from namespace_server.directory.reading.response_cache import Answer
from namespace_server.directory.references.branches import delete_branch
from namespace_server.directory.references.change_context import ChangeContext
from namespace_server.directory.references.tags import create_tag, delete_tag, update_tag
from namespace_server.directory.references.transaction_notes import alter_transaction

CHANGES: Final[Mapping[str, Callable[[ChangeContext, Request], Answer]]] = {
    "create_table_tag": create_tag,
    "update_table_tag": update_tag,
    "delete_table_tag": delete_tag,
    "delete_table_branch": delete_branch,
    "alter_transaction": alter_transaction,
}

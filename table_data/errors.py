"""Exceptions of work on tables."""

from __future__ import annotations


class ClientError(Exception):
    """Root of the exceptions of those who prepare and send changes of tables."""


class InvalidCall(ClientError, ValueError):
    """The call contradicts the table, the block that it is made in, or itself. Nothing was changed."""

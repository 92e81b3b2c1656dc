"""Errors of the SQL catalog. Java gets the name of the class and the message."""

from __future__ import annotations


class SqlError(Exception):
    """A statement that cannot be run."""


class NoSuchTable(SqlError):
    """The table does not exist at the catalog version that the statement reads."""


class TableExists(SqlError):
    """A table of this name exists."""


class NoSuchNamespace(SqlError):
    """The namespace does not exist."""


class NamespaceExists(SqlError):
    """A namespace of this name exists."""


class NamespaceNotEmpty(SqlError):
    """The namespace holds tables or namespaces, and CASCADE was not given."""


class Unsupported(SqlError):
    """Lance or the catalog has no such operation, or it cannot be part of a transaction."""


class InvalidStatement(SqlError):
    """The statement contradicts the table or the state of the session."""


class TransactionLost(SqlError):
    """The Python process that held the open transaction has ended. Nothing of the transaction was committed."""

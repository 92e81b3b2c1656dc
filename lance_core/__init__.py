"""The transaction engine for the Lance table format.

It knows tables; it knows nothing of catalogs, HTTP or SQL.
"""

from lance_core.commit.handlers import CommitLock, ConditionalPut, ExternalManifestHandler, RenameIfAbsent
from lance_core.commit.loop import Committed
from lance_core.commit.uri import commit_transaction

__all__ = [
    "CommitLock",
    "Committed",
    "ConditionalPut",
    "ExternalManifestHandler",
    "RenameIfAbsent",
    "commit_transaction",
]

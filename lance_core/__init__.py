"""The transaction engine for the Lance table format.

It knows tables; it knows nothing of catalogs, HTTP or SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lance_core.commit.handlers import CommitLock, ConditionalPut, ExternalManifestHandler, RenameIfAbsent
from lance_core.commit.loop import Committed
from lance_core.commit.uri import commit_transaction

if TYPE_CHECKING:
    from lance_core.compaction import Compacted, CompactionOptions, compact

__all__ = [
    "CommitLock",
    "Committed",
    "Compacted",
    "CompactionOptions",
    "ConditionalPut",
    "ExternalManifestHandler",
    "RenameIfAbsent",
    "commit_transaction",
    "compact",
]


def __getattr__(name: str) -> Any:
    # Compaction is pylance's work, and importing that takes longer than all the rest together.
    if name in {"Compacted", "CompactionOptions", "compact"}:
        from lance_core import compaction

        return getattr(compaction, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Commit handlers: how `put_if_absent`, by which every commit claims its slot, is made exclusive on a store.

| handler | mechanism | for |
|---|---|---|
| `ConditionalPut` | the store's own `put_if_absent` | local files (by a link), memory, S3, Azure, Google |
| `RenameIfAbsent` | `rename_if_absent` of a staged file | stores whose rename is exclusive and whose put is not |
| `CommitLock` | a lock given by the caller | any store |
| `ExternalManifestHandler` | rows of an external manifest store | any store |

No handler (None) is the same as `ConditionalPut`.

handler           the interface, the base class of the stores that handlers return, `ConditionalPut`, `RenameIfAbsent`
lock              `CommitLock`
external          `ExternalManifestHandler`
manifest_store    the interface of external manifest stores
slots             which names are claimed under which number
"""

from lance_core.commit.handlers.external import ExternalManifestHandler
from lance_core.commit.handlers.handler import CommitHandler, ConditionalPut, RenameIfAbsent
from lance_core.commit.handlers.lock import CommitLock
from lance_core.commit.handlers.manifest_store import ManifestRow, ManifestStore

__all__ = [
    "CommitHandler",
    "CommitLock",
    "ConditionalPut",
    "ExternalManifestHandler",
    "ManifestRow",
    "ManifestStore",
    "RenameIfAbsent",
]

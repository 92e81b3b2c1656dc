"""How a version is claimed: what gives a store its put-if-absent.

Every commit claims its slot by `ObjectStore.put_if_absent` on a canonical manifest name. A commit handler lays that
verb over a store, by means of the store's own or of something beside it:

| handler | means | for |
|---|---|---|
| `ConditionalPut` | the store's own `put_if_absent` | local files (by a link), memory, S3, Azure, Google |
| `RenameIfAbsent` | `rename_if_absent` of a staged file | stores whose rename is exclusive and whose put is not |
| `CommitLock` | a lock that the caller brings | any store |
| `ExternalManifestHandler` | rows of an external manifest store | any store |

No handler (None) is the store's own, as `ConditionalPut`.
"""

from lance_core.commit.handlers.external import ExternalManifestHandler
from lance_core.commit.handlers.handler import CommitHandler, ConditionalPut
from lance_core.commit.handlers.lock import CommitLock
from lance_core.commit.handlers.manifest_store import ManifestRow, ManifestStore
from lance_core.commit.handlers.rename import RenameIfAbsent

__all__ = [
    "CommitHandler",
    "CommitLock",
    "ConditionalPut",
    "ExternalManifestHandler",
    "ManifestRow",
    "ManifestStore",
    "RenameIfAbsent",
]

"""Transaction engine for the Lance table format: tables only, without catalogs, HTTP or SQL.

storage/        object stores: local files, memory, S3, Azure, Google
format/         manifest files, file names, deletion files, reference files; pure
transaction/    operations, conflict rules, rebase, and building the next manifest; pure
versions        finds, lists and reads the committed versions of a table or branch
table_files     reads manifests of a table or branch, reads and writes its deletion files
stated_files    compares files with what a transaction says of them
data            encodes and decodes rows through pylance
commit/         commits a transaction to one table or branch
tables/         tables as users see them: open, history, branches, tags, clones
compaction/     prepares transactions that rewrite fragments into fewer, larger ones
cleanup/        which files of a table no version needs
proto/          the generated messages of the format
errors          all exceptions of this package
amounts         sizes as texts
byte_ranges     ranges of bytes that a request asks for, and conditions on them
own_machine     which addresses are of this machine, and which URLs others cannot read
hidden_credentials  texts without what addresses in them open
lazy_names      names of a package that are imported when they are first used

A package imports only packages above it in this list, and `errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lance_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lance_core.commit.handlers import CommitLock, ConditionalPut, ExternalManifestHandler, RenameIfAbsent
    from lance_core.commit.loop import Committed
    from lance_core.commit.uri import commit_transaction
    from lance_core.compaction import CompactionOptions

__all__ = [
    "CommitLock",
    "Committed",
    "CompactionOptions",
    "ConditionalPut",
    "ExternalManifestHandler",
    "RenameIfAbsent",
    "commit_transaction",
]

_HOMES: Final = {
    "CommitLock": "lance_core.commit.handlers",
    "ConditionalPut": "lance_core.commit.handlers",
    "ExternalManifestHandler": "lance_core.commit.handlers",
    "RenameIfAbsent": "lance_core.commit.handlers",
    "Committed": "lance_core.commit.loop",
    "commit_transaction": "lance_core.commit.uri",
    "CompactionOptions": "lance_core.compaction",
}

# Each is imported when it is first used: pylance takes longer than all other imports together.
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

"""Everything that `lance_core` raises, grouped by what a handler would do.

LanceCoreError
├── StorageError
│   ├── NotFound              the key holds nothing
│   ├── AlreadyExists         a put-if-absent found the key taken; nothing was written
│   ├── PreconditionFailed    a conditional replace found another content; nothing was written
│   ├── ManifestNotSynchronized   committed in the external manifest store, and not to be had from the object store
│   ├── CommitLockError       the lock of a version could not be taken; nothing was written
│   └── OutcomeUnknown        the store's answer was lost: the write may have happened, now or later
├── CorruptFile               bytes that are not what their name says; nothing may be built on them
├── UnsupportedFeature        well-formed, but outside what we read or write
├── InvalidTransaction        the transaction contradicts itself or the table it is for
├── ReferenceNotFound         no such version, tag or branch
├── ReferenceInUse            a branch that cannot be removed, because others stand on it
├── CommitConflict
│   ├── RetryableConflict     redo the operation on the newer version
│   └── IncompatibleTransaction   redoing it would not help: the other commit removed its ground
└── CommitUnknown             the commit may or may not have happened; clean up nothing
"""

from __future__ import annotations


class LanceCoreError(Exception):
    """Root of the tree."""


class StorageError(LanceCoreError):
    """A store refused, or could not answer."""


class NotFound(StorageError):
    """The key holds nothing."""


class AlreadyExists(StorageError):
    """A put-if-absent found the key taken. Nothing was written."""


class PreconditionFailed(StorageError):
    """A conditional replace found another content than expected. Nothing was written."""


class ManifestNotSynchronized(StorageError):
    """A version is committed in the external manifest store, and could not be brought into the object store.

    It is not read from elsewhere: a copy of the table would lack it.
    """


class CommitLockError(StorageError):
    """The lock of a version could not be taken. Nothing was written."""


class OutcomeUnknown(StorageError):
    """The answer to a write was lost: it may have been applied, or may still be."""


class CorruptFile(LanceCoreError):
    """The bytes are not what their name or frame says."""


class UnsupportedFeature(LanceCoreError):
    """Well-formed, but it uses something that this engine does not read or write."""


class InvalidTransaction(LanceCoreError):
    """The transaction contradicts itself or the table that it is for."""


class ReferenceNotFound(LanceCoreError):
    """No such version, tag or branch."""


class ReferenceInUse(LanceCoreError):
    """A branch that other branches or tags stand on, or that somebody keeps writing to, cannot be removed."""


class CommitConflict(LanceCoreError):
    """A concurrent commit stands in the way.

    `version` is the concurrent version, `reason` says what clashed, in words.
    """

    def __init__(self, version: int, reason: str) -> None:
        super().__init__(f"conflict with version {version}: {reason}")
        self.version = version
        self.reason = reason


class RetryableConflict(CommitConflict):
    """Redo the operation on the newer version and commit again."""


class IncompatibleTransaction(CommitConflict):
    """Redoing the operation as it is would not help."""


class CommitUnknown(LanceCoreError):
    """The commit may or may not have happened. Nothing may be cleaned up."""

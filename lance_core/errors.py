"""All exceptions of `lance_core`, grouped by what a handler does.

LanceCoreError
├── StorageError                  the store refused the request or did not answer
│   ├── NotFound                  the key holds nothing
│   ├── AlreadyExists             a put-if-absent found the key taken; nothing was written
│   ├── PreconditionFailed        a conditional write found other content; nothing was written
│   ├── ManifestNotSynchronized   committed in the external manifest store, but not in the object store yet
│   ├── CommitLockError           the lock of a version could not be taken; nothing was written
│   └── StorageUnknown            the answer was lost: the write may have been applied, or may still be
├── CorruptFile                   the bytes are not what their name says; nothing may be built on them
│   └── OversizedFile             larger than a file of its kind can be; it was not read
├── UnsupportedFeature            well-formed, but not supported by this engine
├── InvalidTransaction            the transaction contradicts itself or its table
├── ReferenceNotFound             no such version, tag or branch
├── ReferenceInUse                the branch is needed by other branches or tags
├── TransactionConflict
│   ├── RetryableTransaction      redo the operation on the newer version
│   └── IncompatibleTransaction   conflicts irreconcilably; redoing the operation does not help
└── TransactionUnknown            the commit may or may not have happened; clean up nothing

`OutcomeUnknown` is the family of all exceptions of an unknown outcome, those of the catalog and its clients among
them. Their names, and those of results that say the same, end in `Unknown`.
"""

from __future__ import annotations

from typing import Final


class OutcomeUnknown(Exception):
    """The change may have been made, or may still be. Clean up nothing; repeat it unchanged, or look.

    Every exception with this meaning is one of this family, beside the class that says where it comes from.

    Attributes:
        outcome: "unknown", as an error answer of a server says it.
    """

    outcome: Final = "unknown"


class LanceCoreError(Exception):
    """Base class of all exceptions of this package."""


class StorageError(LanceCoreError):
    """The store refused the request or did not answer."""


class NotFound(StorageError):
    """The key holds nothing."""


class AlreadyExists(StorageError):
    """A put-if-absent found the key taken. Nothing was written."""


class PreconditionFailed(StorageError):
    """A conditional write found other content than expected. Nothing was written."""


class ManifestNotSynchronized(StorageError):
    """A version is committed in the external manifest store, but could not be copied to its name in the object store.

    Such a version is not read, because a copy of the table's directory would lack it.
    """


class CommitLockError(StorageError):
    """The lock of a version could not be taken. Nothing was written."""


class StorageUnknown(StorageError, OutcomeUnknown):
    """The answer to a write was lost: it may have been applied, or may still be."""


class CorruptFile(LanceCoreError):
    """The bytes are not what their name or frame says. Nothing may be built on them.

    Attributes:
        key: The key of the file, relative to the root of its store; None if the error does not know it.
        reason: What is wrong with it, without a name of the store or of a directory of the machine.
    """

    def __init__(self, message: str, *, key: str | None = None, reason: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.reason = message if reason is None else reason


class OversizedFile(CorruptFile):
    """A file is larger than a file of its kind can be, or than the caller accepts. It was not read.

    Attributes:
        size: Its size in bytes.
        bound: The largest size that is accepted.
    """

    def __init__(self, uri: str, key: str, size: int, bound: int) -> None:
        reason = f"expected at most {bound} bytes, found {size}"
        super().__init__(f"{uri}/{key}: {reason}", key=key, reason=reason)
        self.size = size
        self.bound = bound

    def __reduce__(self) -> tuple[type[OversizedFile], tuple[str, str, int, int]]:
        uri = str(self).removesuffix(f"/{self.key}: {self.reason}")
        return type(self), (uri, self.key or "", self.size, self.bound)


class UnsupportedFeature(LanceCoreError):
    """The table or file is well-formed, but uses a feature that this engine does not support."""


class InvalidTransaction(LanceCoreError):
    """The transaction contradicts itself or its table."""


class ReferenceNotFound(LanceCoreError):
    """No such version, tag or branch."""


class ReferenceInUse(LanceCoreError):
    """A branch cannot be removed: other branches or tags need it, or a writer keeps committing to it."""


class TransactionConflict(LanceCoreError):
    """A concurrent commit conflicts.

    Attributes:
        version: The concurrent version.
        reason: What conflicts, in words.
        committed: The operation that made the concurrent version, such as `append`; None if it is unknown.
    """

    def __init__(self, version: int, reason: str, committed: str | None = None) -> None:
        super().__init__(f"conflict with version {version}: {reason}")
        self.version = version
        self.reason = reason
        self.committed = committed


class RetryableTransaction(TransactionConflict):
    """Redo the operation on the newer version and commit again."""


class IncompatibleTransaction(TransactionConflict):
    """The transaction conflicts irreconcilably. Redoing the same operation does not help."""


class TransactionUnknown(LanceCoreError, OutcomeUnknown):
    """The commit may or may not have happened. Nothing may be cleaned up."""


def system_reason(error: BaseException | None) -> str | None:
    """The operating system's text of an error that it caused: "No space left on device"; None for other errors.

    It names no file, and may be sent to clients.
    """
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        error = error.__cause__
    return None

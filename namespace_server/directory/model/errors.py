"""Errors of the catalog: the published namespace errors, with the details that a client needs to act on them.

Codes and statuses are those of the Lance namespace spec (0-23). Clients in the same process know some kinds by words of
the text (lancedb: "Table not found", "Namespace not found", "Namespace not empty"): these stand at its beginning.

Some kinds carry more than a message:

    ConcurrentModificationError (14)
    └── BatchConflict           `failures`: which operation met which version, and what to do
    ServiceUnavailableError (17)
    ├── RequestUnknown          the change may or may not be made, or may be made later; look, or repeat it as it is
    │   └── BatchUnknown        ... of a batch; `detail` is its uuid
    ├── CatalogBusy             nothing was done: every try was lost to other writers; repeat the batch
    └── RootBeingRestored       there is no catalog before the restoration of a backup is complete
    PermissionDeniedError (15)
    └── AccessDenied            `failures`: which operation needs which privilege on what
    LanceNamespaceError
    └── HistoryGone (11)        what a consumer of events has not seen is not kept any more: it takes a baseline
    InternalError (18)
    └── CatalogDamaged          `damaged`: the file of the catalog that is damaged or missing, and has to be restored
    UnsupportedOperationError (0)
    ├── CatalogTooNew           the catalog has a feature that this release must not read or write
    └── TablesWithoutCatalog    the root has tables and no catalog: they are adopted first
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from reprlib import Repr
from typing import Literal

from lance_namespace.errors import (
    ConcurrentModificationError,
    ErrorCode,
    InternalError,
    LanceNamespaceError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)

from lance_core.amounts import counted
from lance_core.errors import (
    CorruptFile,
    LanceCoreError,
    OutcomeUnknown,
    StorageError,
    UnsupportedFeature,
    system_reason,
)
from lance_core.hidden_credentials import without_credentials
from namespace_server.attempts import Authorization, with_authorizations
from namespace_server.directory.model.object_ids import ChainKey, ObjectId, join
from namespace_server.outcomes import NOTHING_DONE, with_nothing_done

logger = logging.getLogger(__name__)

ConflictKind = Literal["retryable", "incompatible"]

_SHOWN = 80
_DIGITS = 40
_NAMED = 3


class _Bounded(Repr):
    """Renders a value of any size, depth and type in few characters."""

    def repr_str(self, x: str, level: int) -> str:
        return super().repr_str(without_credentials(x, is_value=True), level)

    def repr_int(self, x: int, level: int) -> str:  # noqa: ARG002
        return repr(x) if x.bit_length() < 4 * _DIGITS else f"an integer of {x.bit_length()} bits"


_BOUNDED = _Bounded()
_BOUNDED.maxstring = _BOUNDED.maxother = _SHOWN
_BOUNDED.maxlist = _BOUNDED.maxtuple = _BOUNDED.maxdict = _BOUNDED.maxset = 10


def shown(value: object) -> str:
    """A value from a request as it stands in an error text: at most 80 characters, and no credentials of an address."""
    text = "nothing" if value is None else _BOUNDED.repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


@dataclass(frozen=True, slots=True)
class ConflictDetail:
    """One operation that could not be carried out, and why.

    `actual` is the head version found, `winner_transaction_id` the transaction that made it. `kind`: "retryable" if
    the operation can succeed when it is redone on the newer version, "incompatible" if redoing it does not help.
    """

    operation_index: int
    id: tuple[str, ...]
    branch: str | None
    expected: int | None
    actual: int | None
    winner_transaction_id: str | None
    hint: str
    kind: ConflictKind = "retryable"

    def as_json(self) -> dict[str, object]:
        """The wire form: an entry of `failures` in a 409 body."""
        return {**asdict(self), "id": list(self.id)}


def version_not_kept(table_id: ObjectId, location: str, branch: str | None, version: int) -> TableVersionNotFoundError:
    """The error for an intent to read a version that is not there."""
    place = "" if branch is None else f" of branch {branch}"
    return TableVersionNotFoundError(f"table {join(table_id)} at {location} has no version {version}{place} to be kept")


def table_not_found(table_id: ObjectId) -> TableNotFoundError:
    """The error (4) for a table that is not in the catalog."""
    return TableNotFoundError(f"Table not found: {join(table_id)} does not exist")


def clone_source_not_found() -> TableNotFoundError:
    """The error (4) of a clone whose source is no table of the catalog, or one that its caller may not see."""
    return TableNotFoundError("source_location: expected that of a table of this catalog that may be read, found none")


def table_exists(table_id: ObjectId) -> TableAlreadyExistsError:
    """The error (5) for a name that a table has."""
    return TableAlreadyExistsError(f"Table already exists: {join(table_id)}")


def namespace_not_found(namespace_id: ObjectId) -> NamespaceNotFoundError:
    """The error (1) for a namespace that is not in the catalog."""
    return NamespaceNotFoundError(f"Namespace not found: {join(namespace_id)} does not exist")


def parent_not_found(object_id: ObjectId) -> NamespaceNotFoundError:
    """The error (1) for an object whose namespace is not in the catalog."""
    return NamespaceNotFoundError(
        f"Namespace not found: namespace {join(object_id[:-1])}, the parent of {join(object_id)}, does not exist"
    )


def namespace_exists(namespace_id: ObjectId) -> NamespaceAlreadyExistsError:
    """The error (2) for a name that a namespace has."""
    return NamespaceAlreadyExistsError(f"Namespace already exists: {join(namespace_id) or 'the root'}")


class BatchConflict(ConcurrentModificationError):
    """A concurrent change stands in the way, and it can be described at this moment (P8).

    `operation` is the one that was refused, `committed` the one that it met, `unknown` where it is not known.
    """

    def __init__(self, message: str, failure: ConflictDetail, operation: str, committed: str | None = None) -> None:
        super().__init__(message)
        self.failures = [failure.as_json()]
        self.operation = operation
        self.committed = committed or "unknown"


class AccessDenied(PermissionDeniedError):
    """The subject of a batch may not do some of its operations. `failures` has each privilege that is missing."""

    outcome = NOTHING_DONE

    def __init__(self, denials: Sequence[Authorization]) -> None:
        named = [f"{each.privilege} on {_object(each)}" for each in denials[:_NAMED]]
        more = f" and {len(denials) - _NAMED} more" if len(denials) > _NAMED else ""
        super().__init__(f"permission denied, nothing was done: expected {', '.join(named)}{more}")
        self.failures = [
            {
                "operation_index": each.operation_index,
                "id": list(each.object),
                "privilege": each.privilege,
                "hint": each.reason or f"it needs {each.privilege} on {_object(each)}",
                "kind": "incompatible",
            }
            for each in denials
        ]
        with_authorizations(self, denials)


def _object(authorization: Authorization) -> str:
    return f"{authorization.kind} {join(authorization.object)}" if authorization.object else "the catalog"


class HistoryGone(LanceNamespaceError):
    """The catalog versions that follow `since` are not all kept any more (410): a consumer would miss some.

    `oldest` is the lowest one that is kept. The code is that of other versions that are not kept.
    """

    code = ErrorCode.TABLE_VERSION_NOT_FOUND
    status = 410

    def __init__(self, since: int, oldest: int) -> None:
        super().__init__(
            f"events since catalog version {since}: expected {oldest - 1} or later, versions before {oldest} are no "
            "longer kept; take a baseline: pin a catalog version (POST /v1/catalog/pins), read the tables as of it "
            "(GET /v1/catalog/versions/{version}), go on with the events since that version, and remove the pin"
        )
        self.oldest = oldest


class RequestUnknown(ServiceUnavailableError, OutcomeUnknown):
    """A change may have been made, or may be made later. Nothing was cleaned up; it may be repeated unchanged."""


class BatchUnknown(RequestUnknown):
    """The flip of a batch may have been written, or may be written later (F1).

    `reason` is for the log alone: it may have the text of a store's error, which may name directories or credentials.
    """

    def __init__(self, batch_uuid: str, reason: str) -> None:
        super().__init__(f"batch {batch_uuid}: the outcome of its commit is unknown; repeat it unchanged")
        self.detail = batch_uuid
        self.reason = reason


class BatchTooOld(ServiceUnavailableError):
    """The batch waited for so long that its key may have been used, and forgotten, meanwhile. Nothing was done (P1)."""

    outcome = NOTHING_DONE

    def __init__(self, batch_uuid: str, seconds: float) -> None:
        super().__init__(
            f"batch {batch_uuid}: expected to commit it within {seconds:g} s, after which it may have been committed "
            "under its idempotency key and forgotten; nothing was done, repeat it unchanged"
        )
        self.detail = batch_uuid


class CatalogBusy(ServiceUnavailableError):
    """Every try was lost to other writers (F5): nothing was done. That is no verdict about the batch.

    `around` are the chains above whose heads other writers committed around the catalog until the last try. If it was
    `adopting` these, alone, storage did not tell its outcome: it was the last one, however many were left.
    """

    outcome = NOTHING_DONE

    def __init__(
        self, batch_uuid: str, tries: int, around: Collection[ChainKey] = (), *, adopting: bool = False
    ) -> None:
        tables = ", ".join(sorted({join(table_id) for table_id, _ in around}))
        reason = f"other writers won {tries} times in a row"
        if adopting:
            reason = f"at try {tries} storage did not tell whether it adopted what others commit to {tables} by path"
        elif tables:
            reason = f"{reason}: to {tables} they commit around the catalog"
        super().__init__(f"batch {batch_uuid}: nothing was done: {reason}; repeat it unchanged")
        self.detail = batch_uuid
        self.tries = tries
        self.around = around
        self.adopting = adopting

    def of(self, batch_uuid: str) -> CatalogBusy:
        """The same answer to another batch."""
        return CatalogBusy(batch_uuid, self.tries, self.around, adopting=self.adopting)


class CommittedElsewhere(ServiceUnavailableError):
    """Nothing was done: another server is to commit the batch, which may be handed to it (`Batch.movable`)."""

    outcome = NOTHING_DONE

    def __init__(self, batch_uuid: str) -> None:
        super().__init__(f"batch {batch_uuid}: another server commits at the moment; nothing was done, repeat it")
        self.detail = batch_uuid


class CatalogDamaged(InternalError, CorruptFile):
    """A file of the catalog's own dataset is missing, or is not what its name says. The catalog cannot be read.

    `damaged` is the key of the file, relative to the root. The text names no directory of the machine: it goes to
    clients. The code is 18 and not 17: to repeat the request does not help before the file is restored. Then the next
    request works.
    """

    def __init__(self, key: str, expected: str, found: str, *, place: str = "") -> None:
        super().__init__(
            f"{place}the catalog is damaged: {key}: expected {expected}, found {found}; restore this file of the "
            "catalog's root from a backup, a restart is not needed"
        )
        self.damaged = key
        self.expected = expected
        self.found = found

    def at(self, place: str) -> CatalogDamaged:
        """The same error, with the request or the outcome of a change in front of its text."""
        return CatalogDamaged(self.damaged, self.expected, self.found, place=place)


class RootBeingRestored(ServiceUnavailableError, StorageError):
    """A backup is being restored at the root: there is no catalog before that is complete, and none may be made."""

    outcome = NOTHING_DONE

    def __init__(self, key: str) -> None:
        super().__init__(
            f"a backup is being restored at this root ({key}): repeat the request later; if no restoration is running, "
            "complete it with `lance-namespace restore`"
        )


class TablesWithoutCatalog(UnsupportedOperationError, LanceCoreError):
    """There are tables at a root that has no catalog: one that began beside them would not hold them."""

    def __init__(self, locations: Sequence[str]) -> None:
        named = ", ".join(map(shown, locations[:_NAMED])) + (", …" if len(locations) > _NAMED else "")
        super().__init__(
            f"nothing was done: expected a catalog or an empty root, found {counted(len(locations), 'table')} without "
            f"one ({named}), served for reading; `lance-namespace adopt` makes a catalog of them"
        )


class CatalogTooNew(UnsupportedOperationError, UnsupportedFeature):
    """A version of the catalog is well-formed, and has a feature that this release must not read or write."""


def nothing_done(batch_uuid: str, error: Exception) -> LanceNamespaceError:
    """The error for a batch after an exception before its commit step: it is not committed, and will not be.

    The texts of the store's errors stay in the log: they may name directories or credentials.
    """
    place = f"batch {batch_uuid}: nothing was done: "
    answer: LanceNamespaceError
    if isinstance(error, CorruptFile):
        answer = file_damaged(error, place)
    elif isinstance(error, CatalogTooNew):
        answer = CatalogTooNew(f"{place}{error}")
    elif isinstance(error, RootBeingRestored | TablesWithoutCatalog):
        answer = error
    elif isinstance(error, LanceCoreError):
        reason = system_reason(error)
        why = f" ({type(error).__name__})" if reason is None else f": {reason}"
        answer = ServiceUnavailableError(f"{place}the catalog's storage cannot be used{why}")
    else:
        answer = InternalError(f"{place}it cannot be planned ({type(error).__name__})")
    return with_nothing_done(answer)


def file_damaged(error: CorruptFile, place: str = "") -> InternalError:
    """The answer (18) where a file is not what its name says. It names the file by its key, not the root.

    `place` stands in front: the request, or the outcome of a change.
    """
    if isinstance(error, CatalogDamaged):
        return error.at(place)
    named = "a file of the catalog" if error.key is None else f"the file {error.key}"
    return InternalError(f"{place}{named} is damaged: {error.reason}")


def unreadable(table_id: ObjectId, error: StorageError) -> ServiceUnavailableError:
    """The verdict (17) on an operation whose files cannot be read before its batch is planned: nothing was done.

    The text of the store's error goes to the log, as in `nothing_done`.
    """
    logger.warning("table %s: storage cannot be read: %s", join(table_id), error)
    reason = system_reason(error) or type(error).__name__
    return with_nothing_done(
        ServiceUnavailableError(f"table {join(table_id)}: nothing was done: storage cannot be read: {reason}")
    )

"""Verification of the files that transactions add: in the table, there, and what the transaction says of them (S1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lance_namespace.errors import InvalidInputError, LanceNamespaceError

from lance_core.commit.durability import added_files
from lance_core.errors import InvalidTransaction, NotFound, StorageError
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base
from lance_core.proto import lance_table_pb2 as pb
from lance_core.stated_files import check_stated_files
from lance_core.storage.keys import is_key
from lance_core.storage.port import ObjectStore
from lance_core.transaction.base_files import new_bases
from lance_core.transaction.reachable import StatedFiles
from namespace_server.directory.model.errors import unreadable
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import CommitTransaction, Operation
from namespace_server.directory.planning.plan_builder import AddedFiles, Finding, StagedManifest
from namespace_server.directory.verifying.allowed_locations import AllowedLocations


class AddedFileChecks:
    """Looks at the files that transactions add. `allowed` says where base paths may lead.

    In a local root all is looked at when a batch is verified. In a bucket the files are looked at beside staging, which
    takes no further round trip; the ends of data files would take one more, and are read with `contents` only.
    """

    def __init__(self, store: ObjectStore, allowed: AllowedLocations, *, contents: bool = False) -> None:
        self._store = store
        self._allowed = allowed
        self._contents = contents or store.local

    def verify(
        self, operation: CommitTransaction, location: str, head: ManifestFile | None
    ) -> tuple[Finding, Iterable[str]]:
        """The files that a transaction adds; in a bucket they are looked at later (`check_remaining`)."""
        transaction = operation.transaction
        for reason in self._allowed.refused_bases(new_bases(transaction)).values():
            raise InvalidInputError(f"transaction {transaction.uuid} on table {join(operation.id)}: base path {reason}")
        base = branch_base(location, operation.branch)
        added = added_files(self._store, base, transaction, head)
        schema = tuple(fields_of(transaction) or (() if head is None else head.outline.fields))
        dates = self.check(operation, added, schema)
        return AddedFiles(location, added, schema, dates is not None, dates or {}), added

    def check(
        self, operation: Operation, added: StatedFiles, schema: Iterable[pb.Field], *, now: bool = False
    ) -> Mapping[str, int] | None:
        """The files that a transaction adds lie in the table.

        Returns when they were written if they were looked at: in a local root, or `now`; else None.

        Raises InvalidInputError (13) and ServiceUnavailableError (17).
        """
        outside = next((key for key in added if not is_key(key)), None)
        if outside is not None:
            raise InvalidInputError(
                f"table {join(operation.id)}: {outside!r}, which its transaction adds, is no file of the table"
            )
        for reason in self._allowed.links_outside(added).values():
            raise InvalidInputError(f"table {join(operation.id)}: {reason}; its transaction adds files there")
        if not (now or self._store.local):
            return None
        return self._look(operation, added, schema)

    def _look(self, operation: Operation, files: StatedFiles, schema: Iterable[pb.Field]) -> Mapping[str, int]:
        try:
            return check_stated_files(self._store, files, contents=self._contents, schema=schema)
        except InvalidTransaction as error:
            raise InvalidInputError(
                f"table {join(operation.id)}: {error}; its transaction adds it, stage again"
            ) from error
        except NotFound as error:
            raise InvalidInputError(
                f"table {join(operation.id)}: the file {error}, which its transaction adds, is not there; stage again"
            ) from error
        except StorageError as error:
            raise unreadable(operation.id, error) from error

    def check_remaining(self, operation: Operation, finding: AddedFiles | StagedManifest) -> Finding:
        """The finding after storage was asked for the files; many requests, one round trip.

        A transaction that we build must not name files that are not there: of a table that was dropped and made again
        since, they would lie at the other location (N1).
        """
        try:
            dates = self._look(operation, finding.files, finding.schema)
        except LanceNamespaceError as error:
            return error
        return replace(finding, seen=True, dates={**finding.dates, **dates})


def fields_of(transaction: pb.Transaction) -> Iterable[pb.Field]:
    """The schema that a transaction gives the table; empty if it keeps the one that there is."""
    match transaction.WhichOneof("operation"):
        case "overwrite":
            return transaction.overwrite.schema
        case "merge":
            return transaction.merge.schema
    return ()

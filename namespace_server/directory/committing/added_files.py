"""Verification of the files that transactions add: they lie in the table, and they are there (S1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_namespace.errors import InvalidInputError, LanceNamespaceError, ServiceUnavailableError

from lance_core.commit.durability import added_files
from lance_core.errors import NotFound, StorageError
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base
from lance_core.storage.keys import is_key
from lance_core.storage.port import ObjectStore
from namespace_server.directory.committing.allowed_locations import AllowedLocations, new_bases
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import CommitTransaction, Operation
from namespace_server.directory.planning.plan_builder import AddedFiles, Finding


class AddedFileChecks:
    """Looks for the files that transactions add. `allowed` says where base paths may lead."""

    def __init__(self, store: ObjectStore, allowed: AllowedLocations) -> None:
        self._store = store
        self._allowed = allowed

    def look(
        self, operation: CommitTransaction, location: str, head: ManifestFile | None
    ) -> tuple[Finding, Sequence[str]]:
        """The files that a transaction adds; on remote stores they are looked for later (`look_later`)."""
        transaction = operation.transaction
        for reason in self._allowed.refused_bases(new_bases(transaction)).values():
            raise InvalidInputError(f"transaction {transaction.uuid} on table {join(operation.id)}: base path {reason}")
        base = branch_base(location, operation.branch)
        added = added_files(self._store, base, transaction, head)
        self.check(operation, added, sure=self._store.local)
        return AddedFiles(location, tuple(added), seen=self._store.local), added

    def check(self, operation: Operation, added: Sequence[str], *, sure: bool) -> None:
        """The files that a transaction adds lie in the table; with `sure` they must exist."""
        outside = next((key for key in added if not is_key(key)), None)
        if outside is not None:
            raise InvalidInputError(
                f"table {join(operation.id)}: {outside!r}, which its transaction adds, is no file of the table"
            )
        missing = self._missing(operation, added) if sure else None
        if missing is not None:
            raise missing

    def _missing(self, operation: Operation, keys: Sequence[str]) -> LanceNamespaceError | None:
        try:
            self._store.require(keys)
        except NotFound as error:
            return InvalidInputError(
                f"table {join(operation.id)}: the file {error}, which its transaction adds, is not there; stage again"
            )
        except StorageError as error:
            return ServiceUnavailableError(f"table {join(operation.id)}: storage cannot be read: {error}")
        return None

    def look_later(self, operation: Operation, finding: AddedFiles) -> Finding:
        """The final form of a finding that storage was not asked about yet; many requests, one round trip.

        A transaction that we build must not name files that are not there: of a table that was dropped and made again
        since, they would lie at the other location (N1).
        """
        return self._missing(operation, finding.keys) or replace(finding, seen=True)

"""Verification of references: what names or reads what a batch deletes, and whether a new branch's name is vacant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lance_namespace.errors import InvalidInputError, TableBranchAlreadyExistsError

from lance_core.errors import NotFound
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import MAIN_BRANCH, branch_base
from lance_core.format.refs import branch_path, check_branch_name
from lance_core.storage.port import ObjectStore
from lance_core.tables.branches import Branches, find_children
from lance_core.tables.tags import Tags
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import (
    CommitTransaction,
    CreateBranch,
    DeleteBranch,
    DeleteTableVersions,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import TableReferences
from namespace_server.directory.planning.references import reads_below


class ReferenceChecks:
    """Reads the reference files of tables, and manifests where these show which chains read a branch.

    `known` gives the manifest of a head if it is at hand, `load` reads that of a row.
    """

    def __init__(
        self,
        store: ObjectStore,
        known: Callable[[VersionEntry], ManifestFile | None],
        load: Callable[[VersionEntry], ManifestFile],
    ) -> None:
        self._store = store
        self._known = known
        self._load = load

    def references(self, operation: DeleteBranch | DeleteTableVersions, location: str) -> TableReferences:
        """The tags of a table, and the children of the branch that is to be deleted. Two listings."""
        tags = Tags(self._store, location).list()
        children: Sequence[str] = ()
        if isinstance(operation, DeleteBranch):
            children = find_children(operation.branch, Branches(self._store, location).list())
        named = tuple(
            (name, None if tag.branch == MAIN_BRANCH else tag.branch, tag.version) for name, tag in tags.items()
        )
        return TableReferences(location, named, tuple(children))

    def needs_of_branch(self, operation: DeleteBranch, location: str, snapshot: CatalogSnapshot) -> TableReferences:
        """The references and manifests that name or read a branch; reads those of all other chains of the table."""
        found = self.references(operation, location)
        base = branch_base(location, operation.branch)
        others = [
            entry
            for branch in snapshot.chains(operation.id)
            if branch != operation.branch
            for entry in snapshot.versions(operation.id, branch)
        ]
        readers = self._store.map(lambda entry: self._reads_below(entry, base), others)
        return replace(
            found,
            readers=frozenset(name for name in readers if name is not None),
            checked=frozenset(entry.sha256 for entry in others),
        )

    def _reads_below(self, entry: VersionEntry, base: str) -> str | None:
        """The name of the branch of a version, if it has files below a root; None for one that is gone (M5)."""
        try:
            file = self._known(entry) or self._load(entry)
        except NotFound:
            return None
        return (entry.branch or "main") if reads_below(file, base) else None

    def check_place_of_branch(self, operation: CommitTransaction | CreateBranch, location: str, branch: str) -> None:
        """The name of a branch that a Clone begins is one that stock clients accept, and is not taken (P4)."""
        name = f"branch {branch} of table {join(operation.id)}"
        try:
            key = branch_path(location, check_branch_name(branch, new=True))
        except ValueError as error:
            raise InvalidInputError(f"{name}: {error}") from error
        try:
            self._store.head(key)
        except NotFound:
            return
        raise TableBranchAlreadyExistsError(f"{name} exists: {self._store.object_uri(key)}")

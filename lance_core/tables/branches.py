"""Branches of a table: each is a reference file below the table's root and a version chain of its own.

Creation has two steps: the reference file by put-if-absent, then the first version, a Clone. Of two concurrent
creators one succeeds, and files of the parent are protected from the clean-up of stock clients, which reads only the
reference files. A crash between the steps leaves a branch that cannot be opened; `create` completes it, and any client
can delete it. Stock clients take the steps in the other order. `create` also completes their partial branches, which
have a first version and no reference file, and which stock clients can neither create again nor delete.

Deletion goes in the reverse order: mark the reference file, remove the versions (the newest last), remove all other
files, remove the reference file. A deletion that was interrupted can be repeated.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_attempt

from lance_core.commit.copying import Origin
from lance_core.commit.loop import commit_transaction
from lance_core.errors import (
    AlreadyExists,
    IncompatibleTransaction,
    NotFound,
    PreconditionFailed,
    ReferenceInUse,
    ReferenceNotFound,
    StorageError,
)
from lance_core.format.naming import (
    VERSIONS_DIRECTORY,
    branch_base,
    join_key,
    parse_manifest_name,
    versions_directory,
)
from lance_core.format.refs import (
    BRANCHES_DIRECTORY,
    TAGS_DIRECTORY,
    BranchContents,
    branch_path,
    check_branch_name,
    decode_branch,
    decode_tag,
    encode_branch,
)
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.table_files import root_path
from lance_core.tables.ref_files import claim_ref, list_refs, read_ref
from lance_core.tables.references import FoundVersion, NamedReferences, Reference, was_removed
from lance_core.transaction.features import check_continuable
from lance_core.transaction.operations import Clone, encode_transaction
from lance_core.versions import ManifestLocation, list_versions, read_unless_removed, with_transaction

DELETING = "lance_core.deleting"
"""Metadata key of a branch whose deletion has begun. Stock clients preserve it."""

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Branches(NamedReferences[BranchContents]):
    """The branches of the table at the key `location`, except main."""

    _kind = "branch"
    _directory = BRANCHES_DIRECTORY

    def create(self, name: str, ref: Reference = None, *, metadata: Mapping[str, str] | None = None) -> BranchContents:
        """Create a branch at a version of the table. Its first version has the same number.

        Of concurrent callers one succeeds. A call that was interrupted, or whose outcome is unknown, may be repeated
        with the same arguments and completes the branch.

        Args:
            name: The name of the branch.
            ref: The version that the branch begins at.
            metadata: Metadata of the branch.

        Returns:
            The content of the reference file.

        Raises:
            ValueError: Stock clients refuse the name.
            ReferenceNotFound: The version does not exist, or it or its branch was removed meanwhile.
            AlreadyExists: There is a branch of that name.
            UnsupportedFeature: The version uses a feature that this engine does not write.
            StorageUnknown, TransactionUnknown: The store did not answer.
        """
        path = self._path(check_branch_name(name, new=True))
        forked = self._find(ref)
        check_continuable(forked.file.manifest)
        wanted = self._beginning(forked, metadata)
        versions = list_versions(self.store, branch_base(self.location, name))
        known = self._known(name)
        if known is not None:
            if versions or not _is_same_beginning(known, wanted):
                raise AlreadyExists(f"branch {name} at {self.store.object_uri(path)}: {_state(known, versions)}")
            self._clone(name, forked, known)
            return self.get(name)
        if versions:
            self._check_forming(name, wanted, versions)
        claim_ref(self.store, path, f"branch {name}", encode_branch(wanted))
        try:
            if versions:
                self._check_parent(name, forked)
            else:
                self._clone(name, forked, wanted)
        except (AlreadyExists, ReferenceNotFound):
            self.store.delete(path)
            raise
        return wanted

    def delete(self, name: str) -> None:
        """Delete a branch and its files. There must be no writer on the branch.

        Completes a deletion that was interrupted, and removes the remains of a branch without a reference file. Files
        of nested branches, whose names begin with this name and '/', are kept.

        Raises:
            ReferenceNotFound: There is no such branch.
            ReferenceInUse: Other branches begin at it, tags name its versions, or a writer keeps committing to it.
        """
        path = self._path(check_branch_name(name))
        base = branch_base(self.location, name)
        if self._known(name) is None and next(self.store.list(base), None) is None:
            raise ReferenceNotFound(f"branch {name} at {self.store.object_uri(path)}: expected a file, found none")
        self._check_unused(name)
        before = self._mark(name, path)
        try:
            self._check_unused(name)
        except ReferenceInUse:
            with suppress(StorageError):  # if this fails the branch stays marked, and no branch can begin at it
                self._unmark(path, before)
            raise
        self._remove_files(name, base)
        self.store.delete(path)

    def _path(self, name: str) -> str:
        return branch_path(self.location, name)

    @staticmethod
    def _decode(data: bytes) -> BranchContents:
        return decode_branch(data)

    def _known(self, name: str) -> BranchContents | None:
        try:
            return self.get(name)
        except ReferenceNotFound:
            return None

    def _beginning(self, forked: FoundVersion, metadata: Mapping[str, str] | None) -> BranchContents:
        ancestors = () if forked.branch is None else self.get(forked.branch).identifier or ()
        return BranchContents(
            parent_version=forked.file.version,
            manifest_size=forked.file.size,
            parent_branch=forked.branch,
            identifier=(*ancestors, (forked.file.version, uuid.uuid4().hex)),
            created_at=self.clock() // 1_000_000_000,
            metadata=dict(metadata or {}),
        )

    def _clone(self, name: str, forked: FoundVersion, contents: BranchContents) -> None:
        """Commit the first version of a branch whose file is written. Every caller commits the same Clone."""
        self._check_parent(name, forked)
        assert contents.identifier
        origin = Origin(self.store, branch_base(self.location, forked.branch), forked.file)
        operation = Clone(root_path(self.store, origin.base), forked.file.version, forked.branch, name)
        transaction = encode_transaction(
            operation, read_version=forked.file.version, uuid=str(uuid.UUID(contents.identifier[-1][1]))
        )
        try:
            done = commit_transaction(self.store, self.location, transaction, branch=name, origin=origin)
        except IncompatibleTransaction as error:
            versions = list_versions(self.store, branch_base(self.location, name))
            if not self._begins(contents, self._clones(name, versions)):
                raise AlreadyExists(f"branch {name}: another client created it meanwhile: {error}") from error
            return  # a stock client committed a Clone of the same version
        for other in list_versions(self.store, branch_base(self.location, name)):
            if other.version != done.version and self._clone_at(name, other) is not None:
                self.store.delete(done.path)
                raise AlreadyExists(f"branch {name}: another client created it meanwhile, at version {other.version}")

    def _check_parent(self, name: str, forked: FoundVersion) -> None:
        """Raise `ReferenceNotFound` if the parent is being removed.

        Called after the reference file is written. A deletion of the parent looks for such files after it has marked
        the parent, so one of the two operations sees the other.
        """
        if forked.branch is not None and is_being_deleted(self.store, self.location, forked.branch):
            raise ReferenceNotFound(f"branch {name}: its parent {forked.branch} is being deleted")
        if was_removed(self.store, forked):
            raise ReferenceNotFound(f"branch {name}: version {forked.file.version} was removed meanwhile")

    def _check_forming(self, name: str, wanted: BranchContents, versions: Sequence[ManifestLocation]) -> None:
        """Raise `AlreadyExists` unless a branch without a reference file begins at the wanted version."""
        base = branch_base(self.location, name)
        clones = self._clones(name, versions)
        if not self._begins(wanted, clones):
            found = " and ".join(f"version {clone.ref_version} of {clone.ref_name or 'main'}" for clone in clones)
            raise AlreadyExists(
                f"branch {name}: {self.store.object_uri(base)} holds the remains of a branch"
                f"{found and f' of {found}'}; delete it first"
            )

    def _begins(self, wanted: BranchContents, clones: Sequence[pb.Transaction.Clone]) -> bool:
        """Whether these Clones are the one of the wanted branch. Stock clients that race for a name leave several."""
        beginning = (wanted.parent_branch, wanted.parent_version)
        return [(clone.ref_name or None, clone.ref_version) for clone in clones] == [beginning]

    def _clones(self, name: str, versions: Sequence[ManifestLocation]) -> Sequence[pb.Transaction.Clone]:
        found = self.store.map(lambda location: self._clone_at(name, location), versions)
        return [clone for clone in found if clone is not None]

    def _clone_at(self, name: str, location: ManifestLocation) -> pb.Transaction.Clone | None:
        """The Clone that made a version of the branch; None if another operation did, or the version was removed."""
        file = read_unless_removed(self.store, location)
        if file is None:
            return None
        transaction = with_transaction(self.store, branch_base(self.location, name), file).transaction
        if transaction is None or not transaction.HasField("clone") or transaction.clone.branch_name != name:
            return None
        return transaction.clone

    def _check_unused(self, name: str) -> None:
        children = find_children(name, self.list())
        if children:
            raise ReferenceInUse(f"branch {name}: expected no branch that begins at it, found {', '.join(children)}")
        tags = list_refs(self.store, join_key(self.location, TAGS_DIRECTORY), decode_tag)
        naming = sorted(tag for tag, contents in tags.items() if contents.branch == name)
        if naming:
            raise ReferenceInUse(f"branch {name}: expected no tag on it, found {', '.join(naming)}")

    def _mark(self, name: str, path: str) -> BranchContents | None:
        """Mark the reference file as being deleted; it is written if there is none. Returns the previous content."""

        def mark() -> BranchContents | None:
            known = self._known(name)
            if known is None:
                left = BranchContents(0, 0, created_at=self.clock() // 1_000_000_000, metadata={DELETING: "true"})
                claim_ref(self.store, path, f"branch {name}", encode_branch(left))
                return None
            if DELETING in known.metadata:
                return replace(known, metadata=_unmarked(known.metadata))
            self._replace(path, known, replace(known, metadata={**known.metadata, DELETING: "true"}))
            return known

        changed = retry_if_exception_type((AlreadyExists, PreconditionFailed, NotFound))
        try:
            return Retrying(stop=stop_after_attempt(_ATTEMPTS), retry=changed)(mark)
        except RetryError as error:
            raise StorageError(
                f"branch {name}: {self.store.object_uri(path)} changed during each of {_ATTEMPTS} attempts to mark it "
                "as being deleted"
            ) from error

    def _unmark(self, path: str, before: BranchContents | None) -> None:
        if before is None:
            self.store.delete(path)
        else:
            self._replace(path, replace(before, metadata={**before.metadata, DELETING: "true"}), before)

    def _replace(self, path: str, expected: BranchContents, contents: BranchContents) -> None:
        e_tag = self.store.head(path).e_tag
        if e_tag is None or decode_branch(self.store.get(path)) != expected:
            raise PreconditionFailed(f"{self.store.object_uri(path)}: changed since it was read")
        self.store.replace(path, encode_branch(contents), if_match=e_tag)

    def _remove_files(self, name: str, base: str) -> None:
        """Remove the versions, the newest last, then all other files. Repeats for files that a late writer added."""
        for _ in range(_ATTEMPTS):
            keys = self._own_files(name, base)
            if not keys:
                return
            directory = versions_directory(base) + "/"
            numbers = {
                key: parsed[0]
                for key in keys
                if key.startswith(directory) and (parsed := parse_manifest_name(key.removeprefix(directory)))
            }
            head = max(numbers, key=lambda key: numbers[key], default=None)
            if head is None:
                self.store.delete_all(keys)
            else:
                self.store.delete_all([key for key in numbers if key != head])
                self.store.delete(head)
        raise ReferenceInUse(f"branch {name}: a writer keeps committing to it while it is deleted")

    def _own_files(self, name: str, base: str) -> Sequence[str]:
        """Keys below the root of the branch, except those of nested branches, listed or recognised by their files."""
        keys = [meta.path for meta in self.store.list(base)]
        nested = {branch_base(self.location, other) for other in self.list() if other.startswith(f"{name}/")}
        marker = f"/{VERSIONS_DIRECTORY}/"
        for key in keys:
            position = key.find(marker, len(base) + 1)
            if position > 0:
                nested.add(key[:position])
        return [key for key in keys if not any(key.startswith(f"{root}/") for root in nested)]


def find_children(name: str, branches: Mapping[str, BranchContents]) -> list[str]:
    """The names of those of the branches that need files of the branch `name`, sorted: they begin below it."""
    mine = branches.get(name)
    return sorted(other for other, contents in branches.items() if other != name and _is_child(contents, name, mine))


def is_being_deleted(store: ObjectStore, location: str, branch: str) -> bool:
    """Whether the reference file of a branch is removed or marked as being deleted. Raises `CorruptFile`."""
    try:
        contents = read_ref(store, branch_path(location, branch), f"branch {branch}", decode_branch)
    except ReferenceNotFound:
        return True
    return DELETING in contents.metadata


def _is_same_beginning(known: BranchContents, wanted: BranchContents) -> bool:
    """Whether a reference file without a version can be the result of an interrupted call for the same branch."""
    if not known.identifier or not wanted.identifier:
        return False
    same = replace(known, identifier=wanted.identifier, created_at=wanted.created_at) == wanted
    return same and known.identifier[:-1] == wanted.identifier[:-1] and _is_uuid(known.identifier[-1][1])


def _is_uuid(text: str) -> bool:
    try:
        return uuid.UUID(text).hex == text
    except ValueError:
        return False


def _is_child(contents: BranchContents, name: str, parent: BranchContents | None) -> bool:
    """Whether a branch needs files of another branch: it begins there, or at a descendant of it."""
    above = (parent and parent.identifier) or ()
    theirs = contents.identifier or ()
    descends = bool(above) and len(theirs) > len(above) and theirs[: len(above)] == above
    return descends or contents.parent_branch == name


def _state(known: BranchContents, versions: Sequence[ManifestLocation]) -> str:
    if DELETING in known.metadata:
        return "it is being deleted; delete it again to complete the deletion"
    if versions:
        return f"expected none, found one at version {versions[-1].version}"
    origin = known.parent_branch or "main"
    return f"it has no version, and was to begin at version {known.parent_version} of {origin}; delete it first"


def _unmarked(metadata: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in metadata.items() if key != DELETING}

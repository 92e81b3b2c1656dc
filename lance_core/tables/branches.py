"""The branches of a table: a file below its root and a chain of versions each.

A branch comes in two steps: its file first, with put-if-absent, then its first version, a Clone. So of two creators
one begins, files of the parent are safe from stock clean-up (which looks at these files only), and what a crash leaves
behind is a name that cannot be opened: `create` completes it, and anybody, stock clients too, can delete it. Stock
clients take the other order; a first version without a file, which they can neither create again nor delete, is
completed here too.

It goes in the reverse order: the file is marked, then go the versions (the newest last), then all other files, then
the file. Whatever a crash leaves can be deleted again, and is never opened as something else.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from lance_core.commit.copying import Origin
from lance_core.commit.loop import commit_transaction
from lance_core.commit.table_files import root_path
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
from lance_core.tables.ref_files import claim_ref, list_refs, read_ref
from lance_core.tables.references import FoundVersion, Reference, find_from, was_removed
from lance_core.transaction.features import check_continuable
from lance_core.transaction.operations import Clone, encode_transaction
from lance_core.versions import ManifestLocation, list_versions, read_manifest, with_transaction

DELETING = "lance_core.deleting"
"""In the metadata of a branch: its deletion has begun. Stock clients carry it along."""

_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of the table at the key `location`, main excepted.

    A reference means what it means on `branch`, and None the version number `version` there, or the latest if that is
    None too. `clock` gives nanoseconds since the epoch.
    """

    store: ObjectStore
    location: str
    branch: str | None = None
    version: int | None = None
    clock: Callable[[], int] = field(default=time.time_ns, kw_only=True)

    def list(self) -> dict[str, BranchContents]:
        """All branches by name, in byte order of their file names. Raises `CorruptFile`."""
        return list_refs(self.store, join_key(self.location, BRANCHES_DIRECTORY), decode_branch)

    def get(self, name: str) -> BranchContents:
        """One branch. Raises `ReferenceNotFound`, `CorruptFile`."""
        return read_ref(self.store, branch_path(self.location, name), f"branch {name}", decode_branch)

    def create(self, name: str, ref: Reference = None, *, metadata: Mapping[str, str] | None = None) -> BranchContents:
        """Begin a branch at a version of the table, under that version's number.

        Of concurrent callers one succeeds. When this was interrupted, or ended without an answer, calling it again
        with the same beginning completes it; so it does a branch whose creator died before writing its file.

        Raises `ValueError` for a name that stock clients refuse, `ReferenceNotFound` for the version (also when it, or
        its branch, goes meanwhile), `AlreadyExists`, `UnsupportedFeature` for a version that cannot be continued, and
        `OutcomeUnknown` or `CommitUnknown` when the store never answered.
        """
        path = branch_path(self.location, check_branch_name(name))
        forked = find_from(self.store, self.location, ref, self.branch, self.version)
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
        """Remove a branch and its files.

        Also completes a deletion that was interrupted, and removes what is left of a branch without its file. Nobody
        may be writing to it. Files below the roots of branches whose names begin with this one's and '/' stay.

        Raises `ReferenceNotFound`, and `ReferenceInUse` while other branches begin at it or tags name its versions.
        """
        path = branch_path(self.location, check_branch_name(name))
        base = branch_base(self.location, name)
        if self._known(name) is None and next(self.store.list(base), None) is None:
            raise ReferenceNotFound(f"branch {name} at {self.store.object_uri(path)}: expected a file, found none")
        self._check_unused(name)
        before = self._mark(name, path)
        try:
            self._check_unused(name)
        except ReferenceInUse:
            with suppress(StorageError):  # marked and in use: nothing begins at it until it is deleted
                self._unmark(path, before)
            raise
        self._remove_files(name, base)
        self.store.delete(path)

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
        """Commit the first version of a branch whose file is written. Whoever completes it commits the same Clone."""
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
                raise AlreadyExists(f"branch {name}: somebody else began it meanwhile: {error}") from error
            return  # a stock client, at the same version; the file is ours
        for other in list_versions(self.store, branch_base(self.location, name)):
            if other.version != done.version and self._clone_at(name, other) is not None:
                self.store.delete(done.path)
                raise AlreadyExists(f"branch {name}: somebody else began it meanwhile, at version {other.version}")

    def _check_parent(self, name: str, forked: FoundVersion) -> None:
        """Asked once the file is written: who deletes the parent looks for such files once that is announced."""
        if forked.branch is not None and is_being_deleted(self.store, self.location, forked.branch):
            raise ReferenceNotFound(f"branch {name}: its parent {forked.branch} is being deleted")
        if was_removed(self.store, forked):
            raise ReferenceNotFound(f"branch {name}: version {forked.file.version} was removed meanwhile")

    def _check_forming(self, name: str, wanted: BranchContents, versions: Sequence[ManifestLocation]) -> None:
        """Raise `AlreadyExists` unless a branch without its file begins where the one that is wanted does."""
        base = branch_base(self.location, name)
        clones = self._clones(name, versions)
        if not self._begins(wanted, clones):
            found = " and ".join(f"version {clone.ref_version} of {clone.ref_name or 'main'}" for clone in clones)
            raise AlreadyExists(
                f"branch {name}: {self.store.object_uri(base)} holds what is left of one{found and f' of {found}'}; "
                "delete it first"
            )

    def _begins(self, wanted: BranchContents, clones: Sequence[pb.Transaction.Clone]) -> bool:
        """Whether these Clones make the branch that is wanted. Stock clients that begin one together leave several."""
        beginning = (wanted.parent_branch, wanted.parent_version)
        return [(clone.ref_name or None, clone.ref_version) for clone in clones] == [beginning]

    def _clones(self, name: str, versions: Sequence[ManifestLocation]) -> Sequence[pb.Transaction.Clone]:
        found = self.store.map(lambda location: self._clone_at(name, location), versions)
        return [clone for clone in found if clone is not None]

    def _clone_at(self, name: str, location: ManifestLocation) -> pb.Transaction.Clone | None:
        """The Clone that made a version of the branch, if one did."""
        try:
            file = read_manifest(self.store, location, lazily=True)
        except NotFound:
            return None
        transaction = with_transaction(self.store, branch_base(self.location, name), file).transaction
        if transaction is None or not transaction.HasField("clone") or transaction.clone.branch_name != name:
            return None
        return transaction.clone

    def _check_unused(self, name: str) -> None:
        mine = self._known(name)
        children = sorted(
            other for other, contents in self.list().items() if other != name and _is_child(contents, name, mine)
        )
        if children:
            raise ReferenceInUse(f"branch {name}: expected no branch that begins at it, found {', '.join(children)}")
        tags = list_refs(self.store, join_key(self.location, TAGS_DIRECTORY), decode_tag)
        naming = sorted(tag for tag, contents in tags.items() if contents.branch == name)
        if naming:
            raise ReferenceInUse(f"branch {name}: expected no tag on it, found {', '.join(naming)}")

    def _mark(self, name: str, path: str) -> BranchContents | None:
        """Announce the deletion in the branch's file, which is written if there is none. What was there before."""
        for _ in range(_ROUNDS):
            known = self._known(name)
            if known is None:
                left = BranchContents(0, 0, created_at=self.clock() // 1_000_000_000, metadata={DELETING: "true"})
                with suppress(AlreadyExists):
                    claim_ref(self.store, path, f"branch {name}", encode_branch(left))
                    return None
                continue
            if DELETING in known.metadata:
                return replace(known, metadata=_unmarked(known.metadata))
            marked = replace(known, metadata={**known.metadata, DELETING: "true"})
            with suppress(PreconditionFailed, NotFound):
                self._replace(path, known, marked)
                return known
        raise StorageError(f"branch {name}: {self.store.object_uri(path)} kept changing while it was to be deleted")

    def _unmark(self, path: str, before: BranchContents | None) -> None:
        if before is None:
            self.store.delete(path)
        else:
            self._replace(path, replace(before, metadata={**before.metadata, DELETING: "true"}), before)

    def _replace(self, path: str, expected: BranchContents, contents: BranchContents) -> None:
        e_tag = self.store.head(path).e_tag
        if e_tag is None or decode_branch(self.store.get(path)) != expected:
            raise PreconditionFailed(f"{self.store.object_uri(path)}: it changed since it was read")
        self.store.replace(path, encode_branch(contents), if_match=e_tag)

    def _remove_files(self, name: str, base: str) -> None:
        """Remove the versions, the newest last, then everything else; again for what a late writer put there."""
        for _ in range(_ROUNDS):
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
                self.store.map(self.store.delete, keys)
            else:
                self.store.map(self.store.delete, [key for key in numbers if key != head])
                self.store.delete(head)
        raise ReferenceInUse(f"branch {name}: somebody keeps writing to it while it is deleted")

    def _own_files(self, name: str, base: str) -> Sequence[str]:
        """Keys below the root of the branch, except below roots of other branches, listed or recognizable."""
        keys = [meta.path for meta in self.store.list(base)]
        nested = {branch_base(self.location, other) for other in self.list() if other.startswith(f"{name}/")}
        marker = f"/{VERSIONS_DIRECTORY}/"
        for key in keys:
            position = key.find(marker, len(base) + 1)
            if position > 0:
                nested.add(key[:position])
        return [key for key in keys if not any(key.startswith(f"{root}/") for root in nested)]


def is_being_deleted(store: ObjectStore, location: str, branch: str) -> bool:
    """Whether the file of a branch is gone or says that its deletion has begun. Raises `CorruptFile`."""
    try:
        contents = read_ref(store, branch_path(location, branch), f"branch {branch}", decode_branch)
    except ReferenceNotFound:
        return True
    return DELETING in contents.metadata


def _is_same_beginning(known: BranchContents, wanted: BranchContents) -> bool:
    """Whether a file without a version can be what an interrupted call for the same branch left."""
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
    """Whether a branch needs files of another one: it begins there, or at a branch that does."""
    above = (parent and parent.identifier) or ()
    theirs = contents.identifier or ()
    descends = bool(above) and len(theirs) > len(above) and theirs[: len(above)] == above
    return descends or contents.parent_branch == name


def _state(known: BranchContents, versions: Sequence[ManifestLocation]) -> str:
    if DELETING in known.metadata:
        return "it is being deleted; delete it again to complete that"
    if versions:
        return f"expected none, found one at version {versions[-1].version}"
    origin = known.parent_branch or "main"
    return f"left without a version, to begin at version {known.parent_version} of {origin}; delete it first"


def _unmarked(metadata: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in metadata.items() if key != DELETING}

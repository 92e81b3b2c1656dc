"""Changes of one table, or of one of its branches, in a transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from lance_core.compaction import CompactionOptions, PreparedCompaction, prepare_compaction, prepare_indices
from lance_core.data import DATA_STORAGE_VERSION
from lance_core.errors import CorruptFile, InvalidTransaction, LanceCoreError, NotFound, ReferenceNotFound
from lance_core.format.features import check_readable
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base, manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.stated_files import check_stated_files
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles
from lance_core.tables.tags import Tags
from lance_core.transaction.operations import (
    CreateIndex,
    Operation,
    Overwrite,
    ReserveFragments,
    Restore,
    decode_operation,
)
from lance_core.transaction.reachable import fragment_files, reachable_files
from lance_core.versions import read_version
from table_data import staging
from table_data.batch_operations import (
    StagedOperation,
    TableDeclaration,
    TableState,
    TransactionCommit,
    VersionAssertion,
)
from table_data.composition import Composition, Step, compose, take_step
from table_data.errors import BaseVersionGone, ClientError, InvalidCall, VersionGone
from table_data.pylance_errors import storage_failed
from table_data.requests.field_paths import dotted

if TYPE_CHECKING:
    import lance

    from table_data.open_datasets import OpenDatasets

_MOST_LOOKED_AT: Final = 1_000


@dataclass(frozen=True, slots=True)
class OpenedVersion:
    """A published version: its manifest, and its dataset in pylance."""

    file: ManifestFile
    dataset: lance.LanceDataset


class TableChanges:
    """The steps of one table, each applied to the version that the step before it left. Not thread-safe.

    A `new` table is not in the catalog. Manifests are read on first use. With `checked`, an operation that does not fit
    the version is refused when it is taken, else when the batch is committed. `opened` is the base version, as another
    object of this class opened it.
    """

    def __init__(
        self,
        state: TableState,
        options: Mapping[str, str],
        *,
        new: bool = False,
        checked: bool = True,
        layouts: OpenDatasets | None = None,
        opened: OpenedVersion | None = None,
    ) -> None:
        self.state = state
        self.new = new
        self._checked = checked
        self.steps: list[Step] = []
        self.was_read = False
        self.stable_row_ids = False
        """Whether rows keep their ids. Used for the first version of a table only."""
        self.new_data_version: str | None = None
        """The format of the data files of a first version that has none. Used for it only."""
        self.guard: str | None = None
        """The reason why the batch asserts the table's version, None if it does not. Set when the batch is composed."""
        self.options = options
        self._layouts = layouts
        self._read_before_reset = False
        self._base = None if opened is None else opened.file
        self._published = None if opened is None else opened.dataset
        self._local: tuple[ManifestFile, lance.LanceDataset] | None = None

    @property
    def name(self) -> str:
        """The table and its branch, for messages."""
        name = dotted(self.state.id)
        return name if self.state.branch is None else f"{name} (branch {self.state.branch})"

    @property
    def has_version(self) -> bool:
        """Whether the table has a version, published or made by the transaction."""
        return bool(self.steps) or self.state.version is not None

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls that changed the table, in order."""
        return tuple(step.call for step in self.steps)

    @property
    def head(self) -> ManifestFile | None:
        """The version that the steps led to, the base version if there are none."""
        return self.steps[-1].after if self.steps else self.base

    @property
    def base(self) -> ManifestFile | None:
        """The version at the begin of the transaction.

        Raises `BaseVersionGone` if it is gone or another one took its place, `CorruptFile`, `UnsupportedFeature`.
        """
        if self._base is None and self.state.version is not None:
            try:
                file = self.version(self.state.version)
            except VersionGone as error:
                raise BaseVersionGone(str(error)) from error
            self._require_same(file)
            self._base = file
        return self._base

    @property
    def manifest_sha256(self) -> str | None:
        """SHA-256 of the manifest of the base version; None if the catalog does not know it and it was not read."""
        if self.state.identity is not None:
            return self.state.identity.sha256
        return None if self._base is None else self._base.identity.sha256

    @property
    def uri(self) -> str:
        """The root of the table or of the branch."""
        return self.state.root

    @property
    def store(self) -> ObjectStore:
        """The object store with the table's location as its root."""
        return open_store(self.state.uri, self.options)

    @property
    def files(self) -> TableFiles:
        """The files of the table or of the branch. Roots outside the table, of clones, are opened with its options."""
        root = branch_base("", self.state.branch)
        return TableFiles(self.store, root, partial(open_store, storage_options=self.options))

    @property
    def data_version(self) -> str:
        """The version of the data file format; the default of new tables if there is no version yet."""
        head = self.head
        return (head.manifest.data_format.version if head is not None else "") or DATA_STORAGE_VERSION

    def require_head(self) -> ManifestFile:
        """The version that the next step is applied to. Raises `InvalidCall` if there is none."""
        head = self.head
        if head is None:
            raise InvalidCall(f"{self.name} has no version yet: create it")
        return head

    def note_read(self) -> None:
        """Record that the transaction read published rows of the table."""
        self.was_read = True
        if not any(isinstance(step.operation, (Overwrite, Restore)) for step in self.steps):
            self._read_before_reset = True

    def open(self) -> OpenedVersion:
        """Read the base version, which there is, and open its dataset. Raises as `base` does."""
        return OpenedVersion(self.require_head(), self.dataset())

    def dataset(self) -> lance.LanceDataset:
        """A read-only dataset of the base version with the steps applied. Raises as `base` does."""
        if not self.steps and self.state.version is not None:
            if self._published is None:
                self._published = staging.open_version(self.uri, self.require_head(), self.options)
            return self._published
        head = self.require_head()
        if self._local is None or self._local[0] is not head:
            self._local = (head, staging.open_local(self.uri, head, self.options))
        return self._local[1]

    def dataset_of_layout(self) -> lance.LanceDataset:
        """A read-only dataset to write new rows through. Its layout is the version's, its rows may be older ones."""
        if self._layouts is None or self.state.layout is None or self.steps:
            return self.dataset()
        return self._layouts.find((self.uri, self.state.layout, *sorted(self.options.items())), self.dataset)

    def dataset_at(self, version: int, branch: str | None) -> lance.LanceDataset:
        """A read-only dataset of a published version."""
        uri = branch_base(self.state.uri, branch)
        return staging.open_version(uri, self._read(version, branch), self.options)

    def version(self, number: int) -> ManifestFile:
        """The manifest of a published version; its fragments stay encoded until they are asked for.

        Raises `VersionGone`, `CorruptFile`, `UnsupportedFeature`.
        """
        file = self._read(number, self.state.branch)
        check_readable(file.outline)
        return file

    def _require_same(self, file: ManifestFile) -> None:
        """Raise unless the manifest that has the name of the base version is the one that the catalog names.

        Raises `BaseVersionGone` for that of another version, which was committed at another time, else `CorruptFile`.
        """
        known, found = self.state.identity, file.identity.sha256
        if known is None or found == known.sha256:
            return
        reason = f"its manifest has SHA-256 {found}, expected {known.sha256}"
        if file.timestamp_ms != known.committed_ms:
            raise BaseVersionGone(f"{self.name}: version {self.state.version} was replaced by another one: {reason}")
        key = manifest_path(branch_base("", self.state.branch), file.version)
        raise CorruptFile(f"{self.name}: {key}: {reason}", key=key, reason=reason)

    def _read(self, number: int, branch: str | None) -> ManifestFile:
        base = branch_base("", branch)
        try:
            return read_version(self.store, base, number, lazily=True)[1]
        except ReferenceNotFound as error:
            key = manifest_path(base, number)
            raise VersionGone(f"{self.name}: version {number}: expected a manifest at {key}, found none") from error

    def tag(self, name: str) -> tuple[str | None, int]:
        """The branch and the version of a tag. Raises `ReferenceNotFound`."""
        found = Tags(self.store, "").get(name)
        return found.branch, found.version

    def take(
        self,
        call: str,
        operation: Operation,
        *,
        message: str | None,
        source: ManifestFile | None = None,
        guard: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Apply one more operation locally.

        `guard` is the reason why the batch must assert the table's version, if the transaction itself cannot say it.
        `properties` are those of the transaction, if this is the only step.
        Raises `InvalidTransaction` or `UnsupportedFeature` if that is checked and the operation does not fit.
        """
        if guard is None and isinstance(operation, (Overwrite, Restore)) and self._read_before_reset:
            guard = f"the transaction read the table before {call}, which replaces its rows"
        last = self.steps[-1] if self.steps else None
        step = take_step(
            call,
            operation,
            read_version=(self.state.version or 0) if last is None else last.transaction.read_version + 1,
            before=lambda: self.base if last is None else last.after,
            now_ns=time.time_ns(),
            message=message,
            source=source,
            guard=guard,
            stable_row_ids=self.stable_row_ids,
            data_storage_version=self.new_data_version,
            properties=properties,
        )
        if self._checked:
            _ = step.after
        self.steps.append(step)

    def compact(
        self,
        options: CompactionOptions | None,
        *,
        message: str | None,
        reserve: Callable[[int], int] | None = None,
    ) -> PreparedCompaction | None:
        """Rewrite fragments and their index segments; None if there was nothing to do.

        Index segments name the fragments that they cover. So where an index is rewritten, the ids of the new fragments
        are reserved before: by `reserve`, which returns the first of so many, or by a step before the rewrite. The
        batch is then guarded, and no concurrent commit is rebased over.
        """
        head, before = self.require_head(), len(self.steps)

        def reserve_in_step(count: int) -> int:
            self.take("compact", ReserveFragments(count), message=message)
            return int(self.require_head().manifest.max_fragment_id) - count + 1

        base = branch_base("", self.state.branch)
        try:
            prepared = prepare_compaction(
                self.store,
                base,
                head,
                reserve=reserve or reserve_in_step,
                options=options,
                storage_options=self.options or None,
            )
            if prepared is not None:
                self.take("compact", decode_operation(prepared.transaction), message=message)
        except BaseException:
            del self.steps[before:]
            raise
        return prepared

    def optimize_indices(self, names: Sequence[str], *, message: str | None) -> CreateIndex | None:
        """Put one segment over all rows in place of the segments of each of these indices.

        None if there was nothing to do. Raises as `prepare_indices`.
        """
        base = branch_base("", self.state.branch)
        made = prepare_indices(self.store, base, self.require_head(), names, storage_options=self.options or None)
        if made is not None:
            self.take("optimize_indices", made, message=message)
        return made

    def restore(self, version: int, *, message: str | None, tag: str | None = None) -> None:
        """Go back to a published version of the same branch, which `tag` may have named.

        Raises `VersionGone` if there is no such version, or if it was removed.
        """
        if not 0 < version <= (self.state.version or 0):
            raise VersionGone(f"restore of version {version}: expected at most {self.state.version}")
        self.take(f"restore {tag or version}", Restore(version), message=message, source=self.version(version))

    def compose(self, message: str | None) -> Composition:
        """The transactions for all steps, relative to the base version."""
        return compose(self.steps, message)

    def operations(
        self, message: str | None, *, serializable: bool
    ) -> tuple[list[StagedOperation], list[StagedOperation]]:
        """The assertions about the table and the changes of it, for one batch."""
        composition = self.compose(message)
        self.guard = composition.guard if composition.transactions else None
        checks: list[StagedOperation] = []
        if not self.new and (self.guard is not None or (serializable and (self.was_read or bool(self.steps)))):
            version, place = self.state.version or 0, (self.state.branch, self.state.uri)
            checks.append(VersionAssertion(self.state.id, version, *place, self.manifest_sha256))
        changes: list[StagedOperation] = []
        if self.new and composition.transactions:
            changes.append(TableDeclaration(self.state.id, self.state.uri, self.state.properties))
        changes += [self._commit(transaction) for transaction in composition.transactions]
        self._require_whole(composition.transactions)
        return checks, changes

    def _require_whole(self, transactions: Iterable[pb.Transaction]) -> None:
        """Raise `StorageFailed` for a file that was not written to its end: pylance loses the error of the last write.

        On a local disk, where that happens when it is full and where looking takes no time. A file that is gone was
        removed since, with its branch or its table: the commit says so.
        """
        base = branch_base("", self.state.branch)
        if not self.store.local:
            return
        for transaction in transactions:
            try:
                check_stated_files(self.store, reachable_files(transaction, base), contents=False)
            except InvalidTransaction as error:
                raise storage_failed(self.name, f"a file was not written to its end: {error}") from error
            except NotFound:
                return

    def _commit(self, transaction: pb.Transaction) -> TransactionCommit:
        on_base = transaction.read_version == self.state.version
        return TransactionCommit(
            self.state.id,
            transaction,
            self.state.branch,
            self.stable_row_ids,
            self.new_data_version,
            self.state.uri,
            self.manifest_sha256 if on_base else None,
        )


def find_damage(table: TableState, options: Mapping[str, str]) -> str | None:
    """The damage of a version that could not be read: its first file that is missing or is not as stated.

    None if the version, or another one in its place, is not on storage: then its files may have been removed, too.
    Empty if nothing is found. Looks at the files of at most 1,000 fragments.
    """
    try:
        changes = TableChanges(table, options)
        base = changes.base
        if base is None:
            return None
        files = fragment_files(base.manifest.fragments[:_MOST_LOOKED_AT], branch_base("", table.branch))
        check_stated_files(changes.store, files, contents=True)
    except CorruptFile as error:
        return str(error) if error.key is None else f"{error.key}: {error.reason}"
    except (InvalidTransaction, NotFound) as error:
        return str(error)
    except (LanceCoreError, ClientError):
        return None
    return ""

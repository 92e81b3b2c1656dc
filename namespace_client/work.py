"""What a transaction does to one table, or to one branch of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lance_core.compaction import CompactionOptions, PreparedCompaction, prepare_compaction
from lance_core.data import DATA_STORAGE_VERSION
from lance_core.format.features import check_readable
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import BRANCHES_DIRECTORY, branch_base
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.tables.tags import Tags
from lance_core.transaction.operations import Operation, Overwrite, ReserveFragments, Restore, decode_operation
from lance_core.versions import read_version
from namespace_client import staging
from namespace_client.composition import Composition, Step, compose, take_step
from namespace_client.errors import InvalidCall
from namespace_client.wire import (
    DELIMITER,
    AssertVersion,
    CommitTransaction,
    DeclareTable,
    TableState,
)
from namespace_client.wire import Operation as BatchOperation

if TYPE_CHECKING:
    import lance


class TableWork:
    """The steps of one table, each on the version that the one before it left. `new` tables are not in the catalog.

    Nothing is read before somebody asks. Not thread-safe.
    """

    def __init__(self, state: TableState, options: Mapping[str, str], *, new: bool = False) -> None:
        self.state = state
        self.new = new
        self.steps: list[Step] = []
        self.was_read = False
        self.stable_row_ids = False
        """For the first version of a table."""
        self.guard: str | None = None
        """Why the batch asserts that nobody committed to the table, once it was composed."""
        self._options = options
        self._read_before_reset = False
        self._base: ManifestFile | None = None
        self._open: tuple[ManifestFile | None, lance.LanceDataset] | None = None

    @property
    def name(self) -> str:
        """The table, for messages."""
        name = DELIMITER.join(self.state.id)
        return name if self.state.branch is None else f"{name} (branch {self.state.branch})"

    @property
    def has_version(self) -> bool:
        """Whether there is something to read."""
        return bool(self.steps) or self.state.version is not None

    @property
    def calls(self) -> tuple[str, ...]:
        """What was done, in order."""
        return tuple(step.call for step in self.steps)

    @property
    def head(self) -> ManifestFile | None:
        """The version that the steps led to; the one that the block began at if there are none."""
        return self.steps[-1].after if self.steps else self.base

    @property
    def base(self) -> ManifestFile | None:
        """The version that the block began at."""
        if self._base is None and self.state.version is not None:
            self._base = self.version(self.state.version)
        return self._base

    @property
    def uri(self) -> str:
        """The root of the table, or of its branch."""
        if self.state.branch is None:
            return self.state.uri
        return f"{self.state.uri}/{BRANCHES_DIRECTORY}/{self.state.branch}"

    @property
    def store(self) -> ObjectStore:
        """The store whose root is the table's."""
        return open_store(self.state.uri, self._options)

    @property
    def data_version(self) -> str:
        """The file format of the table's data; that of new tables if it has none yet."""
        head = self.head
        return (head.manifest.data_format.version if head is not None else "") or DATA_STORAGE_VERSION

    def require_head(self) -> ManifestFile:
        """The version to build on. Raises `InvalidCall` when there is none."""
        head = self.head
        if head is None:
            raise InvalidCall(f"{self.name} has no version yet: create it")
        return head

    def note_read(self) -> None:
        """Remember that the block looked at rows which it did not write itself."""
        self.was_read = True
        if not any(isinstance(step.operation, (Overwrite, Restore)) for step in self.steps):
            self._read_before_reset = True

    def dataset(self) -> lance.LanceDataset:
        """A handle for reading on what the block sees: the version that it began at, and its own steps."""
        head = self.require_head()
        if self._open is None or self._open[0] is not head:
            if self.steps:
                handle = staging.open_local(self.uri, head, self._options)
            else:
                handle = staging.open_version(self.uri, head.version, self._options)
            self._open = (head, handle)
        return self._open[1]

    def dataset_at(self, version: int, branch: str | None) -> lance.LanceDataset:
        """A handle for reading on a published version."""
        uri = self.state.uri if branch is None else f"{self.state.uri}/{BRANCHES_DIRECTORY}/{branch}"
        return staging.open_version(uri, version, self._options)

    def version(self, number: int) -> ManifestFile:
        """The manifest of a published version. Raises `ReferenceNotFound`, `UnsupportedFeature`."""
        _, file = read_version(self.store, branch_base("", self.state.branch), number)
        check_readable(file.manifest)
        return file

    def tag(self, name: str) -> tuple[str | None, int]:
        """The branch and the version that a tag stands for. Raises `ReferenceNotFound`."""
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
    ) -> None:
        """Do one more thing to the table, locally. `guard` is the reason why nobody may commit to it meanwhile."""
        if guard is None and isinstance(operation, (Overwrite, Restore)) and self._read_before_reset:
            guard = f"the block read the table before {call}, which discards what is in it"
        now = time.time_ns()
        self.steps.append(
            take_step(
                call,
                self.head,
                operation,
                now_ns=now,
                message=message,
                source=source,
                guard=guard,
                stable_row_ids=self.stable_row_ids,
            )
        )

    def compact(self, options: CompactionOptions | None, *, message: str | None) -> PreparedCompaction | None:
        """Rewrite fragments, and indices with them; None if there was nothing to do.

        Index segments name the fragments that they cover, so a step before takes the ids of the new ones, if need be.
        """
        head, before = self.require_head(), len(self.steps)

        def reserve(count: int) -> int:
            self.take("compact", ReserveFragments(count), message=message)
            return int(self.require_head().manifest.max_fragment_id) - count + 1

        base = branch_base("", self.state.branch)
        try:
            prepared = prepare_compaction(
                self.store, base, head, reserve=reserve, options=options, storage_options=self._options or None
            )
            if prepared is not None:
                self.take("compact", decode_operation(prepared.transaction), message=message)
        except BaseException:
            del self.steps[before:]
            raise
        return prepared

    def compose(self, message: str | None) -> Composition:
        """The transactions that say all this in terms of the version that the block began at."""
        return compose(self.steps, message)

    def operations(
        self, message: str | None, *, serializable: bool
    ) -> tuple[list[BatchOperation], list[BatchOperation]]:
        """What the batch must assert about the table, and what it does to it."""
        composition = self.compose(message)
        self.guard = composition.guard if composition.transactions else None
        checks: list[BatchOperation] = []
        if not self.new and (self.guard is not None or (serializable and (self.was_read or bool(self.steps)))):
            checks.append(AssertVersion(self.state.id, self.state.version or 0, self.state.branch, self.state.uri))
        changes: list[BatchOperation] = []
        if self.new and composition.transactions:
            changes.append(DeclareTable(self.state.id, self.state.uri, self.state.properties))
        changes += [
            CommitTransaction(self.state.id, transaction, self.state.branch, self.stable_row_ids, self.state.uri)
            for transaction in composition.transactions
        ]
        return checks, changes

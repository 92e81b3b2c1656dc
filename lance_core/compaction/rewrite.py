"""Prepares the transactions that compact a version, and that extend its indices to all rows. Nothing is committed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from pyroaring import BitMap, BitMap64

from lance_core import data
from lance_core.commit.durability import added_files
from lance_core.compaction.scratch import Scratch, with_base, without_base
from lance_core.errors import CorruptFile, UnsupportedFeature
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import data_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles
from lance_core.transaction.features import check_continuable, has_stable_row_ids
from lance_core.transaction.indices import FRAGMENT_REUSE, SYSTEM_INDICES, covered_fragments
from lance_core.transaction.operations import CreateIndex, Rewrite, encode_transaction


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which fragments are rewritten, and how. None leaves an option to pylance.

    Attributes:
        target_rows_per_fragment: Neighbouring fragments with fewer rows are merged.
        materialize_deletions: Whether fragments with deleted rows are rewritten without them.
        materialize_deletions_threshold: The share of deleted rows from which a fragment is rewritten, from 0 to 1.
        max_bytes_per_file: Upper bound of the size of new files.
        max_source_fragments: The largest number of fragments, the oldest first, that one run rewrites.
        max_source_bytes: The data files of the fragments that one run rewrites, the oldest first, have at most so many
            bytes. The fragments that become one new fragment are never split, so the first of them may have more.
        num_threads: Threads that pylance uses.
        batch_size: Rows that pylance reads at a time.
    """

    target_rows_per_fragment: int = 1 << 20
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    max_bytes_per_file: int | None = None
    max_source_fragments: int | None = None
    max_source_bytes: int | None = None
    num_threads: int | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        for name in (
            *("target_rows_per_fragment", "max_bytes_per_file", "max_source_fragments", "max_source_bytes"),
            "num_threads",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} {value}: expected at least 1")
        if not 0 <= self.materialize_deletions_threshold <= 1:
            raise ValueError(f"materialize_deletions_threshold {self.materialize_deletions_threshold}: expected 0 to 1")

    def for_table(self, manifest: pb.Manifest) -> dict[str, Any]:
        """The options as pylance takes them, with the data file format of the table."""
        given = {
            name: value for name, value in asdict(self).items() if value is not None and name != "max_source_bytes"
        }
        version = manifest.data_format.version
        return given | ({"data_storage_version": version} if version else {})

    def limited(self, tasks: Sequence[str]) -> Sequence[str]:
        """The first of pylance's planned tasks, as its JSON: as many as `max_source_bytes` allows, and at least one."""
        if self.max_source_bytes is None:
            return tasks
        left = self.max_source_bytes
        for count, task in enumerate(tasks):
            fragments = json.loads(task)["task"]["fragments"]
            left -= sum(file["file_size_bytes"] or 0 for fragment in fragments for file in fragment["files"])
            if left < 0:
                return tasks[: max(count, 1)]
        return tasks


_Groups = tuple[pb.Transaction.Rewrite.RewriteGroup, ...]


@dataclass(frozen=True, slots=True)
class PreparedCompaction:
    """A Rewrite whose files are written. `files` are the store keys of the files it adds, all under fresh names."""

    transaction: pb.Transaction
    files: tuple[str, ...]

    @property
    def removed_fragments(self) -> int:
        """The number of fragments that are replaced."""
        return sum(len(group.old_fragments) for group in self.transaction.rewrite.groups)

    @property
    def added_fragments(self) -> int:
        """The number of fragments that replace them."""
        return sum(len(group.new_fragments) for group in self.transaction.rewrite.groups)


def prepare_compaction(
    store: ObjectStore,
    base: str,
    file: ManifestFile,
    *,
    reserve: Callable[[int], int],
    options: CompactionOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PreparedCompaction | None:
    """Write the compacted files of the version `file`, and prepare the transaction that adds them. Commits nothing.

    What was written is read again, all rows and columns of it, before anything may take the place of the old fragments.
    The transaction is for `commit_transaction`, `stage_commit` or a batch. It conflicts with concurrent changes of the
    same fragments; its `files` are deleted if it was rejected, not where the outcome is unknown.

    Args:
        store: The store that holds the table.
        base: The key of the root of the table or branch.
        file: The version to compact. It need not be published.
        reserve: Reserves the given number of fragment ids permanently, and returns the first. Called at most once, if
            an index must be rewritten: its segments refer to the new fragments before these are committed.
        options: Which fragments are rewritten, and how.
        storage_options: Options for pylance, by Lance's own keys.

    Returns:
        The transaction and its files; None if there is nothing to compact.

    Raises:
        UnsupportedFeature: This engine cannot write the table, its indices refer to earlier compactions, or pylance
            cannot reach the store.
        CorruptFile: Pylance wrote something else than the rows. The files written are removed.
        StorageError: Pylance cannot read or write.
    """
    _check_table(store, file)
    options = options or CompactionOptions()
    wanted = options.for_table(file.manifest)
    handle = data.open_staged(store.object_uri(base), file, storage_options)
    indices = file.indices.indices if file.indices is not None else ()
    if not any(index.name not in SYSTEM_INDICES for index in indices):
        tasks = options.limited(data.plan_compaction(handle, wanted))
        groups = _number_later(_execute(store, base, handle, tasks))
        return _prepared(store, base, file, Rewrite(groups)) if groups else None
    # A handle on a bare manifest has no indices, and pylance merges only fragments that the same indices cover.
    with Scratch(store, base, file, storage_options) as scratch:
        planned = options.limited(data.plan_compaction(scratch.open(), wanted))
        tasks = [without_base(task, scratch.base_id) for task in planned]
    results = _execute(store, base, handle, tasks)
    groups = _number_later(results)
    if not groups:
        return None
    if not _is_covered(groups, indices):
        return _prepared(store, base, file, Rewrite(groups))
    first = reserve(sum(len(group.new_fragments) for group in groups))
    stable = has_stable_row_ids(file.manifest)
    files = TableFiles(store, base, partial(open_store, storage_options=storage_options))
    moved = [None if stable else live_rows(files, file.manifest, group) for group in groups]
    with Scratch(store, base, file, storage_options, next_fragment_id=first) as scratch:
        located = [with_base(result, scratch.base_id, rows) for result, rows in zip(results, moved, strict=True)]
        operation = scratch.remap(located)
        scratch.move_indices(entry.new_id.uuid for entry in operation.rewritten_indices)
    return _prepared(store, base, file, operation)


def live_rows(files: TableFiles, manifest: pb.Manifest, group: pb.Transaction.Rewrite.RewriteGroup) -> BitMap64:
    """The addresses of the rows that a group copies: the rows of its old fragments that are not deleted.

    Raises as `TableFiles.deleted_rows`.
    """
    rows = BitMap64()
    for fragment in group.old_fragments:
        first = fragment.id << 32
        rows |= BitMap64(range(first, first + fragment.physical_rows))
        rows -= BitMap64(first + offset for offset in files.deleted_rows(manifest, fragment))
    rows.run_optimize()
    return rows


def _execute(store: ObjectStore, base: str, handle: Any, tasks: Iterable[str]) -> list[str]:
    """Execute tasks and read what they wrote. Raises `CorruptFile`, after it removed the files."""
    results: list[str] = []
    for task in tasks:
        results.append(data.execute_compaction(handle, task))
        try:
            wanted, found = data.compacted_rows(handle, results[-1])
            if wanted != found:
                raise CorruptFile(f"expected {wanted} rows in the new fragments, found {found}")
        except CorruptFile as error:
            new = [fragment for result in results for fragment in data.rewrite_group(result).new_fragments]
            store.delete_all([data_path(base, file.path) for fragment in new for file in fragment.files])
            old = [fragment.id for fragment in data.rewrite_group(results[-1]).old_fragments]
            raise CorruptFile(f"compaction of fragments {old[:20]}: nothing was committed: {error}") from error
    return results


def _check_table(store: ObjectStore, file: ManifestFile) -> None:
    check_continuable(file.manifest)
    if store.uri.startswith("memory:"):
        raise UnsupportedFeature(f"{store.uri}: expected a store that pylance can open, found one in memory")
    if file.indices is not None and any(index.name == FRAGMENT_REUSE for index in file.indices.indices):
        raise UnsupportedFeature(
            f"version {file.version} has the index {FRAGMENT_REUSE}, so other indices refer to fragments from before "
            "an earlier compaction: expected indices that were brought up to date"
        )


def _number_later(results: Iterable[str]) -> _Groups:
    """The groups, whose new fragments get their ids in the commit."""
    groups = tuple(data.rewrite_group(result) for result in results)
    for group in groups:
        for fragment in group.new_fragments:
            fragment.id = 0
    return groups


def _is_covered(groups: _Groups, indices: Sequence[pb.IndexMetadata]) -> bool:
    old = BitMap(fragment.id for group in groups for fragment in group.old_fragments)
    return any(covered_fragments(index) & old for index in indices)


def _prepared(store: ObjectStore, base: str, file: ManifestFile, operation: Rewrite) -> PreparedCompaction:
    transaction = encode_transaction(operation, read_version=file.version)
    return PreparedCompaction(transaction, tuple(added_files(store, base, transaction, file)))


def prepare_indices(
    store: ObjectStore,
    base: str,
    file: ManifestFile,
    names: Sequence[str],
    *,
    storage_options: Mapping[str, str] | None = None,
) -> CreateIndex | None:
    """Write one segment for each index, over all rows: those that its segments cover, and all others. Commits nothing.

    A vector index is not trained again: its partitions get the rows. A segment over the other rows alone would be less
    work, and is not safe. After a column was rewritten in a fragment, a segment no longer covers the fragment, but
    still has its old values. Pylance 14 leaves them out when it merges the segment, and finds them again if another
    segment covers the fragment.

    Args:
        store: The store that holds the table.
        base: The key of the root of the table or branch.
        file: The version. It need not be published.
        names: The indices.
        storage_options: Options for pylance, by Lance's own keys.

    Returns:
        The new segments, whose files are in the table's own directory under fresh names, and the segments that they
        replace, whose files stay. None if pylance finds nothing to do.

    Raises:
        UnsupportedFeature: There is no such index, its segments refer to fragments from before a compaction, this
            engine cannot write the table, or pylance cannot reach the store.
        StorageError: Pylance cannot read or write.
    """
    _check_table(store, file)
    segments = {index.uuid.uuid: index for index in (file.indices.indices if file.indices is not None else ())}
    present = {index.name for index in segments.values()}
    if missing := set(names) - (present - SYSTEM_INDICES):
        raise UnsupportedFeature(f"version {file.version} has no index {min(missing)!r}")
    if not names:
        return None
    with Scratch(store, base, file, storage_options) as scratch:
        made = scratch.optimize_indices(names, len(segments))
        if made is None:
            return None
        scratch.move_indices(index.uuid.uuid for index in made.new)
    return CreateIndex(made.new, tuple(segments[index.uuid.uuid] for index in made.removed))

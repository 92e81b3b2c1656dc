"""Upserts and other merges by key.

The rows are staged first, as those of an append are. If all of them are small enough for the driver, pylance merges
them there. Else Spark joins their keys with those of the table: the staged rows stay where they are, and what is left
to do is to mark the rows with equal keys as deleted. Where not every staged row is to be added, or rows keep their ids,
the staged rows are joined in full and written again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, Literal

import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from lance_core.data import fragment_message
from lance_core.format.bitmaps import bitmap64_of
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.features import has_stable_row_ids
from lance_core.transaction.operations import Operation, Update
from lance_core.transaction.reachable import reachable_files
from spark_catalog.errors import InvalidWrite
from spark_catalog.graph_writes.calls.deletes import StagedDeletes, collect_addresses, stage_row_deletes
from spark_catalog.graph_writes.checks import DRIVER_SCAN_BYTES, check_unique, check_unique_rows, integer_keys
from spark_catalog.graph_writes.integer_keys import has_repeats
from spark_catalog.graph_writes.version_rows import VersionRows, added_rows, published_or_staged
from spark_catalog.read import read_pinned
from spark_catalog.tables.scans import ROW_ADDRESS, ROW_ID
from spark_catalog.tasks.row_writes import (
    ADDRESS,
    HAS_ROW,
    IDENTITY,
    RowReport,
    RowWrite,
    moved_fragments,
    write_changes,
)
from spark_catalog.tasks.staging import (
    CollectedRows,
    StagedFragments,
    StageTarget,
    collect_staged,
    discard_files,
    report,
    run_reporting,
)
from table_data import staging
from table_data.composition import transaction_message
from table_data.descriptions import append_operation, delete_operation, new_fragments
from table_data.requests.merging import MergeClauses
from table_data.table_changes import TableChanges

NotMatched = Literal["insert", "ignore"]

DRIVER_JOIN_BYTES = 128 << 20
"""Keys of the table and of the new rows of up to this size each are joined in the driver: a shuffle takes longer."""
_SOURCE: Final = "source"
_TARGET: Final = "target"
_FROM: Final = "__from"
_MATCHED_ACTIONS: Final[Mapping[str, Literal["update", "keep", "delete"]]] = {
    "update": "update",
    "ignore": "keep",
    "delete": "delete",
}


@dataclass(frozen=True, slots=True)
class MergeRules:
    """The actions of a merge on a row.

    Attributes:
        on: Key columns.
        matched: Action for a stored row with the key of a new row: "update", "ignore", "delete", or an SQL condition of
            Spark over `source` and `target` for an update.
        not_matched: Action for a new row whose key is not stored: "insert" or "ignore".
        by_source: Action for a stored row whose key no new row has: "keep", "delete", or an SQL condition of Spark over
            `target` for a deletion.

    Raises:
        InvalidWrite: `not_matched` has another value.
    """

    on: tuple[str, ...]
    matched: str = "update"
    not_matched: NotMatched = "insert"
    by_source: str = "keep"

    def __post_init__(self) -> None:
        if self.not_matched not in ("insert", "ignore"):
            raise InvalidWrite(f"when_not_matched {self.not_matched!r}: expected insert or ignore")

    @property
    def condition(self) -> str | None:
        """The condition of the update."""
        return None if self.matched in _MATCHED_ACTIONS else self.matched

    @property
    def loses_keys(self) -> bool:
        """Whether keys of the table may go."""
        return self.matched == "delete" or self.by_source != "keep"

    @property
    def adds_all(self) -> bool:
        """Whether every new row is a row of the table afterwards."""
        return self.matched == "update" and self.not_matched == "insert"

    def clauses(self) -> MergeClauses | None:
        """The same for pylance, None if it cannot be said there."""
        if self.condition is not None or self.by_source not in ("keep", "delete"):
            return None
        by_source: Literal["keep", "delete"] = "delete" if self.by_source == "delete" else "keep"
        return MergeClauses(
            self.on, _MATCHED_ACTIONS[self.matched], not_matched=self.not_matched, not_matched_by_source=by_source
        )


@dataclass(frozen=True, slots=True)
class StagedMerge:
    """A merge whose files are written.

    Attributes:
        uri: Root of the table.
        operation: What changes the table, None if nothing does.
        rows: Number of new rows that were given.
        inserted: Number of rows that were added.
        updated: Number of rows that were replaced.
        deleted: Number of rows that were deleted.
        in_driver: Whether pylance merged the rows in the driver.
        seconds: Duration.
    """

    uri: str
    operation: Operation | None
    rows: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    in_driver: bool = False
    seconds: float = 0.0

    @property
    def files(self) -> tuple[str, ...]:
        """All files that were written and are used, relative to the table."""
        if self.operation is None:
            return ()
        return tuple(reachable_files(transaction_message(self.operation, 1, None), ""))

    @property
    def new_files(self) -> tuple[str, ...]:
        """The data files with new rows, relative to the table."""
        return tuple(file for file in self.files if file.startswith("data/"))


def stage_merge(
    spark: SparkSession,
    df: DataFrame,
    changes: TableChanges,
    target: StageTarget,
    rules: MergeRules,
    *,
    driver_bytes: int,
) -> StagedMerge | StagedFragments:
    """Merge the rows of a DataFrame into the head of a table, without committing. Blocking.

    Args:
        spark: Session that runs the tasks.
        df: Rows. It is read once.
        changes: The table. Its head is the version that is changed; if there is none, all rows are new.
        target: Where and how rows are staged, on the same version.
        rules: What is done with a row.
        driver_bytes: Upper bound of rows in memory that pylance merges in the driver.

    Raises:
        GraphCheckFailed: Two rows have the same key.
        InvalidWrite: A value does not fit, or is null in a key column or a column that must not be null.
    """
    started = time.perf_counter()
    keyed = replace(target, required=tuple(dict.fromkeys((*target.required, *rules.on))))
    found = collect_staged(df, keyed, driver_bytes=driver_bytes)
    head, clauses = changes.head, rules.clauses()
    if head is not None and not found.fragments and clauses is not None:
        return _merge_in_driver(changes, head, found, target, clauses, started)
    staged = found.written(keyed, started)
    try:
        merge = _Merge(
            spark, target, rules, staged, head, stable=head is not None and has_stable_row_ids(head.manifest)
        )
        return merge.run(started)
    except BaseException:
        discard_files(target.uri, staged.files, target.storage_options, never_published=False)
        raise


def _merge_in_driver(
    changes: TableChanges,
    head: ManifestFile,
    found: CollectedRows,
    target: StageTarget,
    clauses: MergeClauses,
    started: float,
) -> StagedMerge:
    check_unique_rows(target.name, found.small, clauses.on)
    if not found.rows and clauses.not_matched_by_source == "keep":
        return StagedMerge(target.uri, None, 0, in_driver=True, seconds=time.perf_counter() - started)
    merged = staging.stage_merge(changes.dataset(), head.outline, found.small, clauses)
    operation: Operation | None = merged.operation
    if isinstance(operation, Update):
        # The keys are not claimed, as for an append: another writer may add rows at the same time.
        operation = replace(operation, inserted_keys=None)
    if not (merged.inserted or merged.updated or merged.deleted):
        operation = None
    return StagedMerge(
        target.uri,
        operation,
        found.rows,
        merged.inserted,
        merged.updated,
        merged.deleted,
        in_driver=True,
        seconds=time.perf_counter() - started,
    )


@dataclass(slots=True)
class _Merge:
    """A merge by a join in Spark. `staged` are the new rows, in files that no version names."""

    spark: SparkSession
    target: StageTarget
    rules: MergeRules
    staged: StagedFragments
    head: ManifestFile | None
    stable: bool
    source: VersionRows = field(init=False)

    def __post_init__(self) -> None:
        self.source = added_rows(self.target, self.staged.fragments, self.head)

    def run(self, started: float) -> StagedMerge | StagedFragments:
        check_unique(self.spark, self.target.name, self.source, self.rules.on)
        if self.head is None:
            if self.rules.not_matched == "ignore":
                discard_files(self.target.uri, self.staged.files, self.target.storage_options, never_published=False)
                return replace(self.staged, fragments=(), rows=0)
            return self.staged
        unmatched = self._unmatched()
        merged = None if self.stable or not self.rules.adds_all else self._in_place(unmatched, self.head)
        if merged is None:
            merged = self._written_again(unmatched, self.head)
            discard_files(self.target.uri, self.staged.files, self.target.storage_options, never_published=False)
        return replace(merged, seconds=time.perf_counter() - started)

    # -- the rows

    def _stored(self, columns: tuple[str, ...]) -> DataFrame:
        return read_pinned(self.spark, self.target.base, columns=columns).alias(_TARGET)

    def _new(self, columns: tuple[str, ...]) -> DataFrame:
        return self.source.frame(self.spark, columns).alias(_SOURCE)

    @property
    def _same_key(self) -> Column:
        return reduce(
            Column.__and__, (F.col(f"{_SOURCE}.`{name}`") == F.col(f"{_TARGET}.`{name}`") for name in self.rules.on)
        )

    def _unmatched(self) -> BitMap64:
        """Addresses of stored rows that go because no new row has their key."""
        by_source = self.rules.by_source
        if by_source == "keep":
            return BitMap64()
        names = self.rules.on if by_source == "delete" else tuple(self.source.schema.names)
        rows = self._stored((*names, ROW_ADDRESS)).join(self._new(self.rules.on), self._same_key, "left_anti")
        if by_source != "delete":
            rows = rows.where(F.expr(by_source))
        (addresses,), _ = collect_addresses(rows, [ROW_ADDRESS])
        return addresses

    # -- the new rows stay in their files

    def _in_place(self, unmatched: BitMap64, head: ManifestFile) -> StagedMerge | None:
        """Delete the stored rows with equal keys; None if a new row has the key of several stored rows."""
        stored = published_or_staged(self.target.base, head)
        on = self.rules.on
        replaced = self._replaced_here(stored)
        if replaced is None:
            is_small = stored.bytes(on) <= DRIVER_JOIN_BYTES and self.source.bytes(on) <= DRIVER_JOIN_BYTES
            replaced, used = self._pairs_here(stored) if is_small and stored.is_plain(on) else self._pairs()
            if len(used) != len(replaced):
                return None
        added = append_operation(self.staged.fragments).fragments
        inserted = self.staged.rows - len(replaced)
        return self._result(head, replaced | unmatched, added, inserted, len(replaced), len(unmatched))

    def _replaced_here(self, stored: VersionRows) -> BitMap64 | None:
        """Addresses of the stored rows with the key of a new row, looked up in the driver batch by batch.

        None for other keys than integers, for too many of them, and if several of these rows have the same key.
        """
        on = list(self.rules.on)
        if self.source.bytes(on) > DRIVER_JOIN_BYTES or stored.bytes(on) > DRIVER_SCAN_BYTES:
            return None
        new = integer_keys(self.source, on)
        if new is None:
            return None
        matched = []
        for batch in stored.batches(on, addresses=True):
            found = new.contains(batch.select(on).columns)
            if found is None:
                return None
            matched.append(batch.filter(pa.array(found)))
        rows = pa.Table.from_batches(matched) if matched else None
        if rows is None or not rows.num_rows:
            return BitMap64()
        return None if has_repeats(rows.select(on).columns) is not False else _addresses(rows[ROW_ADDRESS])

    def _pairs_here(self, stored: VersionRows) -> tuple[BitMap64, BitMap64]:
        """Addresses of the stored and of the new rows with equal keys, joined in the driver."""
        new = self.source.read(self.rules.on, addresses=True).rename_columns([*self.rules.on, _FROM])
        rows = stored.read(self.rules.on, addresses=True)
        pairs = rows.join(new, list(self.rules.on), join_type="inner")
        return _addresses(pairs[ROW_ADDRESS]), _addresses(pairs[_FROM])

    def _pairs(self) -> tuple[BitMap64, BitMap64]:
        """The same, joined in Spark."""
        columns = (*self.rules.on, ROW_ADDRESS)
        pairs = self._stored(columns).join(self._new(columns), self._same_key)
        chosen = pairs.select(
            F.col(f"{_TARGET}.{ROW_ADDRESS}").alias(ADDRESS), F.col(f"{_SOURCE}.{ROW_ADDRESS}").alias(_FROM)
        )
        (replaced, used), _ = collect_addresses(chosen, [ADDRESS, _FROM])
        return replaced, used

    # -- the new rows are joined in full and written again

    def _written_again(self, unmatched: BitMap64, head: ManifestFile) -> StagedMerge:
        rules, names = self.rules, tuple(self.source.schema.names)
        stored = rules.on if rules.condition is None else names
        how = "left" if rules.not_matched == "insert" else "inner"
        joined = self._new(names).join(
            self._stored((*stored, ROW_ADDRESS, *((ROW_ID,) if self.stable else ()))), self._same_key, how
        )
        address = F.col(f"{_TARGET}.{ROW_ADDRESS}")
        identity = F.col(f"{_TARGET}.{ROW_ID}") if self.stable else F.lit(None).cast("long")
        is_new = address.isNull()
        if rules.condition is not None:
            joined = joined.where(is_new | F.expr(rules.condition))
        elif rules.matched == "ignore":
            joined = joined.where(is_new)
        has_row = is_new if rules.matched == "delete" else F.lit(True)
        rows = joined.select(
            address.alias(ADDRESS),
            identity.alias(IDENTITY),
            has_row.alias(HAS_ROW),
            *(F.col(f"{_SOURCE}.`{name}`").alias(name) for name in names),
        )
        written = _write_changes(rows, self.target, stable=self.stable)
        addresses = reduce(BitMap64.__or__, (BitMap64.deserialize(each.addresses) for each in written), BitMap64())
        changed = sum(each.changed_rows for each in written)
        added = sum(each.inserted_rows for each in written)
        fragments = tuple(
            message
            for each in written
            for message in (
                *moved_fragments(each),
                *new_fragments([FragmentMetadata.from_json(x) for x in each.inserted]),
            )
        )
        if rules.matched == "delete":
            return self._result(head, addresses | unmatched, fragments, added, 0, changed + len(unmatched))
        return self._result(head, addresses | unmatched, fragments, added - changed, changed, len(unmatched))

    def _result(
        self,
        head: ManifestFile,
        gone: BitMap64,
        added: tuple[pb.DataFragment, ...],
        inserted: int,
        updated: int,
        deleted: int,
    ) -> StagedMerge:
        deletes = stage_row_deletes(self.spark, self.target, gone)
        operation: Operation | None = None
        if added:
            operation = _update(deletes, added, head)
        elif deletes.rows:
            predicate = f"rows of a merge on {', '.join(self.rules.on)}"
            operation = delete_operation(deletes.updated, deletes.removed, predicate)
        return StagedMerge(self.target.uri, operation, self.staged.rows, inserted, updated, deleted)


def _update(deletes: StagedDeletes, added: tuple[pb.DataFragment, ...], head: ManifestFile) -> Update:
    return Update(
        updated=tuple(map(fragment_message, deletes.updated)),
        removed_ids=deletes.removed,
        new=added,
        value_fields=tuple(sorted(field.id for field in head.manifest.fields)),
    )


def _write_changes(rows: DataFrame, target: StageTarget, *, stable: bool) -> list[RowReport]:
    write = RowWrite(
        target.name,
        target.uri,
        target.schema,
        target.base,
        storage_options=target.storage_options,
        stable_row_ids=stable,
        max_rows_per_file=target.max_rows_per_file,
        max_bytes_per_file=target.max_bytes_per_file,
    )

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield report(0, None, write_changes(write, batches).encode())

    return [RowReport.decode(each.data) for each in run_reporting(rows, work) if each.data is not None]


def _addresses(column: pa.ChunkedArray) -> BitMap64:
    return bitmap64_of(column.to_numpy().view(np.uint64))

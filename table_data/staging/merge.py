"""Merges of rows into a table by key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from lance_core.format.outline import AnyManifest
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import Delete, Update
from table_data.arrow.fitting import columns_for, for_lance
from table_data.arrow.intake import refused_as_such
from table_data.arrow.sources import rows_of
from table_data.arrow.storable import check_readable_types
from table_data.descriptions import delete_operation, update_operation
from table_data.errors import InvalidCall
from table_data.requests.merging import MergeClauses
from table_data.staging.handles import expression_of
from table_data.staging.rows import check_written, outgrown_as_such

MAX_CLAIMED_KEYS = 65_536
"""Upper bound of the keys that one merge claims in its transaction.

A merge of more keys that inserts rows asserts the table's version instead, since the message would grow too large.
"""


_NULL = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class StagedMergeInsert:
    """The operation of a merge, its row counts, and the reason (`guard`) if its keys are not claimed one by one."""

    operation: Update | Delete
    inserted: int
    updated: int
    deleted: int
    guard: str | None


def stage_merge(
    dataset: lance.LanceDataset, manifest: AnyManifest, data: Any, clauses: MergeClauses, *, checked: bool = False
) -> StagedMergeInsert:
    """Merge rows into the table by key (`merge_insert`), without committing.

    Rows whose key is null match none. Raises `InvalidCall` if a key column is missing in the table or in the rows, or
    has a double quote in its name, by which pylance finds no column, and for rows that Lance would not give back;
    `SchemaMismatch` for rows that do not fit. With `checked` their values were validated before.
    """
    on = list(clauses.on)
    _check_keys(dataset, on)
    hashes: set[int] = set()

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        if clauses.inserts and len(hashes) <= MAX_CLAIMED_KEYS:
            hashes.update(_key_hashes([batch.column(name) for name in on]))
        return batch

    with refused_as_such() as refusals:
        schema = dataset.schema
        given = rows_of(data, schema)
        missing = [name for name in on if name not in given.schema.names]
        if missing:
            raise InvalidCall(f"merge on {on}: the rows have no column {missing[0]!r}, only {given.schema.names}")
        wanted = columns_for(given.schema, schema, whole=False)
        source = for_lance(given, refusals, schema=wanted, checked=checked)
        check_readable_types(source.schema, dataset.data_storage_version)
        builder = _merge_builder(dataset, clauses, use_index=_use_index(source, on, clauses.use_index))
        if isinstance(source, pa.Table):  # of whose size pylance makes use: it takes half the time
            for batch in source.to_batches():
                look(batch)
        else:
            source = pa.RecordBatchReader.from_batches(source.schema, map(look, source))
        with outgrown_as_such(dataset):
            transaction, counts = builder.execute_uncommitted(source)
    inserted, updated, deleted = (int(counts[f"num_{kind}_rows"]) for kind in ("inserted", "updated", "deleted"))
    operation = transaction.operation
    if isinstance(operation, lance.LanceOperation.Delete):
        gone = delete_operation(operation.updated_fragments, operation.deleted_fragment_ids, operation.predicate)
        return StagedMergeInsert(gone, inserted, updated, deleted, None)
    check_written(dataset, [*operation.updated_fragments, *operation.new_fragments])
    claim, guard = None, None
    if clauses.inserts and inserted:
        if len(hashes) > MAX_CLAIMED_KEYS:
            guard = f"it inserts some of more than {MAX_CLAIMED_KEYS} keys, too many to compare with those of others"
        else:
            fields = {field.name: field.id for field in manifest.fields if field.parent_id == -1}
            claim = pb.Transaction.KeyExistenceFilter(field_ids=[fields[name] for name in on])
            claim.exact.key_hashes.extend(sorted(hashes))
    return StagedMergeInsert(update_operation(operation, claim), inserted, updated, deleted, guard)


def _check_keys(dataset: lance.LanceDataset, on: list[str]) -> None:
    quoted = [name for name in on if '"' in name]
    if quoted:
        raise InvalidCall(f"merge on {on}: expected names without double quotes, found {quoted[0]!r}")
    if not on or not set(on) <= set(dataset.schema.names):
        raise InvalidCall(f"merge on {on}: expected columns among {dataset.schema.names}")


def _use_index(source: pa.Table | pa.RecordBatchReader, on: Sequence[str], wanted: bool | None) -> bool | None:
    """Whether to find matches by indices, None if pylance decides. By an index it loses rows whose key is null."""
    if isinstance(source, pa.Table):
        has_nulls = any(source.column(name).null_count for name in on)
    else:
        has_nulls = any(source.schema.field(name).nullable for name in on)
    return False if has_nulls else wanted


def _merge_builder(dataset: lance.LanceDataset, clauses: MergeClauses, *, use_index: bool | None) -> Any:
    builder = lance.LanceDataset.merge_insert(dataset, list(clauses.on))
    match clauses.matched:
        case "update":
            builder = builder.when_matched_update_all(_checked(dataset, clauses.condition, "condition"))
        case "fail":
            builder = builder.when_matched_fail()
        case "delete":
            builder = builder.when_matched_delete()
    if clauses.inserts:
        builder = builder.when_not_matched_insert_all()
    if clauses.not_matched_by_source == "delete":
        builder = builder.when_not_matched_by_source_delete(
            _checked(dataset, clauses.delete_condition, "delete_condition")
        )
    if use_index is not None:
        builder = builder.use_index(use_index)
    return builder


def _checked(dataset: lance.LanceDataset, condition: str | None, what: str) -> str | None:
    return None if condition is None else expression_of(dataset, condition, what)


def _key_hashes(columns: Sequence[pa.Array]) -> Iterable[int]:
    """A 64-bit hash for each key. The columns have the types of the table, so equal keys have equal hashes."""
    if all(pa.types.is_integer(column.type) for column in columns):
        return _integer_hashes(columns)
    keys = zip(*(column.to_pylist() for column in columns), strict=True)
    return (int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest(), "big") for key in keys)


def _integer_hashes(columns: Sequence[pa.Array]) -> list[int]:
    """The same for integers of any width, in an eighth of the time."""
    hashes = np.full(len(columns[0]), len(columns), np.uint64)
    for column in columns:
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        hashes = _mixed(hashes + _mixed(values + _NULL * nulls))
    found: list[int] = hashes.tolist()
    return found


def _mixed(numbers: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Another number for each number, all bits of which depend on all bits: what ends a step of SplitMix64."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))

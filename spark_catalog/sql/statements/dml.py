"""Writes: the function of the tasks, and the operations that their reports become."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import numpy as np
from lance.fragment import FragmentMetadata
from pyroaring import BitMap64

from lance_core.data import arrow_schema
from lance_core.format.deletion import deletion_file_path
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.features import has_stable_row_ids
from lance_core.transaction.operations import Append, Delete, Update
from spark_catalog.options import named_write_options
from spark_catalog.sql.errors import InvalidStatement
from spark_catalog.sql.schemas import parse_schema, stored_schema
from spark_catalog.sql.sessions import Statement
from spark_catalog.sql.tables import Versions, resolve
from spark_catalog.sql.transactions import SqlTransaction, StagedFiles
from spark_catalog.tasks.row_writes import RowReport, RowWrite, moved_fragments, write_function
from spark_catalog.tasks.staging import fragment_files
from table_data import staging
from table_data.batch_operations import Json, TableId
from table_data.descriptions import new_fragments, overwrite_operation
from table_data.table_changes import TableChanges

CHANGES = frozenset({"delete", "update", "merge"})
_EVERYTHING = "true"
_OF_BATCH = frozenset({"message", "isolation"})


def plan_write(
    versions: Versions,
    transaction: SqlTransaction | None,
    *,
    table: list[str],
    ref: Json,
    mode: str,
    where: str | None,
    schema: Json,
    options: Mapping[str, str],
) -> Json:
    """The function of the tasks. `mode` is append, overwrite, overwrite_where, or one of `CHANGES`.

    Raises `InvalidCall` for an option of a write that there is not.
    """
    del where
    name = ".".join(table)
    file_rows = named_write_options(options).max_rows_per_file
    storage = versions.storage_options(tuple(table), ref["uri"])
    if ref["version"] is None:  # a new table, or another schema for all rows
        target = RowWrite(
            name,
            ref["uri"],
            stored_schema(parse_schema(ref["schema"]), name),
            None,
            replaces=bool(ref["replaces"]),
            storage_options=storage,
            max_rows_per_file=file_rows,
        )
    else:
        version, file = resolve(versions, transaction, ref)
        stored = arrow_schema(file.manifest.fields)
        base = None if mode == "overwrite" else version
        stable = has_stable_row_ids(file.manifest)
        target = RowWrite(
            name,
            ref["uri"],
            stored,
            base,
            replaces=True,
            storage_options=storage,
            stable_row_ids=stable,
            max_rows_per_file=file_rows,
        )
    del schema
    return {"function": base64.b64encode(write_function(target, changes=mode in CHANGES)).decode()}


def stage_rows(
    statement: Statement,
    storage_options: Mapping[str, str],
    *,
    table: list[str],
    ref: Json,
    mode: str,
    where: str | None,
    reports: Sequence[str],
    options: Mapping[str, str],
) -> None:
    """Stage the files that the tasks reported. The files are remembered before anything can fail."""
    transaction = statement.transaction
    transaction.files += reported_files(ref, reports, storage_options)
    if statement.savepoint is None:
        _describe(transaction, options)
    changes = transaction.require(tuple(table))
    found = [_report(text) for text in reports]
    inserted = [fragment for report in found for fragment in _fragments(report.inserted)]
    call = f"statement {statement.number}: {mode.replace('_', ' ').upper()}"
    if ref["version"] is None or mode == "overwrite":
        fields = ref["schema"] if ref["version"] is None else None
        _replace(transaction, changes, inserted, call, fields)
    elif mode in CHANGES:
        _change(statement, changes, found, call, mode)
    else:
        if mode == "overwrite_where":
            assert where is not None
            _delete(transaction, changes, where, call)
        added = new_fragments(inserted)
        if added:
            # An insertion of what is not there yet, and a MERGE that only inserts, which Spark plans as one.
            guard = f"{call} read the table that it appends to" if tuple(table) in statement.read else None
            before = changes.require_head()
            transaction.take(changes, Append(added), call=call, guard=guard)
            if mode == "overwrite_where":
                _check_rows_match(changes, before, str(where))


def check_options(options: Mapping[str, str], *, in_transaction: bool) -> None:
    """Refuse the options of a write, before its tasks begin.

    Raises:
        InvalidCall: There is no such option, or its value is wrong.
        InvalidStatement: The option is one of the whole transaction of several statements.
    """
    named_write_options(options)
    found = sorted(name.lower() for name in options if name.lower() in _OF_BATCH)
    if in_transaction and found:
        raise InvalidStatement(
            f"options {', '.join(found)}: expected as arguments of system.begin, since one batch has all statements of "
            "the transaction"
        )


def _describe(transaction: SqlTransaction, options: Mapping[str, str]) -> None:
    given = named_write_options(options)
    names = {name.lower() for name in options}
    transaction.describe_batch(message=given.message, isolation=given.isolation if "isolation" in names else None)


def _check_rows_match(changes: TableChanges, before: ManifestFile, where: str) -> None:
    """Raise `InvalidStatement` if a row in a fragment that was not there `before` does not match the filter."""
    dataset = changes.dataset()
    kept = {int(fragment.id) for fragment in before.manifest.fragments}
    new = [fragment for fragment in dataset.get_fragments() if fragment.fragment_id not in kept]
    wrong = dataset.scanner(filter=f"({where}\n) IS NOT TRUE", fragments=new).count_rows()
    if wrong:
        raise InvalidStatement(f"{changes.name}: {wrong} new rows do not match the filter of REPLACE WHERE: {where}")


def delete(statement: Statement, table: TableId, where: str) -> None:
    """Delete the rows that match a filter of Lance."""
    changes = statement.transaction.require(table)
    _delete(statement.transaction, changes, where, f"statement {statement.number}: DELETE WHERE {where}")


def reported_files(ref: Json, reports: Sequence[str], storage_options: Mapping[str, str]) -> list[StagedFiles]:
    """The data files of the reports of tasks."""
    paths: list[str] = []
    for text in reports:
        report = _report(text)
        paths += fragment_files(tuple(_fragments((*report.inserted, *report.updated))))
    is_new = ref["version"] is None and not ref["replaces"]
    return [StagedFiles(ref["uri"], tuple(paths), is_new, storage_options)] if paths else []


def _replace(
    transaction: SqlTransaction,
    changes: TableChanges,
    inserted: Sequence[FragmentMetadata],
    call: str,
    fields: Json | None,
) -> None:
    if fields is not None:
        schema = stored_schema(parse_schema(fields), changes.name)
    else:
        schema = arrow_schema(changes.require_head().manifest.fields)
    transaction.take(changes, overwrite_operation(schema, inserted), call=call)


def _delete(transaction: SqlTransaction, changes: TableChanges, where: str, call: str) -> None:
    head = changes.require_head()
    if where == _EVERYTHING:
        gone = tuple(int(fragment.id) for fragment in head.manifest.fragments)
        if gone:
            transaction.take(changes, Delete((), gone, where), call=call)
        return
    operation, rows = staging.stage_delete(changes.dataset(), changes.files, head, where)
    if rows:
        _remember(transaction, changes, operation.updated)
        transaction.take(changes, operation, call=call)


def _change(statement: Statement, changes: TableChanges, reports: Sequence[RowReport], call: str, mode: str) -> None:
    transaction = statement.transaction
    head = changes.require_head()
    addresses = BitMap64()
    for report in reports:
        addresses |= BitMap64.deserialize(report.addresses)
    new = [fragment for report in reports for fragment in new_fragments(_fragments(report.inserted))]
    moved = [fragment for report in reports for fragment in moved_fragments(report)]
    if not addresses and not new:
        return
    updated, removed = _without(changes, addresses)
    _remember(transaction, changes, updated)
    inserts = sum(report.inserted_rows for report in reports) > len(addresses)
    guard = None
    if mode == "merge" and inserts:
        guard = "MERGE inserted rows, and another commit may have inserted rows that match them"
    if not new and not moved:
        predicate = f"rows of {mode.upper()} by address"
        transaction.take(changes, Delete(updated, removed, predicate), call=call, guard=guard)
        return
    fields = tuple(sorted(field.id for field in head.manifest.fields))
    operation = Update(updated=updated, removed_ids=removed, new=(*moved, *new), value_fields=fields)
    transaction.take(changes, operation, call=call, guard=guard)


def _without(changes: TableChanges, addresses: BitMap64) -> tuple[tuple[pb.DataFragment, ...], tuple[int, ...]]:
    """Fragments with deletion files that also hold earlier deletions, and the ids of fragments without rows left."""
    rows = staging.RowSet()
    rows.add(np.array(addresses.to_array(), np.uint64))
    return changes.files.delete_rows(changes.require_head().outline, rows.by_fragment)


def _remember(transaction: SqlTransaction, changes: TableChanges, updated: Sequence[pb.DataFragment]) -> None:
    """Remember deletion files. Those of earlier versions are not among them: each change writes a file of its own."""
    paths = tuple(deletion_file_path("", fragment.id, fragment.deletion_file) for fragment in updated)
    transaction.files.append(StagedFiles(changes.uri, paths, False, changes.options))


def _report(text: str) -> RowReport:
    return RowReport.decode(base64.b64decode(text))


def _fragments(texts: Sequence[str]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_json(text) for text in texts]

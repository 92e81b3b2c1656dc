"""Commits of pylance, and the outcome of a stale commit by this engine after each."""

from __future__ import annotations

from collections.abc import Callable

import lance
from lance.lance import DatasetBasePath

from lance_core.commit.loop import commit_transaction
from lance_core.errors import RetryableTransaction, TransactionConflict
from lance_core.transaction.operations import Operation, encode_transaction
from tests.transaction.tables import Table, replace_data, rows


def rewrite_column(dataset: lance.LanceDataset, start: int) -> None:
    """New values for column x of two rows; the index on id makes pylance write a column instead of moving rows."""
    merge = dataset.merge_insert("id").when_matched_update_all()
    merge.execute(rows(start, start + 2).drop(["s"]))
    assert lance.dataset(dataset.uri).read_transaction(dataset.version).operation.fields_modified == [1]


def compact(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files()


PYLANCE: dict[str, Callable[[lance.LanceDataset], object]] = {
    "append": lambda d: lance.write_dataset(rows(90, 95), d, mode="append"),
    "delete, other row": lambda d: d.delete("id = 4"),
    "delete, same row": lambda d: d.delete("id = 3"),
    "delete elsewhere": lambda d: d.delete("id = 14"),
    "delete of the fragment": lambda d: d.delete("id < 10"),
    "update, other row": lambda d: d.update({"x": "7"}, where="id = 4"),
    "update, same row": lambda d: d.update({"x": "7"}, where="id = 3"),
    "upsert": lambda d: (
        d.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(19, 22))
    ),
    "columns": lambda d: rewrite_column(d, 4),
    "columns elsewhere": lambda d: rewrite_column(d, 14),
    "overwrite": lambda d: lance.write_dataset(rows(0, 2), d, mode="overwrite"),
    "create_index": lambda d: d.create_scalar_index("x", "BTREE"),
    "rewrite": compact,
    "merge": lambda d: d.add_columns({"y": "x"}),
    "project": lambda d: d.drop_columns(["s"]),
    "restore": lambda d: lance.dataset(d.uri, version=1).restore(),
    "config, other key": lambda d: d.update_config({"other": "1"}),
    "config, same key": lambda d: d.update_config({"k": "1"}),
    "schema metadata": lambda d: d.update_schema_metadata({"k": "1"}),
    "data_replacement": lambda d: replace_data(d, 0),
    "data_replacement elsewhere": lambda d: replace_data(d, 1),
    "update_bases": lambda d: d.add_bases([DatasetBasePath("/nowhere", name="n")]),
}


OK, R, I = "committed", "retryable", "incompatible"  # noqa: E741


def outcome_of(table: Table, operation: Operation, read_version: int) -> str:
    """OK, R or I; R and I say so when the conflict does not name the newest version, the one that stands in the way."""
    transaction = encode_transaction(operation, read_version=read_version)
    try:
        commit_transaction(table.store, "t", transaction)
    except TransactionConflict as error:
        named = error.version == table.open().version
        return f"{R if isinstance(error, RetryableTransaction) else I}{'' if named else ' with the wrong version'}"
    return OK

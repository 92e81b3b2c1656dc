"""The last committed epoch of a streaming query, as part of the batch that commits the rows of the epoch.

A query has a table without rows, `_streams$NAME` below the namespace that it writes to. The config of this table holds
the mark. Each epoch replaces it by one transaction of the same batch as the rows. Two transactions that change the same
config keys conflict, so of two drivers that began at the same mark one commits, and the other commits nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession

from lance_core.transaction.operations import MapUpdate, UpdateConfig
from namespace_client.access import CatalogAccess
from namespace_client.staged_transaction import StagedTransaction
from spark_catalog.errors import InvalidWrite
from spark_catalog.tables.pinned import PinnedTable
from table_data.batch_operations import DELIMITER, TableId
from table_data.descriptions import overwrite_operation

NAMESPACE: Final = "_streams"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_EPOCH: Final = "stream.epoch"
_ATTEMPT: Final = "stream.attempt"
_CHECKPOINT: Final = "stream.checkpoint"
_COLUMNS: Final = pa.schema([("epoch", pa.int64())])
"""A table needs a column. There are no rows."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The last committed epoch of a query.

    Attributes:
        epoch: Number of the epoch.
        attempt: Unique name of the attempt that committed it.
        checkpoint: Id of the checkpoint that the epochs are counted by, empty if unknown.
    """

    epoch: int
    attempt: str
    checkpoint: str

    def config(self) -> dict[str, str]:
        """The mark as config of a table."""
        return {_EPOCH: str(self.epoch), _ATTEMPT: self.attempt, _CHECKPOINT: self.checkpoint}


def marks_table(namespace: Sequence[str], query: str) -> TableId:
    """The table with the mark of a query. Raises `InvalidWrite` for a name that a table cannot have."""
    if not _NAME.fullmatch(query):
        raise InvalidWrite(f"query {query!r}: expected at most 200 letters, digits, '_', '.' and '-'")
    return (*namespace, NAMESPACE, query)


def checkpoint_id(spark: SparkSession) -> str:
    """Id of the checkpoint of the micro-batch that this thread runs. Empty outside of one, and on Spark Connect."""
    try:
        return spark.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
    except PySparkAttributeError:
        return ""


def read_mark(transaction: StagedTransaction, table: TableId, storage_options: Mapping[str, str]) -> Mark | None:
    """The mark at the begin of a transaction: one description of a table and one manifest, whatever its age.

    Returns:
        The mark, None before the first epoch.

    Raises:
        InvalidWrite: The table holds no mark.
        ServerUnreachable: The server does not respond.
    """
    state = transaction.describe(table)
    if state is None or state.version is None:
        return None
    config = PinnedTable.of(state, storage_options).open().config()
    try:
        return Mark(int(config[_EPOCH]), config[_ATTEMPT], config[_CHECKPOINT])
    except (KeyError, ValueError):
        raise InvalidWrite(
            f"{DELIMITER.join(table)}: expected the mark of a stream in its config, found {sorted(config)}"
        ) from None


def is_committed(mark: Mark | None, table: TableId, epoch: int, checkpoint: str) -> bool:
    """Whether an epoch is committed.

    Raises `InvalidWrite` if the mark is of another checkpoint: its epochs are other rows under the same numbers.
    """
    if mark is None:
        return False
    if checkpoint and mark.checkpoint and checkpoint != mark.checkpoint:
        raise InvalidWrite(
            f"{DELIMITER.join(table)}: epoch {mark.epoch} is of checkpoint {mark.checkpoint}, expected {checkpoint}: "
            "give a query with a new checkpoint a new name, or drop this table"
        )
    return epoch <= mark.epoch


def stage_mark(access: CatalogAccess, transaction: StagedTransaction, table: TableId, mark: Mark) -> None:
    """Add the new mark to a transaction that began at the mark before it.

    Creates the namespace of the marks if there is none. If another transaction changes the mark first, this one
    conflicts.
    """
    state = transaction.describe(table)
    if state is None:
        access.ensure_namespace(table[:-1])
        transaction.declare(table)
    if state is None or state.version is None:
        first = replace(overwrite_operation(_COLUMNS, ()), config_upserts=mark.config())
        transaction.stage(table, first, call=f"first epoch {mark.epoch}")
    else:
        transaction.stage(table, UpdateConfig(MapUpdate(mark.config())), call=f"epoch {mark.epoch}")

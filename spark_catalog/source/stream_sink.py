"""Sink of the data source: rows are staged in tasks, each epoch is one batch with a mark, committed on the driver.

Spark makes a writer in a process of its own for the plan of a query, for each commit and for each abort. It aborts an
epoch whose commit raised, too. So the commit puts a note into a file before it sends anything, and the abort removes no
staged file while the note is there. The note goes when the outcome is known.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import fsspec
import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from namespace_client.access import CatalogAccess
from namespace_client.errors import RetryableConflict
from namespace_client.staged_transaction import StagedTransaction
from spark_catalog.errors import GraphError, WriteUnknown
from spark_catalog.options import StreamWriteOptions
from spark_catalog.source.resolving import connect
from spark_catalog.streaming.epochs import Epoch
from spark_catalog.streaming.marks import marks_table
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.types import storable_schema
from spark_catalog.tasks.staging import StageTarget, discard_files, fragment_files, stage_partition
from table_data.arrow.fitting import check_columns, named
from table_data.batch_operations import TableId, TableState
from table_data.descriptions import append_operation, overwrite_operation, written_fields
from table_data.errors import InvalidCall


@dataclass(frozen=True, slots=True)
class PlannedStream:
    """A stream that is written to a table. Pickled into the tasks.

    Attributes:
        options: Options of the sink.
        target: Where and how rows are staged. Its version is that of the start of the query.
        overwrite: Whether each epoch replaces all rows.
        query: Name of the query.
        checkpoint: Id of its checkpoint, empty if unknown.
    """

    options: StreamWriteOptions
    target: StageTarget
    overwrite: bool
    query: str
    checkpoint: str

    @property
    def table(self) -> TableId:
        """Path of the table."""
        assert self.options.place.table is not None
        return self.options.place.table


@dataclass(frozen=True, slots=True)
class StagedEpoch(WriterCommitMessage):  # type: ignore[misc] # the base class has no types
    """The report of a task: fragments as pylance writes them as JSON, and the fields of the table at that time."""

    fragments: tuple[Any, ...]
    fields: tuple[Any, ...] = ()


def plan_stream(options: StreamWriteOptions, schema: StructType, *, overwrite: bool) -> PlannedStream:
    """Find the table. A table that is not there is made, without rows.

    Raises:
        InvalidCall: The columns do not fit the table, or the query has no name.
        CatalogUnreachable: The server does not respond.
    """
    place = options.place
    checkpoint = _checkpoint_id(options)
    query = options.query or checkpoint
    if not query:
        raise InvalidCall(f"{place.name}: expected option query: the id of the checkpoint cannot be read")
    assert place.table is not None
    marks_table(place.table[:-1], query)
    new = pa.schema([item.with_nullable(True) for item in storable_schema(place.name, schema)])
    with connect(place) as access:
        state = _existing(access, place.table, new)
    stored = new
    if not overwrite:
        stored = PinnedTable.of(state, place.storage_options).open().schema
    with named(place.name):
        check_columns(schema.names, stored)
    target = StageTarget(
        place.name,
        state.uri,
        stored,
        overwrites=True,
        storage_options=dict(place.storage_options),
        max_rows_per_file=options.max_rows_per_file,
    )
    return PlannedStream(options, target, overwrite, query, checkpoint)


class LanceStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc] # the base class has no types
    """Stages the rows of each epoch and commits them in one batch with the mark of the query."""

    def __init__(self, planned: PlannedStream) -> None:
        self._planned = planned

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one partition. Raises `InvalidCall` for a value that does not fit the table."""
        target = self._planned.target
        fields: tuple[Any, ...] = ()
        if not self._planned.overwrite:  # the version of the start of the query may have been cleaned up since
            newest = lance.dataset(target.uri, storage_options=dict(target.storage_options) or None)
            base = PinnedTable.of_dataset(target.uri, newest, target.storage_options)
            target, fields = replace(target, version=base), _fields(newest)
        reports = [batch.to_pylist()[0] for batch in stage_partition(iterator, target)]
        return StagedEpoch(tuple(fragment for report in reports for fragment in json.loads(report["payload"])), fields)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit the files that the tasks staged, unless the epoch is committed: then remove them.

        Raises:
            EpochTaken: Another driver has committed the epoch meanwhile.
            CommitRejected: The server refused the batch.
            CommitUnknown: The outcome is unknown. No file is removed.
            CatalogUnreachable: The batch was never sent.
        """
        planned, place = self._planned, self._planned.options.place
        fragments = _fragments(messages)
        note = _note(planned, batchId, fragments)
        note.touch()
        try:
            with connect(place) as access:
                table = marks_table(planned.table[:-1], planned.query)
                committed = Epoch(access, table, batchId, planned.checkpoint, place.storage_options).commit(
                    lambda: _transaction(planned, access),
                    lambda transaction: transaction,
                    lambda transaction: _stage(planned, transaction, messages),
                )
        except WriteUnknown:
            raise
        except GraphError:
            note.unlink(missing_ok=True)
            raise
        # Anything else, such as an interrupt, may have come while the batch was under way: the note stays.
        note.unlink(missing_ok=True)
        if not committed:
            _discard(planned, fragments)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove the files of the tasks that succeeded, unless the batch may have been committed.

        Files of failed attempts are not known. Garbage collection removes them.
        """
        fragments = _fragments(messages)
        note = _note(self._planned, batchId, fragments)
        if note.exists():
            note.unlink()
        else:
            _discard(self._planned, fragments)


def _existing(access: CatalogAccess, table: TableId, schema: pa.Schema) -> TableState:
    """The table, made without rows if it is not there. Another process may make it at the same time."""
    for _ in range(2):
        transaction = StagedTransaction(access, key_prefix="spark-stream")
        try:
            with transaction:
                state = transaction.describe(table)
                if state is not None and state.version is not None:
                    return state
                if state is None:
                    transaction.declare(table)
                transaction.stage(table, overwrite_operation(schema, ()), call="create")
        except RetryableConflict:
            continue
    state = access.table(table)
    if state is None or state.version is None:
        raise InvalidCall(f"{'$'.join(table)}: expected a table with a version, found it dropped while it was made")
    return state


def _transaction(planned: PlannedStream, access: CatalogAccess) -> StagedTransaction:
    options = planned.options
    return StagedTransaction(
        access,
        message=options.message,
        isolation=options.isolation,
        storage_options=options.place.storage_options,
        key_prefix="spark-stream",
    )


def _stage(
    planned: PlannedStream, transaction: StagedTransaction, messages: Sequence[WriterCommitMessage | None]
) -> None:
    target, table, fragments = planned.target, planned.table, _fragments(messages)
    state = transaction.describe(table)
    if state is None or state.version is None or state.uri != target.uri:
        raise InvalidCall(
            f"{target.name}: expected the table that the query began with, found it "
            f"{'dropped' if state is None else 'dropped and made again'}: restart the query"
        )
    if planned.overwrite:
        transaction.stage(table, overwrite_operation(target.schema, fragments), call="overwrite")
    elif fragments:
        found = _fields(PinnedTable.of(state, target.storage_options).open())
        if any(cast("StagedEpoch", message).fields != found for message in messages if message is not None):
            raise InvalidCall(f"{target.name}: its columns changed while the epoch was staged: restart the query")
        transaction.stage(table, append_operation(fragments), call="append")


def _fields(dataset: lance.LanceDataset) -> tuple[tuple[int, int, str, str], ...]:
    """Number, number of the parent, name and type of each field. Fragments refer to fields by number."""
    fields = written_fields(dataset.lance_schema)
    return tuple((field.id, field.parent_id, field.name, field.logical_type) for field in fields)


def _fragments(messages: Sequence[WriterCommitMessage | None]) -> tuple[FragmentMetadata, ...]:
    staged = [cast("StagedEpoch", message) for message in messages if message is not None]
    return tuple(FragmentMetadata.from_json(json.dumps(fragment)) for one in staged for fragment in one.fragments)


def _discard(planned: PlannedStream, fragments: tuple[FragmentMetadata, ...]) -> None:
    target = planned.target
    discard_files(target.uri, fragment_files(fragments), target.storage_options, never_published=False)


def _note(planned: PlannedStream, epoch: int, fragments: tuple[FragmentMetadata, ...]) -> Path:
    """The file that says that a batch of the epoch with these fragments may have been sent."""
    parts = (planned.target.uri, planned.query, str(epoch), *fragment_files(fragments))
    name = blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
    return Path(tempfile.gettempdir()) / f"lance-stream-{name}.sent"


def _checkpoint_id(options: StreamWriteOptions) -> str:
    """Id of the checkpoint, which Spark writes before it plans the query. Empty if it cannot be read."""
    if options.checkpoint is None:
        return ""
    try:
        with fsspec.open(f"{options.checkpoint.rstrip('/')}/metadata", "rb") as file:
            return str(json.load(file)["id"])
    except (OSError, ImportError, ValueError, KeyError):
        return ""

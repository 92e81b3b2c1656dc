"""Writer of the data source: staging in tasks, one commit on the driver.

Spark plans a write, commits it and aborts it in three processes of the driver's machine. It aborts a write whose commit
raised, too. So the commit puts a mark into a file before it sends anything, and the abort removes no staged file while
the mark is there. The mark goes when the outcome is known.
"""

from __future__ import annotations

import base64
import json
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from namespace_client.access import CatalogAccess
from namespace_client.errors import CatalogUnreachable, CommitRejected
from namespace_client.staged_transaction import StagedTransaction
from namespace_client.wire import CatalogHead
from spark_catalog.options import WriteOptions
from spark_catalog.source.resolving import connect
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.types import storable_schema
from spark_catalog.tasks.staging import StageTarget, discard_files, fragment_files, stage_partition
from table_data.arrow.fitting import check_columns, named
from table_data.descriptions import append_operation, overwrite_operation
from table_data.errors import InvalidCall
from table_data.pylance_errors import plain_text


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A write that is planned. Pickled into the tasks and into the processes that commit and abort.

    Attributes:
        options: Options of the write.
        target: Where and how rows are staged.
        overwrite: Whether the rows replace all others.
        new: Whether the write creates the table.
        begin: Catalog version that the write is built on; None for a table at a URI.
        mark: Path of the file that says that the batch may have been sent.
    """

    options: WriteOptions
    target: StageTarget
    overwrite: bool
    new: bool
    begin: CatalogHead | None
    mark: str

    @property
    def call(self) -> str:
        """The name of the write, for results and errors."""
        return "overwrite" if self.overwrite else "append"

    @property
    def replaces(self) -> bool:
        """Whether the rows are a version of their own."""
        return self.overwrite or self.target.version is None


@dataclass(frozen=True, slots=True)
class StagedRows(WriterCommitMessage):  # type: ignore[misc] # the base class has no types
    """The report of a task: its fragments as pylance writes them as JSON."""

    rows: int
    fragments: tuple[Any, ...]


def plan_write(options: WriteOptions, schema: StructType, *, overwrite: bool) -> PlannedWrite:
    """Find the table and its version, or reserve a location for a new one.

    Raises:
        InvalidCall: The columns do not fit the table, or there is no such version.
        CatalogUnreachable: The server does not respond.
    """
    place, begin = options.place, None
    if place.server is not None:
        with connect(place) as access:
            transaction = StagedTransaction(access)
            with transaction:
                assert place.table is not None
                state = transaction.describe(place.table)
                new = state is None
                if state is None:
                    state = transaction.declare(place.table)
                begin = transaction.begin
        uri = state.uri
        found = None if state.version is None else PinnedTable.of(state, place.storage_options)
    else:
        assert place.uri is not None
        uri, found = place.uri, _version(place.uri, options)
        new = found is None
    base = None if overwrite else found
    stored = None if base is None else base.open().schema
    target = StageTarget(
        place.name,
        uri,
        stored if stored is not None else _new_schema(place.name, schema),
        version=base,
        overwrites=overwrite and found is not None,
        storage_options=dict(place.storage_options),
        max_rows_per_file=options.max_rows_per_file,
    )
    with named(target.name):
        check_columns(schema.names, target.schema)
    mark = str(Path(tempfile.gettempdir()) / f"lance-write-{uuid.uuid4()}.sent")
    return PlannedWrite(options, target, overwrite, new, begin, mark)


class LanceWriter(DataSourceArrowWriter):  # type: ignore[misc] # the base class has no types
    """Stages the rows of a DataFrame and commits them in one batch, or writes down the staged operations."""

    def __init__(self, planned: PlannedWrite) -> None:
        self._planned = planned

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one partition. Raises `InvalidCall` for a value that does not fit the table."""
        reports = [batch.to_pylist()[0] for batch in stage_partition(iterator, self._planned.target)]
        return StagedRows(
            sum(report["rows"] for report in reports),
            tuple(fragment for report in reports for fragment in json.loads(report["payload"])),
        )

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the files that the tasks staged. Nothing is visible unless this returns, or raises `CommitUnknown`.

        Raises:
            RetryableConflict: Another commit is in the way, and the write can be repeated.
            CommitRejected: The server refused the batch for another reason.
            CommitUnknown: The outcome is unknown. No file is removed.
            CatalogUnreachable: The batch was never sent.
        """
        planned = self._planned
        staged = [cast("StagedRows", message) for message in messages if message is not None]
        fragments = tuple(FragmentMetadata.from_json(json.dumps(item)) for one in staged for item in one.fragments)
        if planned.options.staged is not None:
            _write_down(planned, fragments, Path(planned.options.staged), sum(one.rows for one in staged))
            return
        mark = Path(planned.mark)
        mark.touch()
        try:
            if planned.begin is None:
                _commit_at_uri(planned, fragments)
            else:
                with connect(planned.options.place) as access:
                    _commit_in_catalog(planned, fragments, access, planned.begin)
        except (CommitRejected, CatalogUnreachable, InvalidCall):
            mark.unlink()
            raise
        mark.unlink()

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove the files of the tasks that succeeded, unless the batch may have been committed.

        Files of failed attempts are not known, and stay.
        """
        mark = Path(self._planned.mark)
        if mark.exists():
            mark.unlink()
            return
        target = self._planned.target
        staged = [cast("StagedRows", message) for message in messages if message is not None]
        fragments = tuple(FragmentMetadata.from_json(json.dumps(item)) for one in staged for item in one.fragments)
        discard_files(target.uri, fragment_files(fragments), target.storage_options, never_published=self._planned.new)


def _commit_in_catalog(
    planned: PlannedWrite, fragments: tuple[FragmentMetadata, ...], access: CatalogAccess, begin: CatalogHead
) -> None:
    options, table = planned.options, planned.options.place.table
    assert table is not None
    operation = (
        overwrite_operation(planned.target.schema, fragments) if planned.replaces else append_operation(fragments)
    )
    with StagedTransaction(
        access,
        message=options.message,
        isolation=options.isolation,
        storage_options=options.place.storage_options,
        key_prefix="spark-write",
        begin=begin,
    ) as transaction:
        if planned.new:
            transaction.declare(table, location=planned.target.uri)
        if fragments or planned.replaces:
            transaction.stage(table, operation, call=planned.call)


def _commit_at_uri(planned: PlannedWrite, fragments: tuple[FragmentMetadata, ...]) -> None:
    """Commit with pylance, which repeats an append over concurrent commits."""
    target = planned.target
    operation: Any
    if planned.replaces:
        operation = lance.LanceOperation.Overwrite(target.schema, list(fragments))
    elif fragments:
        operation = lance.LanceOperation.Append(list(fragments))
    else:
        return
    lance.LanceDataset.commit(
        target.uri,
        operation,
        read_version=planned.options.version or (target.version and target.version.version),
        storage_options=dict(target.storage_options) or None,
    )


def _write_down(planned: PlannedWrite, fragments: Sequence[FragmentMetadata], path: Path, rows: int) -> None:
    """Write the staged fragments as one JSON document, which appears under its name when it is whole."""
    target, place = planned.target, planned.options.place
    document = {
        "table": list(place.table) if place.table else None,
        "uri": target.uri,
        "mode": planned.call,
        "new": planned.new,
        "read_version": target.version and target.version.version,
        "catalog_version": planned.begin.version if planned.begin is not None else None,
        "rows": rows,
        "schema": base64.b64encode(target.schema.serialize().to_pybytes()).decode(),
        "fragments": [fragment.to_json() for fragment in fragments],
    }
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    part.write_text(json.dumps(document))
    part.replace(path)


def _version(uri: str, options: WriteOptions) -> PinnedTable | None:
    """The version of a table at a URI that the write is built on, None if there is no table."""
    storage = dict(options.place.storage_options) or None
    try:
        dataset = lance.dataset(uri, version=options.version, storage_options=storage)
        return PinnedTable.of_dataset(uri, dataset, options.place.storage_options)
    except (ValueError, OSError) as error:
        if options.version is None and "was not found" in str(error):
            return None
        raise InvalidCall(f"{uri}: expected a table: {plain_text(error)}") from None


def _new_schema(name: str, schema: StructType) -> pa.Schema:
    return pa.schema([item.with_nullable(True) for item in storable_schema(name, schema)])

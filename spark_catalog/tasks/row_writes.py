"""Work of tasks: writes of rows or of changed rows. Nothing here asks the catalog.

Spark passes the functions as pickled bytes. `pyspark.cloudpickle` pickles the inner functions of this module by value,
and what they call by reference: executors import this package.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import FragmentMetadata, write_fragments
from pyroaring import BitMap64
from pyspark import cloudpickle
from pyspark.sql.types import BinaryType, StructField, StructType

from lance_core.data import DATA_STORAGE_VERSION
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.row_ids import encode_row_ids
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tasks.staging import FILE_ROWS, StageTarget, fit_batch
from table_data.arrow.storable import check_readable_types
from table_data.descriptions import new_fragments
from table_data.staging.rows import check_written

ADDRESS, IDENTITY, HAS_ROW = "__address", "__id", "__has_row"
_OLD_COLUMNS = 3
_FILE_BYTES = 90 << 30
_REPORT = StructType([StructField("message", BinaryType())])

_Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class RowWrite:
    """Rows that become new fragments.

    Attributes:
        name: Name of the table, for messages.
        uri: Root of the table.
        schema: Schema of the table.
        base: Version that the rows are added to; None for rows that are the whole table.
        replaces: Whether the table has versions although `base` is None.
        storage_options: Options of Lance for the object store.
        stable_row_ids: Whether rows that are updated keep their ids.
        max_rows_per_file: Upper bound of the rows in a data file.
        max_bytes_per_file: Size at which a data file is ended.
    """

    name: str
    uri: str
    schema: pa.Schema
    base: PinnedTable | None
    replaces: bool = False
    storage_options: Mapping[str, str] = field(default_factory=dict)
    stable_row_ids: bool = False
    max_rows_per_file: int = FILE_ROWS
    max_bytes_per_file: int = _FILE_BYTES


@dataclass(frozen=True, slots=True)
class RowReport:
    """The report of one task.

    Attributes:
        inserted: New fragments, as JSON of pylance.
        updated: New fragments of updated rows that keep their ids.
        ids: Ids of these rows, in order, as bytes of unsigned 64-bit integers.
        addresses: Addresses of the rows that are deleted or moved, as a serialised bitmap.
        inserted_rows: Number of rows that are new.
        changed_rows: Number of rows that are deleted or moved.
    """

    inserted: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    ids: bytes = b""
    addresses: bytes = b""
    inserted_rows: int = 0
    changed_rows: int = 0

    def encode(self) -> bytes:
        """The report as JSON, for Spark."""
        binary = {name: base64.b64encode(getattr(self, name)).decode() for name in ("ids", "addresses")}
        return json.dumps(asdict(self) | binary).encode()

    @classmethod
    def decode(cls, data: bytes) -> RowReport:
        """The report from JSON."""
        found = json.loads(data)
        return cls(
            inserted=tuple(found["inserted"]),
            updated=tuple(found["updated"]),
            ids=base64.b64decode(found["ids"]),
            addresses=base64.b64decode(found["addresses"]),
            inserted_rows=found["inserted_rows"],
            changed_rows=found["changed_rows"],
        )


def write_function(write: RowWrite, *, changes: bool) -> bytes:
    """The function that writes one partition, for Spark; `changes` for rows of `ChangedRows`."""

    def run(batches: _Batches) -> _Batches:
        report = write_changes(write, batches) if changes else write_rows(write, batches)
        yield pa.record_batch([pa.array([report.encode()], pa.binary())], names=["message"])

    return _command(run, _REPORT)


def _command(run: Callable[[_Batches], _Batches], result: StructType) -> bytes:
    pickled: bytes = cloudpickle.dumps((run, result))
    return pickled


def write_rows(write: RowWrite, batches: _Batches) -> RowReport:
    """Write all rows as new fragments."""
    inserted = _written(write, (_fitted(write, batch) for batch in batches))
    return RowReport(inserted=tuple(map(_json, inserted)), inserted_rows=_rows(inserted))


def write_changes(write: RowWrite, batches: _Batches) -> RowReport:
    """Write the new rows of updates and insertions, and collect the addresses of the old ones."""
    addresses = BitMap64()

    def new_rows() -> _Batches:
        for batch in batches:
            addresses.update(batch.column(ADDRESS).drop_null().to_numpy().view(np.uint64).tolist())
            if batch.num_columns > _OLD_COLUMNS:  # not a DELETE, which has no new rows
                yield batch.filter(batch.column(HAS_ROW))

    if write.stable_row_ids:
        return _write_with_ids(write, new_rows(), addresses)
    return _changed(addresses, inserted=_written(write, (_new_row(write, batch) for batch in new_rows())))


def _write_with_ids(write: RowWrite, batches: _Batches, addresses: BitMap64) -> RowReport:
    """Updated rows keep their ids, so they are written apart from inserted ones, which get new ids."""
    ids: list[np.ndarray[Any, np.dtype[np.uint64]]] = []
    with _Spool() as inserted:

        def updated() -> _Batches:
            for batch in batches:
                is_update = pc.is_valid(batch.column(IDENTITY))
                inserted.add(batch.filter(pc.invert(is_update)))
                kept = batch.filter(is_update)
                ids.append(kept.column(IDENTITY).to_numpy().view(np.uint64))
                yield _new_row(write, kept)

        first = _written(write, updated())
        second = _written(write, (_new_row(write, batch) for batch in inserted.batches()))
    return _changed(addresses, inserted=second, updated=first, ids=np.concatenate(ids).tobytes() if ids else b"")


def _new_row(write: RowWrite, batch: pa.RecordBatch) -> pa.RecordBatch:
    return _fitted(write, batch.drop_columns([ADDRESS, IDENTITY, HAS_ROW]))


class _Spool:
    """Batches of one schema in a temporary file: written first, then read once."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the spool
        self._writer: pa.RecordBatchStreamWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, batch.schema)
        self._writer.write_batch(batch)

    def batches(self) -> _Batches:
        """All batches, in order."""
        if self._writer is None:
            return
        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)


def _changed(addresses: BitMap64, *, inserted: list[Any], updated: Sequence[Any] = (), ids: bytes = b"") -> RowReport:
    new = _rows(inserted) + _rows(updated)
    return RowReport(
        inserted=tuple(map(_json, inserted)),
        updated=tuple(map(_json, updated)),
        ids=ids,
        addresses=addresses.serialize(),
        inserted_rows=new,
        changed_rows=len(addresses),
    )


def _fitted(write: RowWrite, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch in the types of the table. Columns are matched by place, since Spark has resolved their names."""
    named = pa.RecordBatch.from_arrays(batch.columns, names=write.schema.names)
    return fit_batch(named, StageTarget(write.name, write.uri, write.schema))


def _written(write: RowWrite, batches: _Batches) -> list[Any]:
    """New fragments; none for no rows, since pylance would write an empty file."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return []

    def all_rows() -> _Batches:
        yield first
        yield from batches

    refusals: list[Exception] = []

    def watched() -> _Batches:
        try:
            yield from all_rows()
        except Exception as error:
            refusals.append(error)
            raise

    check_readable_types(write.schema, DATA_STORAGE_VERSION)
    reader = pa.RecordBatchReader.from_batches(write.schema, watched())
    sizes = {"max_rows_per_file": write.max_rows_per_file, "max_bytes_per_file": write.max_bytes_per_file}
    try:
        if write.base is not None:
            dataset = write.base.open()
            written = list(write_fragments(reader, dataset, mode="append", **sizes))
            check_written(dataset, written)
            return written
        return list(
            write_fragments(
                reader,
                write.uri,
                schema=write.schema,
                mode="overwrite" if write.replaces else "create",
                data_storage_version=DATA_STORAGE_VERSION,
                storage_options=dict(write.storage_options) or None,
                **sizes,
            )
        )
    except Exception:
        if refusals:  # pylance would hide its kind
            raise refusals[0] from None
        raise


def moved_fragments(report: RowReport) -> Iterator[pb.DataFragment]:
    """Fragments of updated rows, with the ids that the rows keep."""
    ids = np.frombuffer(report.ids, np.uint64)
    start = 0
    for fragment in new_fragments([FragmentMetadata.from_json(text) for text in report.updated]):
        stop = start + int(fragment.physical_rows)
        fragment.inline_row_ids = encode_row_ids(ids[start:stop])
        start = stop
        yield fragment


def _json(fragment: Any) -> str:
    return json.dumps(fragment.to_json())


def _rows(fragments: Sequence[Any]) -> int:
    return sum(int(fragment.physical_rows) for fragment in fragments)

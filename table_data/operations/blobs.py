"""Values of columns of blobs: where they lie, some of them as a whole, and parts of one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import pyarrow as pa

from lance_core.format.blobs import is_blob
from lance_core.proto import lance_table_pb2 as pb
from table_data.errors import ColumnNotFound, InvalidCall
from table_data.requests.field_paths import parse_path
from table_data.requests.found_blobs import FoundBlob

if TYPE_CHECKING:
    import lance

    from table_data.requests.table_requests import LocateBlobs, ReadBlob, ReadBlobs

_MOST_ROW_ID: Final = 2**63 - 1
"""No row has a larger id, and pylance's numbers in filters end here."""
_SEVERAL: Final = 2
_INLINE: Final = 0
_EXTERNAL: Final = 3
"""Kinds, in the descriptions of blobs: bytes of the data file, and a file elsewhere."""
_BATCH: Final = 4 << 20
_OPEN: Final = 16
"""Values of one table that stay open between the reads of their parts."""


def locate_blobs(dataset: lance.LanceDataset, request: LocateBlobs) -> list[FoundBlob]:
    """The values of the rows that are found, each once, in no order. Only their descriptions are read.

    Raises `ColumnNotFound`, `InvalidCall` for a column without blobs, and for a filter that is none.
    """
    path = request["column"]
    require_blobs(dataset.schema, path)
    options: dict[str, Any] = {}
    if (ids := request.get("row_ids")) is not None:
        known = sorted({each for each in ids if each <= _MOST_ROW_ID})
        if not known:
            return []
        options["filter"] = f"_rowid IN ({', '.join(map(str, known))})"
    else:
        options |= {"filter": request["filter"], "limit": _SEVERAL}
    rows = dataset.scanner(
        columns=[path],
        with_row_id=True,
        with_row_address=True,
        blob_handling="blobs_descriptions",
        **options,
    ).to_table()
    ids_found, addresses = rows.column("_rowid").to_pylist(), rows.column("_rowaddr").to_pylist()
    described = zip(ids_found, addresses, rows.column(0).to_pylist(), strict=True)
    files = cache(partial(_data_files, dataset))
    return [_found(dataset, row_id, files(address >> 32), description) for row_id, address, description in described]


def read_blobs(dataset: lance.LanceDataset, request: ReadBlobs) -> pa.RecordBatchReader:
    """Whole values, one row for each id in their order, in a column of the name that was given."""
    name = request["column"]
    schema = pa.schema([pa.field(name, pa.large_binary())])

    def batches() -> Iterator[pa.RecordBatch]:
        for ids in _groups(request["row_ids"], request["sizes"]):
            values = [data for _, data in dataset.read_blobs(name, ids=ids, preserve_order=True)]
            yield pa.record_batch([pa.array(values, pa.large_binary())], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def read_blob(dataset: lance.LanceDataset, request: ReadBlob) -> tuple[int, bytes]:
    """The size of one value, which is not null, and bytes of it: fewer than were asked for at its end."""
    handle = _opened(dataset, request["column"], request["row_id"])
    size = int(handle.size())
    offset = min(request["offset"], size)
    length = min(request["length"], size - offset)
    return size, bytes(handle.read_range(offset, length)) if length else b""


def require_blobs(schema: pa.Schema, path: str) -> None:
    """Raise `ColumnNotFound`, or `InvalidCall` for a field whose rows do not have one blob each."""
    above: pa.Schema | pa.StructType = schema
    names = parse_path(path, "column")
    for depth, name in enumerate(names):
        place = above.get_field_index(name)
        if place < 0:
            known = ", ".join(field.name for field in above)[:200] or "none"
            raise ColumnNotFound(f"column: no field {name[:80]!r} of path {path[:80]!r}, expected one of {known}")
        field = above.field(place)
        if depth == len(names) - 1:
            if not is_blob(field):
                raise InvalidCall(
                    f"column {path[:80]!r}: expected a column of blobs, found {str(field.type)[:80]}; a query reads it"
                )
        elif is_blob(field) or not pa.types.is_struct(field.type):
            raise InvalidCall(
                f"column {path[:80]!r}: expected a field of a struct, found {name[:80]!r} with "
                f"{'blobs' if is_blob(field) else str(field.type)[:80]}"
            )
        else:
            above = field.type


def _found(
    dataset: lance.LanceDataset, row_id: int, files: Sequence[Path], description: dict[str, Any] | None
) -> FoundBlob:
    if description is None:
        return FoundBlob(row_id, None)
    position, size, kind = description["position"], description["size"], description.get("kind")
    if kind is None and (position, size) == (1, 0):
        return FoundBlob(row_id, None)  # as the first format has null
    if kind != _EXTERNAL:
        own = None if kind in {None, _INLINE} else description["blob_id"]
        return FoundBlob(row_id, size, _end_of_link(files, own))
    base, uri = description["blob_id"], description["blob_uri"]
    return FoundBlob(row_id, size, uri if base == 0 else f"{_base_path(dataset, base)}/{uri}")


def _data_files(dataset: lance.LanceDataset, fragment: int) -> list[Path]:
    """Where the data files of a fragment may be, none for a bucket."""
    root = dataset.uri.removeprefix("file-object-store://").removeprefix("file://")
    found = dataset.get_fragment(fragment)
    if "://" in root or found is None:
        return []
    places: list[Path] = []
    for file in found.metadata.files:
        base = unquote(root) if file.base_id is None else _base_path(dataset, file.base_id).removeprefix("file://")
        places += [Path(base, "data", file.path), *([] if file.base_id is None else [Path(base, file.path)])]
    return places


def _end_of_link(files: Sequence[Path], blob: int | None) -> str | None:
    """Where the file of a value leads if a symbolic link is in its place: the data file, or that of a `blob` beside it.

    Elsewhere pylance decodes what it reads. The bytes of a blob are answered as they are, whatever file they are of.
    """
    for data in files:
        beside = data.with_suffix("")
        steps = [data] if blob is None else [data, beside, beside / f"{f'{blob:032b}'[::-1]}.blob"]
        if any(step.is_symlink() for step in steps):
            return str(steps[-1].resolve())
    return None


def _base_path(dataset: lance.LanceDataset, number: int) -> str:
    manifest = pb.Manifest.FromString(dataset._ds.serialized_manifest())  # noqa: SLF001 - what a handle is pickled with
    paths = {base.id: base.path for base in manifest.base_paths}
    if number not in paths:
        raise InvalidCall(f"a blob names the base path {number}, which the version does not have")
    return paths[number].rstrip("/")


def _groups(ids: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """The ids in their order, in groups of some megabytes."""
    group: list[int] = []
    held = 0
    for row_id, size in zip(ids, sizes, strict=True):
        if group and held + size > _BATCH:
            yield group
            group, held = [], 0
        group.append(row_id)
        held += size
    if group:
        yield group


_handles: WeakKeyDictionary[lance.LanceDataset, OrderedDict[tuple[str, int], Any]] = WeakKeyDictionary()


def _opened(dataset: lance.LanceDataset, column: str, row_id: int) -> Any:
    """A value as pylance opens it. The next part of the same one needs no look for the row again."""
    handles = _handles.setdefault(dataset, OrderedDict())
    key = (column, row_id)
    if (handle := handles.get(key)) is None:
        [handle] = dataset.take_blobs(column, ids=[row_id])
        if handle is None:
            raise InvalidCall(f"column {column[:80]!r}: expected a blob in row {row_id}, found null")
        handles[key] = handle
        if len(handles) > _OPEN:
            handles.popitem(last=False)
    handles.move_to_end(key)
    return handle

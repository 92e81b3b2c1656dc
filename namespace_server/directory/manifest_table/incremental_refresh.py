"""Lead a snapshot to another version of `__manifest`, reading as little as possible.

Three ways, tried in this order:

1. take the changes from the transaction of the next version, where flips of this server write them;
2. compare the rows of the fragments that differ, if these are few;
3. load everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from immutables import Map
from numpy.typing import NDArray
from pyroaring import BitMap

from lance_core.data import read_rows
from lance_core.errors import CorruptFile, NotFound, UnsupportedFeature
from lance_core.format.deletion import decode_deletion_file, deletion_file_path
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import NamingScheme, data_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from namespace_server.directory.manifest_table.bulk_load import BulkLoader, loading
from namespace_server.directory.manifest_table.fragment_merge import match_rearrangement
from namespace_server.directory.manifest_table.fragments import KEPT_ROWS, Fragment, Layout, live_rows, new_fragment
from namespace_server.directory.manifest_table.row_codec import TABLE, TABLE_VERSION, Row, decode_row
from namespace_server.directory.manifest_table.rows import (
    ROW_SCHEMA,
    Rows,
    batch_of,
    count_rows,
    few_rows,
    join_rows,
    one_batch,
)
from namespace_server.directory.manifest_table.schema import (
    BASE_PROPERTY,
    OnDisk,
    check_catalog_readable,
    frame_of,
    read_inline,
)
from namespace_server.directory.model.entries import Changes, Entry
from namespace_server.directory.model.errors import CatalogDamaged
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.model.state import CatalogState
from namespace_server.directory.model.state_editor import apply_changes

COMPARED_ROWS: Final = 20_000
"""The most rows that are compared one by one; for more the whole catalog is loaded."""

NO_FILE: Final = "no file"
_GROUP_BYTES: Final = 64 << 20


class IncrementalRefresh:
    """Reads versions of the dataset at `root`, the key of its directory in `store`. Writes nothing."""

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root

    def follow(
        self, base: CatalogSnapshot, file: ManifestFile, scheme: NamingScheme, listed_at: float
    ) -> CatalogSnapshot:
        """The snapshot of `file`, made from that of any other version.

        Raises `UnsupportedFeature` for a version that this release must not read, `CatalogDamaged` when files of it are
        missing or damaged.
        """
        check_catalog_readable(file.manifest)
        found = None
        if isinstance(base.disk, OnDisk) and _same_columns(base.disk.frame, file.manifest):
            if file.version == base.version + 1:
                found = self._take_inline(base, base.disk, file)
            if found is None:
                found = self._compare(base, base.disk, file)
        if found is None:
            with loading(sum(message.physical_rows for message in file.manifest.fragments)):
                found = self._load(file)
        state, layout = found
        timestamp_ns = file.timestamp_ns
        disk = OnDisk(frame_of(file.manifest), layout, scheme, timestamp_ns, attempt=file.transaction_uuid)
        return CatalogSnapshot(file.version, timestamp_ns // 1_000_000, disk.managed, listed_at, state, disk)

    def read(self, message: pb.DataFragment, columns: Sequence[str] | None = None) -> pa.Table:
        """All physical rows of a fragment, in the columns of the directory format or some of them."""
        if len(message.files) != 1:
            raise UnsupportedFeature(f"fragment {message.id} of the catalog has {len(message.files)} files, expected 1")
        key = data_path(self._root, message.files[0].path)
        size = message.files[0].file_size_bytes
        expected = f"the rows of fragment {message.id}" + (f", {size} bytes" if size else "")
        data = self._fetch(key, expected)
        try:
            rows = read_rows(data, columns)
        except CorruptFile as error:  # its text names a temporary file
            raise CatalogDamaged(key, expected, f"{len(data)} bytes that are no data file") from error
        return _shaped(rows, columns)

    def _fetch(self, key: str, expected: str) -> bytes:
        try:
            return self._store.get(key)
        except NotFound as error:
            raise CatalogDamaged(key, expected, NO_FILE) from error

    def _take_inline(
        self, base: CatalogSnapshot, disk: OnDisk, file: ManifestFile
    ) -> tuple[CatalogState, Layout] | None:
        """From the changes in the transaction.

        They are taken only if they were made to this very base and account for every fragment.
        """
        inline = read_inline(file.transaction)
        if inline is None or file.transaction is None or file.operation != "update":
            return None
        rows, changes = inline
        made_to = file.transaction.transaction_properties.get(BASE_PROPERTY, disk.attempt)
        if file.transaction.read_version != base.version or made_to != disk.attempt:
            return None
        update = file.transaction.update
        gone = [serial for key in (*changes.puts, *changes.removes) for serial in base.state.serials(key)]
        arrangement = match_rearrangement(disk.layout, gone, update.removed_fragment_ids)
        known = {fragment.message.id for fragment in disk.layout.fragments}
        messages = {message.id: message for message in file.manifest.fragments}
        added = [message for message in file.manifest.fragments if message.id not in known]
        if arrangement is None or len(added) > 1:
            return None
        first = disk.layout.next_serial
        serials = [*arrangement.moved_serials(), *range(first, first + len(rows))]
        new = None
        if len(serials) != sum(message.physical_rows for message in added):
            return None
        if added:
            kept_rows = join_rows([_kept_rows(arrangement.moved), tuple(rows)])
            new = new_fragment(added[0], serials, kept_rows if count_rows(kept_rows) == len(serials) else None)
        kept = {at: messages.get(disk.layout.fragments[at].message.id) for at in arrangement.deleted}
        if None in kept.values():
            return None
        layout = arrangement.next_layout(new, lambda at: kept[at] or pb.DataFragment(), len(rows))
        if not _accounts_for(layout, messages):
            return None
        addresses = {row.object_id: first + at for at, row in enumerate(rows)}
        return apply_changes(base.state, changes, addresses), layout

    def _compare(self, base: CatalogSnapshot, disk: OnDisk, file: ManifestFile) -> tuple[CatalogState, Layout] | None:
        """From the rows of the fragments that differ."""
        plan = _plan_comparison(disk.layout, file.manifest.fragments)
        if plan is None:
            return None
        try:
            return self._compare_rows(base.state, disk.layout, plan)
        except (CatalogDamaged, UnsupportedFeature):
            # Files of the old version may have been removed with it; the new one is loaded.
            return None

    def _compare_rows(
        self, state: CatalogState, layout: Layout, plan: _Comparison
    ) -> tuple[CatalogState, Layout] | None:
        removed: list[str] = []
        appeared: list[tuple[Row, int]] = []
        budget = COMPARED_ROWS
        for fragment in plan.gone:
            removed += self._object_ids(fragment, fragment.live_mask())
        fragments: list[Fragment] = []
        for old, message in plan.kept:
            deleted = old.deleted if message == old.message else self._deletions(message)
            budget -= len(old.deleted ^ deleted)
            if budget < 0:
                return None
            if deleted != old.deleted:
                removed += self._object_ids(old, _mask(old, deleted - old.deleted))
                back = _mask(old, old.deleted - deleted)
                if back.any():
                    rows = one_batch(self.read(old.message)) if old.rows is None else batch_of(old.rows)
                    appeared += zip(_rows_of(rows, back), old.all_serials()[back].tolist(), strict=True)
            fragments.append(Fragment(message, old.start, old.serials, deleted, old.rows))
        next_serial = layout.next_serial
        for message in plan.new:
            rows, deleted = one_batch(self.read(message)), self._deletions(message)
            serials = range(next_serial, next_serial + rows.num_rows)
            next_serial = serials.stop
            fragment = replace(new_fragment(message, serials, few_rows(rows)), deleted=deleted)
            appeared += zip(_rows_of(rows, fragment.live_mask()), fragment.live_serials(), strict=True)
            fragments.append(fragment)
        edited = _edit(state, removed, appeared)
        return None if edited is None else (edited, Layout(tuple(fragments), next_serial))

    def _object_ids(self, fragment: Fragment, mask: NDArray[np.bool_]) -> list[str]:
        if not mask.any():
            return []
        rows = self.read(fragment.message, ["object_id"]) if fragment.rows is None else batch_of(fragment.rows)
        found: list[str] = rows["object_id"].filter(pa.array(mask)).to_pylist()
        return found

    def _deletions(self, message: pb.DataFragment) -> BitMap:
        if not message.HasField("deletion_file"):
            return BitMap()
        path = deletion_file_path(self._root, message.id, message.deletion_file)
        expected = f"the {message.deletion_file.num_deleted_rows} deleted rows of fragment {message.id}"
        data = self._fetch(path, expected)
        try:
            return decode_deletion_file(message.deletion_file, data, physical_rows=message.physical_rows)
        except CorruptFile as error:
            raise CatalogDamaged(path, expected, f"{len(data)} bytes: {error}") from error

    def _load(self, file: ManifestFile) -> tuple[CatalogState, Layout]:
        """Everything, a bounded number of bytes at a time."""
        messages = sorted(file.manifest.fragments, key=lambda message: message.id)
        loader = BulkLoader()
        fragments: list[Fragment] = []
        next_serial = 0
        for group, read in self._read_ahead(_groups(messages)):
            for message, (rows, deleted) in zip(group, read, strict=True):
                serials = np.arange(next_serial, next_serial + rows.num_rows, dtype=np.int64)
                next_serial += rows.num_rows
                kept = few_rows(one_batch(rows)) if rows.num_rows <= KEPT_ROWS else None
                fragment = Fragment(message, next_serial - rows.num_rows, None, deleted, kept)
                fragments.append(fragment)
                mask = fragment.live_mask()
                loader.add(rows.filter(pa.array(mask)) if deleted else rows, serials[mask])
        return loader.finish(), Layout(tuple(fragments), next_serial)

    def _read_ahead(
        self, groups: Sequence[Sequence[pb.DataFragment]]
    ) -> Iterator[tuple[Sequence[pb.DataFragment], list[tuple[pa.Table, BitMap]]]]:
        """Each group with its rows; the next one is read while the caller works."""
        with ThreadPoolExecutor(1, thread_name_prefix="catalog-load") as reader:
            coming = [reader.submit(self._store.map, self._read_live, group) for group in groups[:1]]
            for at, group in enumerate(groups):
                read = coming.pop().result()
                coming += [reader.submit(self._store.map, self._read_live, group) for group in groups[at + 1 : at + 2]]
                yield group, read
                del read

    def _read_live(self, message: pb.DataFragment) -> tuple[pa.Table, BitMap]:
        # Fragments too large to be merged in a flip are not kept, and nothing but these columns is needed of them.
        columns = None if message.physical_rows <= KEPT_ROWS else ROW_SCHEMA.names[:4]
        return self.read(message, columns), self._deletions(message)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """How the fragments of another version relate to those of a layout."""

    kept: tuple[tuple[Fragment, pb.DataFragment], ...]
    gone: tuple[Fragment, ...]
    new: tuple[pb.DataFragment, ...]


def _plan_comparison(layout: Layout, messages: Iterable[pb.DataFragment]) -> _Comparison | None:
    """None when too much differs."""
    there = {_files(message): message for message in messages}
    kept: list[tuple[Fragment, pb.DataFragment]] = []
    gone: list[Fragment] = []
    for fragment in layout.fragments:
        message = there.pop(_files(fragment.message), None)
        if message is None:
            gone.append(fragment)
        else:
            kept.append((fragment, message))
    new = sorted(there.values(), key=lambda message: message.id)
    rows = sum(fragment.message.physical_rows for fragment in gone) + sum(message.physical_rows for message in new)
    return None if rows > COMPARED_ROWS else _Comparison(tuple(kept), tuple(gone), tuple(new))


def _files(message: pb.DataFragment) -> tuple[int, int, tuple[str, ...]]:
    return message.id, message.physical_rows, tuple(file.path for file in message.files)


def _accounts_for(layout: Layout, messages: dict[int, pb.DataFragment]) -> bool:
    """Whether a layout has exactly these fragments, with as many deletions in each."""
    if len(layout.fragments) != len(messages):
        return False
    for fragment in layout.fragments:
        message = messages.get(fragment.message.id)
        if message is None or _files(message) != _files(fragment.message):
            return False
        if len(fragment.deleted) != message.deletion_file.num_deleted_rows:
            return False
    return True


def _edit(state: CatalogState, removed: Sequence[str], appeared: Sequence[tuple[Row, int]]) -> CatalogState | None:
    """The state without the rows `removed` and with those that `appeared`; None where everything must be loaded.

    That is for several rows with one object id, version rows in the spelling of other writers, and tables that appear
    where rows without a table were.
    """
    gone = frozenset(removed)
    puts: dict[str, Entry] = {}
    serials: dict[str, int] = {}
    unrecognised: dict[str, int] = {}
    for row, serial in appeared:
        object_id = row.object_id
        if object_id in serials or object_id in unrecognised or (object_id not in gone and state.serials(object_id)):
            return None
        entry = decode_row(row)
        if entry is not None and entry.object_id == object_id:
            puts[object_id] = entry
            serials[object_id] = serial
        elif row.object_type in {TABLE, TABLE_VERSION}:
            return None
        else:
            unrecognised[object_id] = serial
    if state.unrecognised_rows:
        return None
    edited = apply_changes(state, Changes(puts, gone.difference(puts)), serials)
    if unrecognised:
        edited = edited._replace(
            unrecognised_rows=edited.unrecognised_rows.update(Map({key: (at,) for key, at in unrecognised.items()}))
        )
    return edited


def _mask(fragment: Fragment, offsets: BitMap) -> NDArray[np.bool_]:
    mask = np.zeros(fragment.message.physical_rows, np.bool_)
    mask[np.asarray(offsets.to_array())] = True
    return mask


def _rows_of(rows: pa.RecordBatch, mask: NDArray[np.bool_]) -> list[Row]:
    columns = [column.to_pylist() for column in rows.select(list(Row._fields)).filter(pa.array(mask)).columns]
    return [Row(*values) for values in zip(*columns, strict=True)]


def _kept_rows(fragments: Iterable[Fragment]) -> Rows:
    kept = [(fragment, fragment.rows) for fragment in fragments if fragment.rows is not None and fragment.live]
    return live_rows([fragment for fragment, _ in kept], [rows for _, rows in kept])


def _groups(messages: Sequence[pb.DataFragment]) -> list[list[pb.DataFragment]]:
    """Fragments to be read in parallel: as many as stay within a bound on their bytes, at least one."""
    groups: list[list[pb.DataFragment]] = []
    room = 0
    for message in messages:
        size = sum(file.file_size_bytes for file in message.files) or _GROUP_BYTES
        if not groups or size > room:
            groups.append([])
            room = _GROUP_BYTES
        groups[-1].append(message)
        room -= size
    return groups


def _same_columns(frame: pb.Manifest, manifest: pb.Manifest) -> bool:
    return list(frame.fields) == list(manifest.fields)


def _shaped(rows: pa.Table, columns: Sequence[str] | None) -> pa.Table:
    """The rows with exactly the columns of the directory format, missing ones null (old roots)."""
    fields = [field for field in ROW_SCHEMA if columns is None or field.name in columns]
    arrays = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in fields
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

"""Build a catalog's state from rows, fast enough for millions of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from immutables import Map
from numpy.typing import NDArray

from namespace_server.directory.columns import ParsedVersions, parse_versions
from namespace_server.directory.edits import apply_changes
from namespace_server.directory.rows import (
    RECORD_PREFIX,
    TABLE_VERSION,
    Changes,
    Entry,
    NamespaceEntry,
    RecordEntry,
    Row,
    TableEntry,
    TableId,
    chain_object_id,
    decode_row,
    decode_version,
    parse_id,
    unescape_branch,
)
from namespace_server.directory.state import (
    CatalogState,
    Children,
    StoredNamespace,
    StoredRecord,
    StoredTable,
)
from namespace_server.directory.versions import Chain, Segment, VersionBlock, VersionColumns, join_columns

LARGE: Final = 100_000
"""From so many rows on, what was loaded is taken out of the garbage collector's sight for good."""

_CHUNK_ROWS: Final = 131_072
_COLUMNS: Final = ("object_id", "object_type", "location", "metadata")


class Loader:
    """Takes rows fragment by fragment, then makes the state.

    Of several rows with one object id, which no catalog should have, the last one counts; the others become strays.
    """

    def __init__(self) -> None:
        self._namespaces: dict[TableId, StoredNamespace] = {}
        self._tables: dict[str, StoredTable] = {}
        self._records: dict[str, StoredRecord] = {}
        self._strays: dict[str, tuple[int, ...]] = {}
        self._holders: dict[str, int] = {}
        self._parsed: list[ParsedVersions] = []
        self._version_ids: list[pa.StringArray] = []
        self._irregular: list[tuple[str, str | None, int]] = []

    def add(self, rows: pa.Table, serials: NDArray[np.int64]) -> None:
        """Take live rows, in ascending order of their serials."""
        for first in range(0, rows.num_rows, _CHUNK_ROWS):
            chunk = rows.slice(first, _CHUNK_ROWS).select(_COLUMNS).combine_chunks()
            self._add_chunk(chunk, serials[first : first + _CHUNK_ROWS])

    def finish(self) -> CatalogState:
        """The state. The loader is not used afterwards."""
        chains = self._group_versions()
        for object_id, branches in chains.items():
            table = self._tables[object_id]
            main_first = sorted(branches, key=lambda chain: chain.branch or "")
            self._tables[object_id] = StoredTable(table.entry, table.serial, tuple(main_first))
        tables = {table.entry.id: table for table in self._tables.values()}
        children = _children_of(self._namespaces, tables)
        records = sorted(self._records.values(), key=lambda stored: stored.entry.timestamp_ms)
        state = CatalogState(
            Map(self._namespaces),
            Map(tables),
            Map(children),
            Map({table.entry.location: path for path, table in tables.items()}),
            Map(self._records),
            Map(
                {
                    stored.entry.idempotency_key: stored.entry.batch_uuid
                    for stored in records
                    if stored.entry.idempotency_key is not None
                }
            ),
            Map(
                {stored.entry.request_hash: stored.entry.batch_uuid for stored in records if stored.entry.request_hash}
            ),
            Map({stored.entry.batch_uuid: None for stored in records if stored.entry.state == "open"}),
            Map(self._strays),
            frozenset(path for path in children if path and path not in self._namespaces),
        )
        return self._put_irregular(state)

    def _add_chunk(self, chunk: pa.Table, serials: NDArray[np.int64]) -> None:
        is_version = pc.equal(chunk["object_type"], TABLE_VERSION).combine_chunks().to_numpy(zero_copy_only=False)
        versions, others = np.flatnonzero(is_version), np.flatnonzero(~is_version)
        if len(versions):
            table = chunk if len(versions) == chunk.num_rows else chunk.take(versions)
            self._add_versions(table, serials[versions])
        if len(others):
            columns = [column.to_pylist() for column in chunk.take(others).columns]
            for row, serial in zip(map(Row._make, zip(*columns, strict=True)), serials[others].tolist(), strict=True):
                self._add_other(row, serial)

    def _add_versions(self, table: pa.Table, serials: NDArray[np.int64]) -> None:
        object_ids, metadata = _array(table["object_id"]), _array(table["metadata"])
        parsed = parse_versions(object_ids, metadata, serials)
        if len(parsed.kept):
            self._parsed.append(parsed)
            self._version_ids.append(object_ids.take(parsed.kept))
        if len(parsed.irregular):
            texts = zip(
                object_ids.take(parsed.irregular).to_pylist(),
                metadata.take(parsed.irregular).to_pylist(),
                serials[parsed.irregular].tolist(),
                strict=True,
            )
            self._irregular.extend(texts)

    def _add_other(self, row: Row, serial: int) -> None:
        entry = decode_row(row)
        if entry is None:
            self._stray(row.object_id, serial)
            return
        previous = self._holders.pop(row.object_id, None)
        if previous is not None:
            self._drop(row.object_id)
            self._stray(row.object_id, previous)
        self._holders[row.object_id] = serial
        if isinstance(entry, TableEntry):
            self._tables[row.object_id] = StoredTable(entry, serial)
        elif isinstance(entry, NamespaceEntry):
            self._namespaces[entry.id] = StoredNamespace(entry, serial)
        elif isinstance(entry, RecordEntry):
            self._records[entry.batch_uuid] = StoredRecord(entry, serial)

    def _drop(self, object_id: str) -> None:
        self._tables.pop(object_id, None)
        self._namespaces.pop(parse_id(object_id), None)
        if object_id.startswith(RECORD_PREFIX):
            self._records.pop(object_id[len(RECORD_PREFIX) :], None)

    def _stray(self, object_id: str, serial: int) -> None:
        self._strays[object_id] = (*self._strays.get(object_id, ()), serial)

    def _group_versions(self) -> dict[str, list[Chain]]:
        """The chains of each table, by its object id; what belongs to no table becomes a stray."""
        found: dict[str, list[Chain]] = {}
        if not self._parsed:
            return found
        columns = join_columns([part.columns for part in self._parsed])
        chains = pa.concat_arrays([part.chains for part in self._parsed]).dictionary_encode()
        bases = pa.concat_arrays([part.bases for part in self._parsed]).dictionary_encode()
        object_ids = pa.concat_arrays(self._version_ids)
        self._parsed.clear()
        self._version_ids.clear()
        chain_codes, base_codes = chains.indices.to_numpy(), bases.indices.to_numpy()
        order = np.lexsort((columns.serials, columns.versions, base_codes, chain_codes))
        columns = columns.select(order)
        chain_codes, base_codes = chain_codes[order], base_codes[order]
        changed = (np.diff(chain_codes, prepend=-1) != 0) | (np.diff(base_codes, prepend=-1) != 0)
        starts = np.flatnonzero(changed)
        stops = np.append(starts[1:], len(order))
        repeated = np.flatnonzero((columns.versions[1:] == columns.versions[:-1]) & ~changed[1:])
        block = VersionBlock(columns)
        names, places = chains.dictionary.to_pylist(), bases.dictionary.to_pylist()
        for start, stop, name, place in zip(
            starts.tolist(), stops.tolist(), chain_codes[starts].tolist(), base_codes[starts].tolist(), strict=True
        ):
            named = self._find_chain(names[name], places[place])
            if named is None:
                self._stray_rows(object_ids, order, columns, range(start, stop))
                continue
            holes = frozenset[int]()
            if len(repeated):
                holes = frozenset(repeated[(repeated >= start) & (repeated < stop - 1)].tolist())
                self._stray_rows(object_ids, order, columns, holes)
            found.setdefault(named[0], []).append(Chain(named[1], (Segment(block, start, stop, holes),)))
        return found

    def _find_chain(self, chain: str, base: str) -> tuple[str, str | None] | None:
        """The table and branch whose versions have this object id and lie at this base (N1)."""
        table = self._tables.get(chain)
        if table is not None and base == table.entry.location:
            return chain, None
        name, separator, component = chain.rpartition("$")
        table = self._tables.get(name) if separator else None
        if table is None:
            return None
        branch = unescape_branch(component)
        if base != f"{table.entry.location}/tree/{branch}" or chain != chain_object_id(table.entry.id, branch):
            return None
        return name, branch

    def _stray_rows(
        self,
        object_ids: pa.StringArray,
        order: NDArray[np.int64],
        columns: VersionColumns,
        rows: range | frozenset[int],
    ) -> None:
        for row in rows:
            self._stray(object_ids[int(order[row])].as_py(), int(columns.serials[row]))

    def _put_irregular(self, state: CatalogState) -> CatalogState:
        """Rows that columns could not hold, one by one."""
        if not self._irregular:
            return state
        locations = {table.entry.id: table.entry.location for table in self._tables.values()}
        puts: dict[str, Entry] = {}
        serials: dict[str, int] = {}
        strays = dict(state.strays)
        for object_id, metadata, serial in self._irregular:
            entry = decode_version(object_id, metadata, locations)
            if entry is None:
                strays[object_id] = (*strays.get(object_id, ()), serial)
                continue
            shadowed = [
                *state.serials(entry.object_id),
                *([serials[entry.object_id]] if entry.object_id in serials else []),
            ]
            if shadowed:
                strays[entry.object_id] = (*strays.get(entry.object_id, ()), *shadowed)
            puts[entry.object_id] = entry
            serials[entry.object_id] = serial
        edited = apply_changes(state, Changes(puts), serials)
        return edited._replace(strays=Map(strays))


def _array(column: pa.ChunkedArray) -> pa.StringArray:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _children_of(
    namespaces: Mapping[TableId, StoredNamespace], tables: Mapping[TableId, StoredTable]
) -> dict[TableId, Children]:
    spaces: dict[TableId, list[str]] = {}
    leaves: dict[TableId, list[str]] = {}
    for path in namespaces:
        spaces.setdefault(path[:-1], []).append(path[-1])
    for path in tables:
        leaves.setdefault(path[:-1], []).append(path[-1])
    return {
        parent: Children(tuple(sorted(spaces.get(parent, ()))), tuple(sorted(leaves.get(parent, ()))))
        for parent in {*spaces, *leaves}
    }


@contextmanager
def without_collections(rows: int) -> Iterator[None]:
    """Build many objects without the garbage collector running over them, then or later."""
    if rows < LARGE or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
        pa.default_memory_pool().release_unused()

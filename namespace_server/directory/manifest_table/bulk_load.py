"""Build a catalog's state from rows, fast enough for millions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import repeat
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from immutables import Map
from numpy.typing import NDArray

from namespace_server.access.grants import ACCESS_ID, AccessRow
from namespace_server.directory.manifest_table.column_parsing import (
    ParsedVersions,
    parse_versions,
    split_ids,
    unusual_locations,
)
from namespace_server.directory.manifest_table.row_codec import (
    TABLE,
    TABLE_VERSION,
    Row,
    decode_properties,
    decode_row,
    decode_version,
)
from namespace_server.directory.model.collector_rows import OwnEntry
from namespace_server.directory.model.entries import (
    NO_PROPERTIES,
    TOMBSTONES,
    Changes,
    Entry,
    NamespaceEntry,
    RecordEntry,
    place_of,
)
from namespace_server.directory.model.object_ids import (
    DELIMITER,
    RECORD_PREFIX,
    ObjectId,
    chain_object_id,
    parse_id,
    unescape_branch,
)
from namespace_server.directory.model.persistent.layered_map import LayeredMap
from namespace_server.directory.model.persistent.sorted_names import SortedNames
from namespace_server.directory.model.persistent.version_columns import VersionBlock, VersionColumns, join_columns
from namespace_server.directory.model.persistent.version_index import Chain, Segment
from namespace_server.directory.model.state import (
    NO_CHILDREN,
    CatalogState,
    Children,
    Stored,
    StoredRecord,
    StoredTable,
)
from namespace_server.directory.model.state_editor import apply_changes, policy_of
from namespace_server.directory.model.table_names import IndexedNames

LoadHook = Callable[[int], AbstractContextManager[None]]
"""A context manager for a load of so many rows."""

_hooks: Final[list[LoadHook]] = []
_CHUNK_ROWS: Final = 131_072
_COLUMNS: Final = ("object_id", "object_type", "location", "metadata")


class BulkLoader:
    """Takes rows fragment by fragment, then makes the state.

    Of several rows with one object id, which is damage, the last one counts; the others become unrecognised rows.
    """

    def __init__(self) -> None:
        self._namespaces: dict[ObjectId, Stored[NamespaceEntry]] = {}
        self._tables: dict[ObjectId, StoredTable] = {}
        self._listed: list[StoredTable] = []
        self._paths: list[ObjectId] = []
        self._names: dict[ObjectId, list[str]] = {}
        self._unusual: list[StoredTable] = []
        self._records: dict[str, StoredRecord] = {}
        self._own: dict[str, Stored[OwnEntry]] = {}
        self._access: dict[str, Stored[AccessRow]] = {}
        self._unrecognised: dict[str, tuple[int, ...]] = {}
        self._holders: dict[str, int] = {}
        self._parsed: list[ParsedVersions] = []
        self._version_ids: list[pa.StringArray] = []
        self._irregular: list[tuple[str, str | None, int]] = []

    def add(self, rows: pa.Table, serials: NDArray[np.int64]) -> None:
        """Take live rows, in ascending order of their serials."""
        first = 0
        for batch in rows.select(_COLUMNS).to_batches(max_chunksize=_CHUNK_ROWS):
            self._add_batch(batch, serials[first : first + batch.num_rows])
            first += batch.num_rows

    def finish(self) -> CatalogState:
        """The state. The loader is not used afterwards."""
        self._drop_shadowed_tables()
        tables = self._tables
        for table_id, branches in self._group_versions().items():
            main_first = sorted(branches, key=lambda chain: chain.branch or "")
            tables[table_id] = tables[table_id].with_chains(tuple(main_first))
        children = self._children()
        unusual = {table.location: table.id for table in self._unusual if _is_at(tables, table.id, table.location)}
        records = sorted(self._records.values(), key=lambda stored: stored.entry.timestamp_ms)
        waiting = [stored.entry for stored in records if stored.entry.state == "open"]
        state = CatalogState(
            Map(self._namespaces),
            LayeredMap(tables),
            Map(children),
            Map(unusual),
            Map(self._records),
            Map({key: stored.entry.batch_uuid for stored in records if (key := stored.entry.key) is not None}),
            Map(
                {stored.entry.request_hash: stored.entry.batch_uuid for stored in records if stored.entry.request_hash}
            ),
            Map(
                {
                    party.location: stored.entry.batch_uuid
                    for stored in records
                    if stored.entry.state in TOMBSTONES
                    for party in stored.entry.participants
                }
            ),
            Map({record.batch_uuid: None for record in waiting}),
            Map(
                {
                    place_of(party): (record.batch_uuid, party.staged_path)
                    for record in waiting
                    for party in record.participants
                }
            ),
            Map(self._unrecognised),
            Map(self._own),
            frozenset(path for path in children if path and path not in self._namespaces),
            Map(self._access),
            policy_of(self._access),
            IndexedNames(),
        )
        return self._put_irregular(state)

    def _add_batch(self, batch: pa.RecordBatch, serials: NDArray[np.int64]) -> None:
        own = pc.equal(batch["object_id"], ACCESS_ID)  # which is that row whatever type it has
        mask = pc.and_not(pc.equal(batch["object_type"], TABLE_VERSION), own)
        is_version = mask.to_numpy(zero_copy_only=False)
        count = int(is_version.sum())
        if count:
            # `filter` costs far less than `take`: it copies runs of rows.
            versions = batch if count == batch.num_rows else batch.filter(mask)
            self._add_versions(versions["object_id"], versions["metadata"], serials[is_version])
        if count < batch.num_rows:
            others, serials = batch.filter(pc.invert(mask)), serials[~is_version]
            own = pc.equal(others["object_id"], ACCESS_ID)
            mask = pc.and_not(pc.and_(pc.equal(others["object_type"], TABLE), pc.is_valid(others["location"])), own)
            is_table = mask.to_numpy(zero_copy_only=False)
            if is_table.any():
                self._add_tables(others.filter(mask), serials[is_table])
            if not is_table.all():
                columns = [column.to_pylist() for column in others.filter(pc.invert(mask)).columns]
                for row, serial in zip(zip(*columns, strict=True), serials[~is_table].tolist(), strict=True):
                    self._add_other(Row._make(row), serial)

    def _add_tables(self, rows: pa.RecordBatch, serials: NDArray[np.int64]) -> None:
        """Table rows with a location. Ids below one parent share its names, rows of equal metadata their properties."""
        # In the order of their ids, so that names that will stand side by side are made side by side.
        order = pc.sort_indices(rows["object_id"])
        rows, serials = rows.take(order), serials[order.to_numpy()]
        ids = split_ids(rows["object_id"])
        locations = rows["location"].to_pylist()
        paths = ids.paths()
        properties = _properties(rows["metadata"])
        first = len(self._listed)
        self._paths += paths
        self._listed += map(StoredTable, paths, locations, properties, serials.tolist())
        self._unusual += [self._listed[first + at] for at in unusual_locations(rows["object_id"], rows["location"])]
        for parent, names in ids.runs():
            self._names.setdefault(parent, []).extend(names)

    def _drop_shadowed_tables(self) -> None:
        """Of rows with the object id of one table, keep the one with the highest serial."""
        tables = self._tables = dict(zip(self._paths, self._listed, strict=True))
        complete = len(tables) == len(self._listed)
        if not complete:
            for table in self._listed:
                if tables[table.id] is not table:
                    self._keep_unrecognised(DELIMITER.join(table.id), table.serial)
        self._listed, self._paths = [], []
        for object_id, serial in self._holders.items():
            found = tables.get(parse_id(object_id))
            if found is None:
                continue
            self._keep_unrecognised(object_id, min(serial, found.serial))
            if found.serial < serial:
                del tables[found.id]
                complete = False
            else:
                self._drop(object_id)
        if not complete:
            self._names = _by_parent(tables)

    def _add_versions(self, object_ids: pa.StringArray, metadata: pa.StringArray, serials: NDArray[np.int64]) -> None:
        parsed = parse_versions(object_ids, metadata, serials)
        if len(parsed.kept):
            self._parsed.append(parsed)
            self._version_ids.append(
                object_ids if len(parsed.kept) == len(object_ids) else object_ids.take(parsed.kept)
            )
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
            self._keep_unrecognised(row.object_id, serial)
            return
        previous = self._holders.pop(row.object_id, None)
        if previous is not None:
            self._drop(row.object_id)
            self._keep_unrecognised(row.object_id, previous)
        self._holders[row.object_id] = serial
        if isinstance(entry, NamespaceEntry):
            self._namespaces[entry.id] = Stored(entry, serial)
        elif isinstance(entry, RecordEntry):
            self._records[entry.batch_uuid] = StoredRecord(entry, serial)
        elif isinstance(entry, OwnEntry):
            self._own[row.object_id] = Stored(entry, serial)
        elif isinstance(entry, AccessRow):
            self._access[row.object_id] = Stored(entry, serial)

    def _drop(self, object_id: str) -> None:
        self._namespaces.pop(parse_id(object_id), None)
        self._own.pop(object_id, None)
        self._access.pop(object_id, None)
        if object_id.startswith(RECORD_PREFIX):
            self._records.pop(object_id[len(RECORD_PREFIX) :], None)

    def _keep_unrecognised(self, object_id: str, serial: int) -> None:
        self._unrecognised[object_id] = (*self._unrecognised.get(object_id, ()), serial)

    def _children(self) -> dict[ObjectId, Children]:
        spaces = _by_parent(self._namespaces)
        return {
            parent: Children(_sorted_names(spaces.get(parent)), _sorted_names(self._names.get(parent)))
            for parent in {*spaces, *self._names}
        }

    def _group_versions(self) -> dict[ObjectId, list[Chain]]:
        """The chains of each table; version rows without a table become unrecognised ones."""
        found: dict[ObjectId, list[Chain]] = {}
        if not self._parsed:
            return found
        columns = join_columns([part.columns for part in self._parsed])
        chains = pa.concat_arrays([part.chains for part in self._parsed]).dictionary_encode()
        bases = pa.concat_arrays([part.bases for part in self._parsed]).dictionary_encode()
        object_ids = pa.concat_arrays(self._version_ids)
        self._parsed.clear()
        self._version_ids.clear()
        places, names = bases.dictionary.to_pylist(), chains.dictionary.to_pylist()
        codes = chains.indices.to_numpy().astype(np.int64) * len(places) + bases.indices.to_numpy()
        # Rows come in the order of their serials, which a stable sort keeps among equals.
        order = np.lexsort((columns.versions, codes))
        versions, codes = columns.versions[order], codes[order]
        repeated = np.append((versions[1:] == versions[:-1]) & (codes[1:] == codes[:-1]), False)
        if repeated.any():
            self._keep_unrecognised_rows(object_ids, columns, order[repeated])
            order, codes = order[~repeated], codes[~repeated]
        starts = np.flatnonzero(np.diff(codes, prepend=-1) != 0)
        stops = np.append(starts[1:], len(order))
        block = VersionBlock(columns.select(order).narrowed())
        for start, stop, code in zip(starts.tolist(), stops.tolist(), codes[starts].tolist(), strict=True):
            named = self._find_chain(names[code // len(places)], places[code % len(places)])
            if named is None:
                self._keep_unrecognised_rows(object_ids, columns, order[start:stop])
            else:
                found.setdefault(named[0], []).append(Chain(named[1], (Segment(block, start, stop),)))
        return found

    def _find_chain(self, chain: str, base: str) -> tuple[ObjectId, str | None] | None:
        """The table and branch whose versions have this object id and base (N1)."""
        path = parse_id(chain)
        table = self._tables.get(path)
        if table is not None and base == table.location:
            return table.id, None
        table = self._tables.get(path[:-1])
        if table is None:
            return None
        branch = unescape_branch(path[-1])
        if base != f"{table.location}/tree/{branch}" or chain != chain_object_id(table.id, branch):
            return None
        return table.id, branch

    def _keep_unrecognised_rows(
        self, object_ids: pa.StringArray, columns: VersionColumns, rows: NDArray[np.int64]
    ) -> None:
        for object_id, serial in zip(object_ids.take(rows).to_pylist(), columns.serials[rows].tolist(), strict=True):
            self._keep_unrecognised(object_id, serial)

    def _put_irregular(self, state: CatalogState) -> CatalogState:
        """Rows that columns could not hold, one by one."""
        if not self._irregular:
            return state
        locations = {path: table.location for path, table in self._tables.items()}
        puts: dict[str, Entry] = {}
        serials: dict[str, int] = {}
        unrecognised = dict(state.unrecognised_rows)
        for object_id, metadata, serial in self._irregular:
            entry = decode_version(object_id, metadata, locations)
            if entry is None:
                unrecognised[object_id] = (*unrecognised.get(object_id, ()), serial)
                continue
            shadowed = [
                *state.serials(entry.object_id),
                *([serials[entry.object_id]] if entry.object_id in serials else []),
            ]
            if shadowed:
                unrecognised[entry.object_id] = (*unrecognised.get(entry.object_id, ()), *shadowed)
            puts[entry.object_id] = entry
            serials[entry.object_id] = serial
        edited = apply_changes(state, Changes(puts), serials)
        return edited._replace(unrecognised_rows=Map(unrecognised))


def _properties(metadata: pa.StringArray) -> Iterable[Mapping[str, str]]:
    """The properties of each row; equal texts are decoded once."""
    if metadata.null_count == len(metadata):
        return repeat(NO_PROPERTIES)
    texts = metadata.dictionary_encode()
    decoded = [*map(decode_properties, texts.dictionary.to_pylist()), NO_PROPERTIES]
    return map(decoded.__getitem__, texts.indices.fill_null(len(decoded) - 1).to_pylist())


def _by_parent(paths: Iterable[ObjectId]) -> dict[ObjectId, list[str]]:
    names: dict[ObjectId, list[str]] = {}
    for path in paths:
        names.setdefault(path[:-1], []).append(path[-1])
    return names


def _sorted_names(names: list[str] | None) -> SortedNames:
    if not names:
        return NO_CHILDREN.tables
    names.sort()
    return SortedNames.from_sorted(names)


def _is_at(tables: Mapping[ObjectId, StoredTable], table_id: ObjectId, location: str) -> bool:
    table = tables.get(table_id)
    return table is not None and table.location == location


def add_load_hook(hook: LoadHook) -> None:
    """Enter `hook(rows)` around each load of a whole catalog in this process, from now on.

    For settings of the process that a load of so many rows wants; the library itself changes none.
    """
    if hook not in _hooks:
        _hooks.append(hook)


@contextmanager
def loading(rows: int) -> Iterator[None]:
    """Run a load of that many rows inside the hooks."""
    with ExitStack() as stack:
        for hook in _hooks:
            stack.enter_context(hook(rows))
        yield

"""The scan state: what runs saw at each location, so that a later one looks only where something may go (rule G26).

    _staging/gc/locations    the locations of tables and of dropped tables; written anew by each run

This is a hint: it says where a run looks. What it finds there is garbage by the rows and manifests that it reads. Of a
location where it does not look, it takes over that no manifest of the same rows names files of other tables. Where it
looks only at what is new, it takes that over of the same files, and that each of them was named: nothing goes then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b, sha256
from typing import Final, NamedTuple
from zlib import crc32

import pyarrow as pa

from lance_core.cleanup.survey import KnownFiles, list_known
from lance_core.storage.port import ObjectStore
from namespace_server.directory.gc.mark import MarkPhase
from namespace_server.directory.gc.report import MarkResult
from namespace_server.directory.model.entries import DEREGISTERED, DROPPED, PURGED, VersionEntry
from namespace_server.directory.model.root_layout import SCAN_STATE
from namespace_server.directory.model.snapshot import CatalogSnapshot

NEVER: Final = 2**62
NOT_LISTED: Final = KnownFiles(bytes(16), 0)
_FORMAT: Final = b"2"
_CHECK: Final = sha256().digest_size


class ScannedLocation(NamedTuple):
    """The state of a location that a run saw.

    Attributes:
        rows: Digest of the rows of the table there, or of its tombstone.
        listing: Digest of the names, sizes, dates and e_tags of its files; that of `NOT_LISTED` for what is not judged.
        youngest: The date of the youngest of them, in microseconds since the epoch.
        looked: When that was, in seconds since the epoch, by the store's clock.
        due: With a horizon above this something there may go, in seconds since the epoch; `NEVER` if nothing waits.
        names_others: Whether a manifest there may name files of other tables.
    """

    rows: bytes
    listing: bytes
    youngest: int
    looked: int
    due: int
    names_others: bool

    @property
    def files(self) -> KnownFiles:
        """Its files."""
        return KnownFiles(self.listing, self.youngest)

    @property
    def all_named(self) -> bool:
        """Whether each file was named by a manifest, and by none that may name files of other tables."""
        return self.files != NOT_LISTED and self.due == NEVER and not self.names_others


_SCHEMA: Final = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("rows", pa.binary(16)),
        pa.field("listing", pa.binary(16)),
        pa.field("youngest", pa.int64()),
        pa.field("looked", pa.int64()),
        pa.field("due", pa.int64()),
        pa.field("names_others", pa.bool_()),
    ],
    {b"format": _FORMAT},
)


def read_scan_state(store: ObjectStore) -> dict[str, ScannedLocation]:
    """The scan state of the last run, by location; empty if there was none, or it is damaged. One request."""
    data = store.find(SCAN_STATE)
    if data is None or sha256(data[_CHECK:]).digest() != data[:_CHECK]:
        return {}
    table = pa.ipc.open_file(pa.py_buffer(data[_CHECK:])).read_all()
    if not table.schema.equals(_SCHEMA, check_metadata=True):
        return {}
    locations, *columns = (column.to_pylist() for column in table.columns)
    return {location: ScannedLocation(*values) for location, *values in zip(locations, *columns, strict=True)}


def write_scan_state(store: ObjectStore, seen: Mapping[str, ScannedLocation]) -> None:
    """Replace the scan state of the last run. Raises `StorageError`."""
    columns = zip(*seen.values(), strict=True) if seen else [()] * len(ScannedLocation._fields)
    arrays = [pa.array(list(values), kind.type) for values, kind in zip((list(seen), *columns), _SCHEMA, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))
    body = sink.getvalue().to_pybytes()
    store.put(SCAN_STATE, sha256(body).digest() + body, durable=False)


@dataclass(slots=True)
class Choice:
    """The locations that a run looks at.

    Attributes:
        rows: The digest of the rows of each location.
        left_out: What was seen of the locations where it does not look.
        known: The files of locations where it looks, as far as each was named when they were listed last.
    """

    rows: dict[str, bytes]
    left_out: dict[str, ScannedLocation] = field(default_factory=dict)
    known: dict[str, KnownFiles] = field(default_factory=dict)


def choose_locations(
    store: ObjectStore,
    snapshot: CatalogSnapshot,
    seen: Mapping[str, ScannedLocation],
    *,
    now: datetime,
    horizon: datetime,
    every: timedelta,
) -> Choice:
    """Leave out the locations whose rows are as they were seen, and where nothing waits for this horizon.

    What was not looked at for as long as `every`, or for half of it by a part that depends on the location, is listed,
    and left out if its files are the same. Requests: one for each of these, and for each thousand files of them.
    """
    choice = Choice(dict(_digests(snapshot)))
    seconds, interval = int(now.timestamp()), int(every.total_seconds())
    for location, rows in choice.rows.items():
        entry = seen.get(location)
        if entry is not None and entry.all_named:
            choice.known[location] = entry.files
        if entry is None or entry.rows != rows or entry.due < horizon.timestamp() or entry.names_others:
            continue
        spread = crc32(location.encode()) % (interval // 2 + 1)
        if seconds - entry.looked >= interval - spread:
            if list_known(store, location) != entry.files:
                continue
            entry = entry._replace(looked=seconds)
        choice.left_out[location] = entry
    return choice


def scan_state_after(
    choice: Choice, mark: MarkPhase, found: MarkResult, waiting: Iterable[str], now: datetime
) -> dict[str, ScannedLocation]:
    """The scan state to store after a run that looked at all of `choice` but those that it left out.

    At the locations that are `waiting`, and where something was found, the next run looks again.
    """
    due = {orphan.path.partition("/")[0]: 0 for orphan in found.orphans}
    due |= dict.fromkeys(found.not_judged, 0) | dict.fromkeys(waiting, 0)
    for orphan in found.young:
        location = orphan.path.partition("/")[0]
        due[location] = min(due.get(location, NEVER), int(orphan.judged_by.timestamp()))
    seconds = int(now.timestamp())
    looked = {
        location: ScannedLocation(
            rows,
            *mark.listings.get(location, NOT_LISTED),
            seconds,
            due.get(location, NEVER),
            location in mark.naming_others,
        )
        for location, rows in choice.rows.items()
        if location not in choice.left_out
    }
    return {**choice.left_out, **looked}


def _digests(snapshot: CatalogSnapshot) -> Iterable[tuple[str, bytes]]:
    for table_id in snapshot.all_tables():
        table = snapshot.table(table_id)
        if table is not None:
            digest = blake2b(digest_size=16)
            for branch in snapshot.chains(table_id):
                for row in snapshot.versions(table_id, branch):
                    digest.update(_identity(row))
            yield table.location, digest.digest()
    for record in snapshot.records():
        if record.state in {DROPPED, PURGED, DEREGISTERED}:
            digest = blake2b(record.batch_uuid.encode(), digest_size=16)
            yield from ((party.location, digest.digest()) for party in record.participants)


def _identity(row: VersionEntry) -> bytes:
    return f"{row.branch} {row.version} {row.sha256}\n".encode()

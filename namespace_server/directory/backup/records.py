"""The parts of a backup, and their keys in the destination.

catalog.json                       the catalog that the destination belongs to, written first
backups/<id>.json                  the record of a backup, written last: without it there is no backup
tables/<location>/<state>.json     the inventory of a table in one state; `__manifest` is a table here
manifests/<sha256>                 manifests
logs/<sha256>                      files of write-ahead logs, whose names may come again
files/<key>                        all other files, under their keys below the root of the catalog

Files with random names never change, so a key stands for one content. A branch that is deleted and made again uses the
names of its manifests twice: manifests have their hashes for names. References change, and stand in inventories. So
nothing in a destination is ever replaced by something else, and all backups share what they have in common. Records and
inventories have the SHA-256 of their content in them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple, cast

import orjson

from lance_core.errors import CorruptFile
from lance_core.storage.port import ObjectStore
from namespace_server.directory.model.entries import VersionEntry

RECORDS: Final = "backups"
INVENTORIES: Final = "tables"
MANIFESTS: Final = "manifests"
FILES: Final = "files"
LOGS: Final = "logs"
_FORMAT: Final = 1
_FORMAT_OF_LOGS: Final = 2
"""The format of inventories with a log, which earlier releases would leave out of a restoration."""


class StoredFile(NamedTuple):
    """A file of a backup: its key below the root of the catalog, its size in bytes, and its SHA-256."""

    key: str
    size: int
    sha256: str


class StoredVersion(NamedTuple):
    """A version of a table, by its manifest. `sha256` is empty where it stands for a row that has none."""

    branch: str | None
    version: int
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """How reports name it."""
        return f"version {self.version}" + (f" of branch {self.branch}" if self.branch else "")


class LeftOut(NamedTuple):
    """A file that a backup does not have, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """A table in one state.

    Attributes:
        location: The key of its directory below the root.
        versions: Its versions, each branch ascending.
        files: What the versions need besides their manifests, wherever it lies below the root.
        references: Tags, references of branches, and notes, by their keys.
        bases: The roots that manifests name by absolute paths: by path as it is written, the key below the root.
        outside: Base paths that lead outside of the root, as they are written.
        damaged: Files of earlier versions that the rows do not need, and that are not there as they should be.
        external: Where values of blob columns lie that are files elsewhere, by the key of the data file that has them.
            None in inventories of earlier releases, which did not look.
        log: The files of its write-ahead logs; None if none of its newest versions has one. Inventories of earlier
            releases do not state it.
    """

    location: str
    versions: tuple[StoredVersion, ...] = ()
    files: tuple[StoredFile, ...] = ()
    references: Mapping[str, bytes] = field(default_factory=dict)
    bases: Mapping[str, str] = field(default_factory=dict)
    outside: tuple[str, ...] = ()
    damaged: tuple[LeftOut, ...] = ()
    log: tuple[StoredFile, ...] | None = ()
    external: Mapping[str, tuple[str, ...]] | None = None

    @property
    def count(self) -> int:
        """The number of its files without manifests."""
        return len(self.files) + len(self.log or ())

    @property
    def size(self) -> int:
        """Bytes of its files and manifests."""
        files = sum(file.size for _, file in self.sources())
        return files + sum(each.size for each in self.versions)

    def sources(self) -> Iterator[tuple[str, StoredFile]]:
        """Its files without manifests, each with its key in the destination."""
        yield from ((file_key(each.key), each) for each in self.files)
        yield from ((log_key(each.sha256), each) for each in self.log or ())

    def encode(self) -> bytes:
        """The content of its file."""
        return encode_file(
            {
                "location": self.location,
                "versions": self.versions,
                "files": self.files,
                "references": {key: base64.b64encode(data).decode() for key, data in self.references.items()},
                "bases": dict(self.bases),
                "outside": self.outside,
                **({"damaged": self.damaged} if self.damaged else {}),
                "log": self.log,
                "external": self.external,
            },
            _FORMAT_OF_LOGS if self.log else _FORMAT,
        )


@dataclass(frozen=True, slots=True)
class BackedUpTable:
    """A table of a backup: its id joined by '$', its location, the state of its inventory, and what that holds."""

    table: str
    location: str
    state: str
    versions: int
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class BackupRecord:
    """A backup.

    Attributes:
        id: Its name; the names of later backups are greater.
        catalog_version: The version of the catalog.
        timestamp_ms: When that version was committed, in milliseconds since the epoch.
        created_ms: When the backup was begun.
        root: The root of the catalog, as a URI.
        heads: Whether it has the newest version of each branch only, and those that references name.
        catalog: The catalog's own table, of one version.
        tables: Its tables, in the order of their ids.
        left_out: What the catalog version has, and the backup has not.
        outside: Base paths outside of the root, which tables go on to name.
        identity: What names the catalog; '' in backups of earlier releases.
    """

    id: str
    catalog_version: int
    timestamp_ms: int
    created_ms: int
    root: str
    heads: bool
    catalog: BackedUpTable
    tables: tuple[BackedUpTable, ...]
    left_out: tuple[LeftOut, ...] = ()
    outside: tuple[str, ...] = ()
    identity: str = ""

    @property
    def parts(self) -> tuple[BackedUpTable, ...]:
        """The catalog's own table, then the tables."""
        return (self.catalog, *self.tables)

    @property
    def size(self) -> int:
        """Bytes of all files and manifests; shared ones count for each table."""
        return sum(part.size for part in self.parts)

    def as_json(self) -> dict[str, object]:
        """The content of its file, also that of reports."""
        return {
            "id": self.id,
            "catalog_version": self.catalog_version,
            "timestamp_millis": self.timestamp_ms,
            "created_millis": self.created_ms,
            "root": self.root,
            "heads": self.heads,
            "catalog": asdict(self.catalog),
            "tables": [asdict(part) for part in self.tables],
            "left_out": [list(each) for each in self.left_out],
            "outside": list(self.outside),
            "identity": self.identity,
        }

    def encode(self) -> bytes:
        """The content of its file."""
        return encode_file(self.as_json())


def record_key(backup_id: str) -> str:
    """The key of the record of a backup."""
    return f"{RECORDS}/{backup_id}.json"


def inventory_key(location: str, state: str) -> str:
    """The key of the inventory of a table."""
    return f"{INVENTORIES}/{location}/{state}.json"


def manifest_key(sha256: str) -> str:
    """The key of a manifest in the destination."""
    return f"{MANIFESTS}/{sha256}"


def file_key(key: str) -> str:
    """The key of a file in the destination, by its key below the root of the catalog."""
    return f"{FILES}/{key}"


def version_of(row: VersionEntry) -> StoredVersion:
    """A version with the facts of its row."""
    return StoredVersion(row.branch, row.version, row.size, row.sha256)


def log_key(sha256: str) -> str:
    """The key of a file of a write-ahead log in the destination."""
    return f"{LOGS}/{sha256}"


def state_of(
    versions: Iterable[StoredVersion], references: Mapping[str, bytes], log: Sequence[StoredFile] | None = None
) -> str:
    """The digest of the versions, references and log of a table: equal digests mean equal inventories."""
    parts = {"versions": list(versions), "references": {key: _sha256(data) for key, data in references.items()}}
    return _sha256(_content(parts if log is None else {**parts, "log": list(log)}))[:32]


def read_inventory(store: ObjectStore, location: str, state: str) -> Inventory:
    """The inventory of a table. Raises `NotFound`, `CorruptFile`, `StorageError`."""
    key = inventory_key(location, state)
    values = decode_file(store, key)
    try:
        return Inventory(
            values["location"],
            tuple(StoredVersion(*each) for each in values["versions"]),
            tuple(StoredFile(*each) for each in values["files"]),
            {name: base64.b64decode(data) for name, data in values["references"].items()},
            values["bases"],
            tuple(values["outside"]),
            tuple(LeftOut(*each) for each in values.get("damaged", ())),
            None if (log := values.get("log", ())) is None else tuple(StoredFile(*each) for each in log),
            None if (places := values.get("external")) is None else {key: tuple(each) for key, each in places.items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFile(f"{store.object_uri(key)} is no inventory of a table: {error!r}") from error


def read_record(store: ObjectStore, backup_id: str) -> BackupRecord:
    """The record of a backup. Raises `NotFound`, `CorruptFile`, `StorageError`."""
    key = record_key(backup_id)
    values = decode_file(store, key)
    try:
        return BackupRecord(
            values["id"],
            values["catalog_version"],
            values["timestamp_millis"],
            values["created_millis"],
            values["root"],
            values["heads"],
            BackedUpTable(**values["catalog"]),
            tuple(BackedUpTable(**part) for part in values["tables"]),
            tuple(LeftOut(*each) for each in values["left_out"]),
            tuple(values["outside"]),
            values.get("identity", ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFile(f"{store.object_uri(key)} is no record of a backup: {error!r}") from error


def list_backups(store: ObjectStore) -> list[str]:
    """The ids of the backups in a destination, the oldest first. One listing."""
    return sorted(name.removesuffix(".json") for name in store.names(RECORDS) if name.endswith(".json"))


def read_records(store: ObjectStore) -> list[BackupRecord]:
    """All records in a destination, the oldest first. Raises as `read_record`; one request each, in parallel."""
    return list(store.map(lambda backup_id: read_record(store, backup_id), list_backups(store)))


def readable_records(store: ObjectStore) -> tuple[list[BackupRecord], list[CorruptFile]]:
    """The readable records of a destination, the oldest first, and the faults of the others.

    Raises `StorageError`; one request each, in parallel.
    """

    def read(backup_id: str) -> BackupRecord | CorruptFile:
        try:
            return read_record(store, backup_id)
        except CorruptFile as error:
            return error

    found = list(store.map(read, list_backups(store)))
    records = [each for each in found if isinstance(each, BackupRecord)]
    return records, [each for each in found if isinstance(each, CorruptFile)]


def encode_file(values: Mapping[str, object], version: int = _FORMAT) -> bytes:
    """A file of a destination: values, and the SHA-256 of them."""
    content = _content({"format": version, **values})
    return orjson.dumps({"sha256": _sha256(content), "content": orjson.Fragment(content)})


def _content(values: Mapping[str, object]) -> bytes:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS, default=list)


def decode_file(store: ObjectStore, key: str) -> dict[str, Any]:
    """The values of a file of a destination. Raises `NotFound`, `CorruptFile`, `StorageError`."""
    data = store.get(key)
    try:
        values = orjson.loads(data)
        content = values["content"]
        if values["sha256"] != _sha256(_content(content)):
            raise CorruptFile(
                f"{store.object_uri(key)}: expected a content of SHA-256 {values['sha256']}, found another"
            )
        if content["format"] not in {_FORMAT, _FORMAT_OF_LOGS}:
            text = f"expected format {_FORMAT} or {_FORMAT_OF_LOGS}, found {content['format']}"
            raise CorruptFile(f"{store.object_uri(key)}: {text}")
        return cast("dict[str, Any]", content)
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise CorruptFile(f"{store.object_uri(key)}: expected JSON, found {len(data)} bytes: {error!r}") from error


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

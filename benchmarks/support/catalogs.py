"""Large catalogs, written in one go: what a root looks like after a million changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random
from uuid import UUID

import lance
import pyarrow as pa

from lance_core.format.naming import manifest_path
from namespace_server.directory.manifest_table.row_codec import encode_entry
from namespace_server.directory.model.entries import Entry, NamespaceEntry, TableEntry, VersionEntry

SCHEMA = pa.schema(
    [
        pa.field(
            "object_id", pa.string(), nullable=False, metadata={"lance-schema:unenforced-primary-key:position": "0"}
        ),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)
MANAGED = {
    "table_version_management": "true",
    "lance.namespace.manifest.writer_feature_flags": str(1 << 32),
}
ROWS_PER_FRAGMENT = 250_000
VERSIONS_PER_TABLE = 19
TABLES_PER_NAMESPACE = 50
WIDE_NAMESPACE = "warehouse"
_LAYERS = ("raw", "staging", "core", "mart", "feature", "tmp")
_SUBJECTS = (
    "account", "audience", "basket", "campaign", "claim", "click", "contract", "customer", "delivery", "device",
    "event", "invoice", "ledger", "order", "payment", "product", "return", "session", "store", "visit",
)  # fmt: skip
_GRAINS = ("hourly", "daily", "monthly", "eu", "us", "apac", "v2", "snapshot")


def write_managed_catalog(root: Path, rows: int) -> tuple[str, str]:
    """A root of ours with that many rows: namespaces of 50 tables with 19 versions each. Returns the id of a table.

    Only `__manifest` is written: the tables' own files are not there.
    """
    encoded = [encode_entry(entry) for entry in islice(_entries(), rows)]
    ids, kinds, locations, metadata = (list(column) for column in zip(*encoded, strict=True))
    _write(root, ids, kinds, locations, metadata)
    lance.dataset(root / "__manifest").update_metadata(MANAGED)
    return ("space_00000", "table_00000")


def write_stock_catalog(root: Path, rows: int) -> tuple[str, str]:
    """A root of pylance's with that many rows, namespaces of 1,000 tables. Returns the id of a table.

    pylance keeps no version rows: its rows are namespaces and tables only.
    """
    spaces = max(1, rows // 1000)
    tables = [f"ns{number % spaces:04d}$table_{number:07d}" for number in range(rows - spaces)]
    locations: list[str | None] = [None] * spaces
    locations += [f"{number:08x}_{name}" for number, name in enumerate(tables)]
    ids = [f"ns{number:04d}" for number in range(spaces)] + tables
    _write(root, ids, ["namespace"] * spaces + ["table"] * len(tables), locations, [None] * rows)
    return ("ns0000", "table_0000000")


def write_wide_catalog(root: Path, tables: int) -> tuple[str, str]:
    """A root of ours with that many tables declared in one namespace. Returns the id of a table."""
    source = Random(tables)
    names = [f"{WIDE_NAMESPACE}${name}" for name in table_names(source, tables)]
    locations: list[str | None] = [None, *(f"{source.getrandbits(32):08x}_{name}" for name in names)]
    _write(root, [WIDE_NAMESPACE, *names], ["namespace", *["table"] * tables], locations, [None] * (tables + 1))
    lance.dataset(root / "__manifest").update_metadata(MANAGED)
    return (WIDE_NAMESPACE, names[0].partition("$")[2])


def table_names(source: Random, count: int) -> list[str]:
    """Distinct names as a warehouse has them, in no order: any few of them are spread over all others."""
    names: dict[str, None] = {}
    while len(names) < count:
        words = (source.choice(_LAYERS), source.choice(_SUBJECTS), source.choice(_SUBJECTS), source.choice(_GRAINS))
        names["_".join(words) + f"_{source.randrange(10**6):06d}"] = None
    return list(names)


def _entries() -> Iterator[Entry]:
    """Entries in the order of their making."""
    timestamp = time.time_ns() // 1_000_000
    number = 0
    while True:
        space = f"space_{number:05d}"
        yield NamespaceEntry((space,), {"owner": "benchmark"})
        for position in range(TABLES_PER_NAMESPACE):
            table = (space, f"table_{position:05d}")
            seed = number * TABLES_PER_NAMESPACE + position
            location = f"{seed:08x}_{'$'.join(table)}"
            yield TableEntry(table, location)
            for version in range(1, VERSIONS_PER_TABLE + 1):
                digest = sha256(b"%d %d" % (seed, version)).digest()
                uuid, suffix = UUID(bytes=digest[:16], version=4), UUID(bytes=digest[16:], version=4)
                yield VersionEntry(
                    table_id=table,
                    branch=None,
                    version=version,
                    location=location,
                    size=459,
                    sha256=digest.hex(),
                    transaction_uuid=str(uuid),
                    timestamp_ms=timestamp,
                    e_tag=f'"{digest[:3].hex()}-{digest[3:10].hex()}-1cb"',
                    staged_path=f"{manifest_path(location, version)}-{suffix}",
                )
        number += 1


def _write(
    root: Path, ids: list[str], kinds: list[str], locations: list[str | None], metadata: list[str | None]
) -> None:
    columns = [
        pa.array(ids),
        pa.array(kinds),
        pa.array(locations, pa.string()),
        pa.array(metadata, pa.string()),
        pa.nulls(len(ids), SCHEMA.field("base_objects").type),
    ]
    lance.write_dataset(
        pa.table(columns, schema=SCHEMA),
        root / "__manifest",
        data_storage_version="2.2",
        max_rows_per_file=ROWS_PER_FRAGMENT,
    )

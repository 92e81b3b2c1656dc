"""What happened in a history: what clients did and were told, and what the catalog holds in the end.

A row has a `key`, the transaction `tx` that wrote it last, and a number `n`. Three effects are all that transactions
do to rows, and each names its transaction: a key that is used once is inserted, a key is deleted by at most one
transaction, a counter is incremented. So each version of a table tells which transactions made it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import lance
import orjson
import pyarrow as pa
from lance.file import LanceFileReader

from lance_core.format.manifest import parse_manifest_file
from namespace_server.directory.namespace import DirectoryNamespace

NAMESPACE = "h"
TABLES = ("t0", "t1", "t2")
SCHEMA = pa.schema([("key", pa.string()), ("tx", pa.string()), ("n", pa.int64())])

Action = Literal["insert", "delete", "increment"]
Outcome = Literal["committed", "rejected", "unknown"]
Row = tuple[str, str, int]


@dataclass(frozen=True, slots=True, order=True)
class Effect:
    """What a transaction does to one row."""

    table: str
    action: Action
    key: str


@dataclass(slots=True)
class Event:
    """One transaction, or one read, of one client.

    Attributes:
        name: The name of the transaction, which is in its rows.
        client: The client.
        effects: What it does to rows; nothing for a read or a compaction.
        begun, ended: When it was invoked, and when its outcome was known, by the clock of the process.
        outcome: What the client was told; unknown if there was no answer.
        catalog_version: The catalog version that it was told to be in, if it was told one.
        versions: The versions of tables that it was told to have made.
        answered_otherwise: What repetitions of the request under its key were told, where that is not the first answer.
        read_at: The catalog version of all its reads, if it was told one.
        reads: The versions of the tables that it read.
        rows: The rows that it read, by table.
        at_heads: Whether the reads asked for the newest version of the table, not for that of a catalog version.
        serializable: Whether nothing that it read may have changed until its commit.
        by_path: Whether it was committed to the table's directory, around the catalog.
    """

    name: str
    client: str
    effects: tuple[Effect, ...] = ()
    begun: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    outcome: Outcome = "unknown"
    catalog_version: int | None = None
    versions: dict[str, int] = field(default_factory=dict)
    answered_otherwise: list[str] = field(default_factory=list)
    read_at: int | None = None
    reads: dict[str, int] = field(default_factory=dict)
    rows: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    at_heads: bool = False
    serializable: bool = False
    by_path: bool = False

    @property
    def tables(self) -> list[str]:
        return sorted({effect.table for effect in self.effects})


@dataclass(slots=True)
class Walk:
    """What the catalog holds once everything is quiet: every version of every table.

    Attributes:
        pins: The version of each table at each catalog version.
        states: The rows of each version of each table.
        aside: The transactions of rows, and the effects of deletions, of which the catalog reports that they were
            committed by path and are not in the table.
        again: The same of those that it has committed again, perhaps under the number that they had before.
    """

    pins: dict[int, dict[str, int]]
    states: dict[str, dict[int, tuple[Row, ...]]]
    aside: frozenset[str | Effect] = frozenset()
    again: frozenset[str | Effect] = frozenset()


class Recorder:
    """Takes the events of all clients, and the errors that none of them may raise. Thread-safe."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.faults: Counter[str] = Counter()
        self.failures: list[str] = []
        self._lock = threading.Lock()

    def end(self, event: Event) -> None:
        event.ended = time.monotonic()
        with self._lock:
            self.events.append(event)

    def fault(self, kind: str) -> None:
        with self._lock:
            self.faults[kind] += 1

    def fail(self, text: str) -> None:
        with self._lock:
            self.failures.append(text)

    def write(self, path: Path) -> None:
        events = [asdict(event) for event in self.events]
        path.write_text("\n".join(json.dumps(event) for event in events) + "\n")


def rows_of(table: pa.Table) -> tuple[Row, ...]:
    """Rows in the order of their keys."""
    columns = (table.column(name).to_pylist() for name in ("key", "tx", "n"))
    return tuple(sorted(zip(*columns, strict=True)))


def arrow_rows(rows: list[Row]) -> pa.Table:
    """The opposite of `rows_of`."""
    keys, transactions, numbers = zip(*rows, strict=True)
    return pa.table({"key": keys, "tx": transactions, "n": numbers}, schema=SCHEMA)


def walk(root: Path) -> Walk:
    """Read all versions of the catalog and of its tables, after the recovery that a next server would do."""
    namespace = DirectoryNamespace(root=str(root), durability="none", sweep_interval_seconds="0")
    try:
        for _ in range(2):
            namespace.catalog.sweep()
            for table in TABLES:
                namespace.read("list_table_versions", {"id": [NAMESPACE, table]})  # adopts what was committed by path
        namespace.catalog.sweep()
        namespace.catalog.flush_record_housekeeping()
        newest = namespace.newest().version
        pins = {version: _pins(namespace, version) for version in range(1, newest + 1)}
        states = {table: _states(namespace, table) for table in TABLES}
        reported = {
            outcome: frozenset(_reported(namespace, root, outcome)) for outcome in ("kept aside", "committed again")
        }
        return Walk(pins, states, aside=reported["kept aside"], again=reported["committed again"])
    finally:
        namespace.close()


def _reported(namespace: DirectoryNamespace, root: Path, outcome: str) -> Iterator[str | Effect]:
    """The quarantined commits whose reports tell this outcome."""
    snapshot = namespace.catalog.snapshot()
    for record in snapshot.records():
        content = orjson.loads(record.results) if record.state == "foreign" else {}
        if content.get("outcome") != outcome:
            continue
        file = parse_manifest_file((root / content["kept_at"]).read_bytes())
        assert file.transaction is not None
        base = root / content["path"].partition("/_versions/")[0]
        table_id = snapshot.table_at(base.name)
        assert table_id is not None
        if file.operation == "delete":
            key = file.transaction.delete.predicate.rpartition("key = ")[2].strip("'() ")
            yield Effect(table_id[-1], "delete", key)
        for fragment in (*file.transaction.append.fragments, *file.transaction.update.new_fragments):
            for data in fragment.files:
                reader = LanceFileReader(str(base / "data" / data.path))
                yield from reader.read_all().to_table()["tx"].to_pylist()


def _pins(namespace: DirectoryNamespace, version: int) -> dict[str, int]:
    body: Mapping = namespace.read("describe_catalog_version", {"version": version}).body
    return {table["id"][-1]: table["version"] for table in body["tables"] if table.get("version") is not None}


def _states(namespace: DirectoryNamespace, table: str) -> dict[int, tuple[Row, ...]]:
    table_id = [NAMESPACE, table]
    listed = namespace.read("list_table_versions", {"id": table_id}).body["versions"]
    head = lance.dataset(namespace_client=namespace, table_id=table_id)
    numbers = sorted(version["version"] for version in listed)
    return {number: rows_of(head.checkout_version(number).to_table()) for number in numbers}

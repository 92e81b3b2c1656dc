"""The clients of a history, one class for each kind: each step is one transaction or read, recorded as an event.

A client takes the answers that it expects of servers that are killed and paused for an outcome. Everything else that
it meets is raised, and fails the history.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx
import lance
import pyarrow as pa
from lance.namespace import RestNamespace
from lance_namespace.errors import LanceNamespaceError

from namespace_client import (
    Catalog,
    CatalogUnavailable,
    CatalogUnreachable,
    CommitRejected,
    CommitUnknown,
    RetryableConflict,
)
from namespace_client.transaction import MultiTableTransaction
from tests.data.arrow import ARROW, stream
from tests.histories.history import NAMESPACE, TABLES, Action, Effect, Event, Outcome, Recorder, arrow_rows, rows_of
from tests.histories.workload import Workload

ACTIONS: tuple[Action, ...] = ("insert", "increment", "delete")
TRIES = 20
COLLECTED = ("stage again", ": nothing there")
"""In refusals of what a collection may have removed, or has (rule G2)."""


_LISTED = ("/_versions/", "failed to fill whole buffer")
"""In errors of a client that had listed a version on storage which was then moved to quarantine.

Another version may have its name by then. pylance reads that with the listed size, which can be larger than the file.
Writers through the catalog list versions as well before they change rows.
"""
_MOVED_AWAY = (*_LISTED, "Invalid range", "two fragments with id")
"""The same of a writer by path, which goes on with a handle on such a version."""


class Unexpected(Exception):
    """An answer that no server may give here."""


class Client:
    """One client. `step` does one transaction or read; the choices are those of the seed.

    A kind that is quicker than others has a `pause` between its steps, at most that many seconds. `meeting` is called
    once in each step: by a transaction of `namespace_client` between its reads and its commit. `committed` counts the
    steps that were acknowledged.
    """

    pause: float = 0.0

    def __init__(self, name: str, seed: str, urls: Sequence[str], workload: Workload, recorder: Recorder) -> None:
        self.name = name
        self.urls = urls
        self.workload = workload
        self.recorder = recorder
        self.chance = random.Random(f"{seed} {name}")
        self.committed = 0
        self._number = 0
        self.meeting: Callable[[], object] = lambda: None
        self._met = False

    def step(self) -> None:
        time.sleep(self.chance.uniform(0, self.pause))
        event = self.begin()
        self._met = False
        self.act(event)
        self.recorder.end(event)
        self.workload.note(event)
        self.committed += event.outcome == "committed"
        self.meet()

    def meet(self) -> None:
        """Wait for the other clients, if there are meetings and none was in this step yet."""
        if not self._met:
            self._met = True
            self.meeting()

    def begin(self) -> Event:
        self._number += 1
        return Event(f"{self.name}-{self._number}", self.name)

    def act(self, event: Event) -> None:
        """Do it, and note in the event what was told."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections."""


class OwnClient(Client):
    """Transactions of `namespace_client` over one to three tables, under snapshot isolation; or reads of all tables."""

    serializable = False
    compacting: ClassVar[float] = 0.05
    appending: ClassVar[float] = 0.7
    refusals: ClassVar[tuple[str, ...]] = COLLECTED

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._catalogs = [Catalog.connect(url, namespace=[NAMESPACE]) for url in self.urls]

    def close(self) -> None:
        for catalog in self._catalogs:
            catalog.close()

    def act(self, event: Event) -> None:
        event.serializable = self.serializable
        event.effects = tuple(self.choose(event.name))
        compacted = self.chance.choice(TABLES) if self.chance.random() < self.compacting else None
        catalog = self.chance.choice(self._catalogs)
        transaction: MultiTableTransaction | None = None
        try:
            for attempt in catalog.retrying(
                attempts=4, message=event.name, isolation="serializable" if self.serializable else "snapshot"
            ):
                with attempt as transaction:
                    self._change(event, transaction, compacted)
        except (RetryableConflict, CatalogUnavailable, CatalogUnreachable):
            event.outcome = "rejected"
        except CommitRejected as error:
            if not any(text in str(error) for text in self.refusals):
                raise
            event.outcome = "rejected"
        except CommitUnknown:
            if self.chance.random() < 0.8:
                self._resend(event, transaction, compacted)
        else:
            self._committed(event, transaction, compacted)

    def choose(self, name: str) -> Sequence[Effect]:
        """The effects of the transaction of this name."""
        tables = self.chance.sample(TABLES, self.chance.choice((1, 2, 2, 3)))
        return self.workload.effects(name, self.chance, tables, ACTIONS)

    def choose_reads(self, event: Event) -> set[str]:
        """The tables that the transaction reads as a whole."""
        return set()

    def _change(self, event: Event, tx: MultiTableTransaction, compacted: str | None) -> None:
        event.read_at, event.reads = tx.catalog_version, {}
        try:
            event.reads = {table: tx.table(table).version for table in self.choose_reads(event)}
            for effect in event.effects:
                self._apply(event, tx, effect)
            if compacted is not None:
                tx.compact(compacted)
        finally:
            event.read_at = tx.catalog_version  # it moves where commits around the catalog are adopted
        self.meet()

    def _apply(self, event: Event, tx: MultiTableTransaction, effect: Effect) -> None:
        where, table = f"key = '{effect.key}'", effect.table
        if effect.action == "delete":
            tx.delete(table, where)
        elif effect.action == "insert" and self.chance.random() < self.appending:
            tx.append(table, arrow_rows([(effect.key, event.name, 0)]))
        elif effect.action == "insert":
            tx.merge(table, arrow_rows([(effect.key, event.name, 0)]), on="key")
        elif self.chance.random() < 0.5:
            tx.update(table, {"n": "n + 1", "tx": f"'{event.name}'"}, where=where)
        else:
            found = tx.table(table).to_table(columns=["n"], filter=where)["n"].to_pylist()
            n = max(found)  # the checker sees a counter that is there twice
            tx.merge(table, arrow_rows([(effect.key, event.name, n + 1)]), on="key")

    def _resend(self, event: Event, tx: MultiTableTransaction, compacted: str | None) -> None:
        """Until there is an answer; a refusal is none, since the first request may still be applied."""
        for _ in range(3):
            try:
                tx.resend()
            except (CommitUnknown, CatalogUnreachable):
                continue
            except CommitRejected:
                return
            self._committed(event, tx, compacted)
            return

    def _committed(self, event: Event, tx: MultiTableTransaction, compacted: str | None) -> None:
        event.outcome = "committed"
        event.catalog_version = tx.result.catalog_version
        # A compaction is a version of its own, after the one with the rows.
        tables = {*event.tables} - {compacted}
        event.versions = {table.id[-1]: table.version for table in tx.result.tables if table.id[-1] in tables}


class SerializableClient(OwnClient):
    """The same under serializable isolation: each transaction reads a table more than it writes."""

    serializable = True
    compacting = 0.0

    def choose_reads(self, event: Event) -> set[str]:
        return {*event.tables, self.chance.choice(TABLES)}


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that was answered with success, and the event that it belongs to."""

    event: Event
    path: str
    body: object
    key: str
    answer: Any


class HttpClient(Client):
    """Row routes and batches over plain HTTP. Each request has a key, and is repeated under it."""

    kinds: ClassVar[Sequence[str]] = ("insert", "merge", "update", "delete", "batch", "batch")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._servers = [httpx.Client(base_url=url, timeout=60) for url in self.urls]
        self._answered: deque[Answered] = deque(maxlen=10)

    def close(self) -> None:
        for server in self._servers:
            server.close()

    def act(self, event: Event) -> None:
        self._change(event)
        for before in self.choose_answered(tuple(self._answered)):
            self._repeat(before)

    def choose_answered(self, answered: Sequence[Answered]) -> Sequence[Answered]:
        """Those of the requests that were `answered`, oldest first, which are sent once more in this step."""
        return [self.chance.choice(answered)] if answered and self.chance.random() < 0.6 else []

    def _change(self, event: Event) -> None:
        table = self.chance.choice(TABLES)
        kind = self.chance.choice(self.kinds)
        if kind == "batch":
            self._batch(event)
            return
        action: Action = {"update": "increment", "delete": "delete"}.get(kind, "insert")  # type: ignore[assignment]
        event.effects = tuple(self.workload.effects(event.name, self.chance, [table], [action]))
        if not event.effects:
            event.outcome = "rejected"
            return
        key, once = event.effects[0].key, f"key of {event.name}"
        route = f"/v1/table/{NAMESPACE}${table}"
        match kind:
            case "insert":
                answer = self._rows(event, f"{route}/insert?mode=append", [key], once)
            case "merge":
                answer = self._rows(event, f"{route}/merge_insert?on=key&when_not_matched_insert_all=true", [key], once)
            case "update":
                updates = [["n", "n + 1"], ["tx", f"'{event.name}'"]]
                update = {"predicate": f"key = '{key}'", "updates": updates}
                answer = self._decide(event, f"{route}/update", update, key=once)
            case _:
                answer = self._decide(event, f"{route}/delete", {"predicate": f"key = '{key}'"}, key=once)
        if answer is not None:
            event.versions = {table: answer["version"]}

    def _batch(self, event: Event) -> None:
        """Rows of two tables, staged and then committed together."""
        tables = self.chance.sample(TABLES, 2)
        effects = self.workload.effects(event.name, self.chance, tables, ["insert"])
        operations: list[Any] = []
        for effect in effects:
            staged = Event(event.name, self.name)
            answer = self._rows(staged, f"/v1/table/{NAMESPACE}${effect.table}/stage?mode=append", [effect.key])
            if answer is None:
                event.outcome = "rejected"  # nothing of it is in a batch
                return
            operations += answer["operations"]
        event.effects = tuple(effects)
        answer = self._decide(event, "/v1/table/batch-commit", {"operations": operations}, key=f"key of {event.name}")
        if answer is not None:
            event.versions = {
                effect.table: result["commit_transaction"]["version"]["version"]
                for effect, result in zip(effects, answer["results"], strict=True)
            }

    def _rows(self, event: Event, path: str, keys: Sequence[str], key: str | None = None) -> Any:
        body = stream(arrow_rows([(each, event.name, 0) for each in keys]))
        return self._decide(event, path, body, key=key)

    def _decide(self, event: Event, path: str, body: object, *, key: str | None = None) -> Any:
        """Send a request until there is a verdict, if a key makes that safe; the body of a success."""
        doubtful = False
        for _ in range(TRIES if key is not None else 1):
            try:
                answer = self._send(path, body, key)
            except httpx.ConnectError:
                time.sleep(0.1)
                continue
            except httpx.TransportError:
                doubtful = True
                continue
            if answer.status_code == 200:
                event.outcome = "committed"
                event.catalog_version = int(answer.headers["x-lance-catalog-version"])
                if key is not None:
                    self._answered.append(Answered(event, path, body, key, answer.json()))
                return answer.json()
            error = answer.json()
            collected = any(text in error["error"] for text in COLLECTED)
            if (answer.status_code, error["code"]) == (409, 14) or collected:
                event.outcome = "unknown" if doubtful else "rejected"
                return None
            if error["code"] not in {17, 21}:
                raise Unexpected(f"{path}: {answer.status_code} {answer.text}")
            doubtful |= error["outcome"] != "nothing_done"
            time.sleep(0.1)
        event.outcome = "unknown" if doubtful else "rejected"
        return None

    def _repeat(self, before: Answered) -> None:
        """Send what was answered once more, to any server: it must change nothing, and be answered as before."""
        try:
            answer = self._send(before.path, before.body, before.key)
        except httpx.TransportError:
            return
        if answer.status_code == 200:
            version = int(answer.headers["x-lance-catalog-version"])
            if version == before.event.catalog_version and is_repeated(before.answer, answer.json()):
                return
            told = f"catalog version {version}, {answer.text}"
        else:
            if answer.json()["code"] in {17, 21}:
                return
            told = f"{answer.status_code} {answer.text}"
        before.event.answered_otherwise.append(f"{told}, not {before.event.catalog_version}, {before.answer}")

    def _send(self, path: str, body: object, key: str | None) -> httpx.Response:
        server = self.chance.choice(self._servers)
        headers = {} if key is None else {"idempotency-key": key}
        if isinstance(body, bytes):
            return server.post(path, content=body, headers={**ARROW, **headers})
        return server.post(path, json=body, headers=headers)


def is_repeated(before: Any, again: Any) -> bool:
    """Whether a second answer is the first one; a manifest that had its staged name alone may have its place since."""
    if isinstance(before, dict) and isinstance(again, dict):
        return before.keys() == again.keys() and all(
            is_repeated(value, again[name])
            or (name == "manifest_path" and "/_staging/" in value and "/_versions/" in again[name])
            for name, value in before.items()
        )
    if isinstance(before, list) and isinstance(again, list):
        return len(before) == len(again) and all(map(is_repeated, before, again))
    return bool(before == again)


class StockClient(Client):
    """pylance as it is, through its namespace client."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._namespaces = [RestNamespace(uri=url) for url in self.urls]

    def act(self, event: Event) -> None:
        table = self.chance.choice(TABLES)
        action: Action = self.chance.choice(ACTIONS)
        place = {"namespace_client": self.chance.choice(self._namespaces), "table_id": [NAMESPACE, table]}
        event.effects = tuple(self.workload.effects(event.name, self.chance, [table], [action]))
        if not event.effects:
            event.outcome = "rejected"
            return
        where = f"key = '{event.effects[0].key}'"
        with StockOutcome(event):
            if action == "insert":
                rows = arrow_rows([(event.effects[0].key, event.name, 0)])
                dataset = lance.write_dataset(rows, mode="append", **place)
            else:
                dataset = lance.dataset(**place)
                if action == "delete":
                    dataset.delete(where)
                else:
                    dataset.update({"n": "n + 1", "tx": f"'{event.name}'"}, where=where)
            event.versions = {table: dataset.version}


class PathClient(Client):
    """pylance as it is, on the directories of the tables, by handles that it holds from step to step.

    Rows that it has inserted are changed and deleted by no other client. What others do with a table beside rows it
    does as well: compaction, indices, config.
    """

    pause = 0.6
    locations: Mapping[str, str]
    kinds: ClassVar[Sequence[str]] = (
        "insert",
        "insert",
        "insert",
        "mine",
        "mine",
        "seed",
        "counter",
        "upsert",
        "other",
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._handles: dict[str, lance.LanceDataset] = {}
        self._table = TABLES[0]
        self._mine_of: dict[str, list[str]] = {table: [] for table in TABLES}

    def act(self, event: Event) -> None:
        if self.chance.random() < 0.4:
            self._table = self.chance.choice(TABLES)
        table, event.by_path = self._table, True
        again = table not in self._handles or self.chance.random() < 0.15
        self.pause = self.chance.choice((0.0, 0.0, 0.6))  # a handle goes on at once, or much later
        kind, changed = self.chance.choice(self.kinds), 0
        with StockOutcome(event):
            if again:
                self._handles[table] = lance.dataset(self.locations[table])
            changed = getattr(self, f"_{kind}")(event, table)
        if event.outcome == "committed" and (changed or not event.effects):
            event.versions = {table: self._handles[table].version}
            return
        if event.outcome == "committed":  # done again by pylance on a version without the row: nothing was changed
            event.outcome = "rejected"
        self._handles.pop(table, None)
        doubtful = {effect.key for effect in event.effects}
        self._mine_of[table] = [key for key in self._mine_of[table] if key not in doubtful]

    def _insert(self, event: Event, table: str) -> int:
        event.effects = tuple(self.workload.effects(event.name, self.chance, [table], ["insert"]))
        self._handles[table].insert(arrow_rows([(event.effects[0].key, event.name, 0)]), mode="append")
        self._mine_of[table].append(event.effects[0].key)
        return 1

    def _upsert(self, event: Event, table: str) -> int:
        event.effects = tuple(self.workload.effects(event.name, self.chance, [table], ["insert"]))
        merge = self._handles[table].merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(arrow_rows([(event.effects[0].key, event.name, 0)]))
        self._mine_of[table].append(event.effects[0].key)
        return 1

    def _delete(self, event: Event, table: str, key: str) -> int:
        event.effects = (Effect(table, "delete", key),)
        return int(self._handles[table].delete(f"key = '{key}'")["num_deleted_rows"])

    def _increment(self, event: Event, table: str, key: str) -> int:
        event.effects = (Effect(table, "increment", key),)
        changes = {"n": "n + 1", "tx": f"'{event.name}'"}
        return int(self._handles[table].update(changes, where=f"key = '{key}'")["num_rows_updated"])

    def _mine(self, event: Event, table: str) -> int:
        """The row that it has inserted last, which is a fragment of its own as a rule."""
        if not self._mine_of[table]:
            return self._insert(event, table)
        if self.chance.random() < 0.5:
            return self._increment(event, table, self._mine_of[table][-1])
        return self._delete(event, table, self._mine_of[table].pop())

    def _seed(self, event: Event, table: str) -> int:
        chosen = self.workload.effects(event.name, self.chance, [table], ["delete"])
        return self._delete(event, table, chosen[0].key) if chosen else 0

    def _counter(self, event: Event, table: str) -> int:
        chosen = self.workload.effects(event.name, self.chance, [table], ["increment"])
        return self._increment(event, table, chosen[0].key)

    def _other(self, event: Event, table: str) -> int:
        handle = self._handles[table]
        self.chance.choice(
            [
                lambda: handle.optimize.compact_files(target_rows_per_fragment=8),
                lambda: handle.create_scalar_index("key", "BTREE", name="by_key", replace=True),
                lambda: handle.optimize.optimize_indices(),
                lambda: handle.update_config({event.name: "v"}),
                lambda: handle.alter_columns({"path": "n", "nullable": True}),
            ]
        )()
        return 0


class Reader(Client):
    """Reads all tables at one catalog version, and the newest version of one table, over HTTP and by pylance."""

    pause = 0.3

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._catalogs = [Catalog.connect(url, namespace=[NAMESPACE]) for url in self.urls]
        self._servers = [httpx.Client(base_url=url, timeout=60) for url in self.urls]
        self._namespaces = [RestNamespace(uri=url) for url in self.urls]

    def close(self) -> None:
        for each in (*self._catalogs, *self._servers):
            each.close()

    def act(self, event: Event) -> None:
        server, table = self.chance.randrange(len(self.urls)), self.chance.choice(TABLES)
        self.chance.choice([self._read_all, self._query, self._open])(event, server, table)
        event.outcome = "committed"

    def _read_all(self, event: Event, server: int, _: str) -> None:
        try:
            with self._catalogs[server].begin() as tx:
                readers = {table: tx.table(table) for table in TABLES}
                event.rows = {table: rows_of(reader.to_table()) for table, reader in readers.items()}
                event.reads = {table: reader.version for table, reader in readers.items()}
                event.read_at = tx.catalog_version
        except CatalogUnreachable:
            event.rows = {}

    def _query(self, event: Event, server: int, table: str) -> None:
        try:
            route = f"/v1/table/{NAMESPACE}${table}/query"
            answer = self._servers[server].post(route, json={"vector": {}, "k": 100_000})
        except httpx.TransportError:
            return
        if answer.status_code == 503:
            return
        if answer.status_code != 200:
            raise Unexpected(f"query: {answer.status_code} {answer.text}")
        event.rows = {table: rows_of(pa.ipc.open_file(answer.content).read_all())}
        event.reads = {table: int(answer.headers["x-lancedb-version"])}
        event.read_at = int(answer.headers["x-lance-catalog-version"])
        event.at_heads = True

    def _open(self, event: Event, server: int, table: str) -> None:
        asked = Event("", "")
        with StockOutcome(asked):
            dataset = lance.dataset(namespace_client=self._namespaces[server], table_id=[NAMESPACE, table])
            event.rows = {table: rows_of(dataset.to_table())}
            event.reads = {table: dataset.version}
            event.at_heads = True


class StockOutcome:
    """Tells the outcome of a call of pylance by the text of its error, which is all that it gives."""

    TEXTS: ClassVar[Mapping[str, Outcome]] = {
        "commit conflict": "rejected",
        "Commit conflict": "rejected",
        "not built on version": "rejected",
        **dict.fromkeys(COLLECTED, "rejected"),
        "Too many concurrent writers": "rejected",
        "produced a segment overlapping": "rejected",  # pylance, on an index that stock writers made by path
        "Failed to execute request": "unknown",
        "is unknown": "unknown",
    }

    def __init__(self, event: Event) -> None:
        self._event = event

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if error is None:
            self._event.outcome = "committed"
            return True
        told = [outcome for text, outcome in self.TEXTS.items() if text in str(error)]
        moved = _MOVED_AWAY if self._event.by_path else _LISTED
        if any(text in str(error) for text in moved):
            told.append("unknown")
        if not isinstance(error, (OSError, RuntimeError, ValueError, LanceNamespaceError)) or not told:
            return False
        self._event.outcome = told[0]
        return True

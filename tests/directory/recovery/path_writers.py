"""Stock writers that commit to a table's directory by held handles, beside batches of the catalog, in one process.

Each step is a batch (promoted at once, or not), a commit by path, a read of the head, which adopts, or a sweep. In the
end the rows of each version must be those of the version below, changed as its one transaction says.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import orjson
import pyarrow as pa
from lance.file import LanceFileWriter
from lance.fragment import DataFile
from lance_namespace import LanceNamespace, ListTableVersionsResponse, TableVersion
from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import StorageError
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import NamingScheme, branch_base, manifest_path, parse_manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.transaction.operations import MapUpdate, UpdateConfig, encode_transaction
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.invariants import check_progress, check_quiet
from tests.directory.tables import Capture, Ground, as_operation, rows
from tests.staged_fragments import stage_fragments
from tests.storage.faults import FaultStore

TABLE = ["g", "t"]
BASE = 12
"""Rows that the table begins with, in two fragments; each writer changes some of its own."""
Rows = dict[int, str]
Effect = Callable[[Rows], Rows]


@dataclass
class PathWriter:
    """A stock writer. It keeps its handle until it `opens` the table again.

    `own` are the rows that it has put there, `base` those of the first ones that it may change.
    """

    number: int
    uri: str
    branch: str | None
    handle: lance.LanceDataset | None = None
    own: list[int] = field(default_factory=list)
    base: list[int] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)

    def opens(self) -> lance.LanceDataset:
        dataset = lance.dataset(self.uri)
        self.handle = dataset if self.branch is None else dataset.checkout_version((self.branch, None))
        return self.handle


class ByNames(LanceNamespace):
    """The catalog for a stock client, which looks for the newest version among the names on storage while `looks`."""

    def __init__(self, inner: DirectoryNamespace, base: Path) -> None:
        self._inner = inner
        self._base = base
        self.looks = False

    def namespace_id(self) -> str:
        return self._inner.namespace_id()

    def describe_table(self, request: Any) -> Any:
        return self._inner.describe_table(request)

    def list_table_versions(self, request: Any) -> Any:
        if not self.looks:
            return self._inner.list_table_versions(request)
        names = sorted(self._base.glob("_versions/*.manifest"))
        found = [(parse_manifest_name(path.name), path) for path in names]
        return ListTableVersionsResponse(
            versions=[
                TableVersion(version=named[0], manifest_path=str(path).lstrip("/"), manifest_size=path.stat().st_size)
                for named, path in found
                if named is not None
            ]
        )

    def describe_table_version(self, request: Any) -> Any:
        return self._inner.describe_table_version(request)

    def create_table_version(self, request: Any) -> Any:
        return self._inner.create_table_version(request)


class Scenario:
    """A table with its writers, and what each transaction that was answered with success changes."""

    def __init__(
        self, root: Path, seed: str, *, branch: str | None = None, writers: int = 1, stable: bool = False
    ) -> None:
        self.chance = random.Random(seed)
        self.branch = branch
        self.store = FaultStore(LocalStore(root, "none"))
        self.ground = Ground(root, self.store)
        self.ground.make_namespace("g")
        place: dict[str, Any] = {"namespace_client": self.ground.namespace, "table_id": TABLE}
        lance.write_dataset(rows(0, BASE // 2), mode="create", enable_stable_row_ids=stable, **place)
        lance.write_dataset(rows(BASE // 2, BASE), mode="append", **place)
        if branch is not None:
            lance.dataset(**place).create_branch(branch)
        self.ground.catalog.sweep()
        self.uri = str(root / self.ground.location(TABLE))
        self.base = branch_base(self.ground.location(TABLE), branch)
        self.writers = [PathWriter(number, self.uri, branch) for number in range(writers)]
        self.client = PathWriter(writers, self.uri, branch)
        self.namespace = ByNames(self.ground.namespace, root / self.base)
        for number in range(BASE):
            (self.client if number % 3 == 2 else self.writers[number % writers]).base.append(number)
        self.first = self.ground.head(TABLE, branch)
        self.effects: dict[str, tuple[str, Effect]] = {}
        self.by_path: set[str] = set()
        self.acknowledged: set[str] = set()
        self.config: dict[str, str] = {}
        self.mine: list[int] = []
        self.log: list[str] = []
        self.count = 0
        self.was_away = False

    # what the catalog does

    def deregister(self) -> str:
        """Take the table out of the catalog. Returns its location."""
        location = self.ground.location(TABLE)
        self.ground.call("deregister_table", id=TABLE)
        self.was_away = True
        return location

    def batch(self, kind: str = "append", *, promoted: bool = True, of: int | None = None) -> None:
        """A batch of one change, `of` a row, whose version gets its canonical name at once or is left for later."""
        self.count += 1
        key = 1000 + self.count
        try:
            messages, effect = self._stage(kind, key, of)
        except OSError as error:  # by the names on storage it conflicts with what another writer has committed
            self.log.append(f"batch {kind}: {str(error)[:90]}")
            return
        forget = (lambda: None) if promoted else self.store.before(_refuse_promotion)
        try:
            self.ground.batch(*(as_operation(TABLE, message, self.branch) for message in messages))
        except LanceNamespaceError as error:
            self.log.append(f"batch {kind}: {type(error).__name__}")
            return
        finally:
            forget()
        for message in messages:
            is_last = message is messages[-1] and not _changes_nothing(message)
            self.effects[message.uuid] = (f"batch {kind} {key}", effect if is_last else _keep)
            self.acknowledged.add(message.uuid)
        if kind == "append":
            self.mine.append(key)
        if kind == "config":
            self.config[f"batch{self.count}"] = "v"
        self.log.append(f"batch {kind} {key}{'' if promoted else ', not promoted'}")

    def _stage(self, kind: str, key: int, of: int | None) -> tuple[list[pb.Transaction], Effect]:
        """The transactions of a batch, and the effect of the last one on the rows."""
        head = self.ground.head(TABLE, self.branch)
        message = pb.Transaction(read_version=head, uuid=str(uuid.uuid4()))
        if kind == "append":
            message.append.fragments.extend(stage_fragments(rows(key, key + 1), self._uri(), mode="append"))
            return [message], _put([key], f"n{key}")
        if kind == "config":
            update = UpdateConfig(config=MapUpdate({f"batch{self.count}": "v"}))
            return [encode_transaction(update, read_version=head, uuid=message.uuid)], _keep
        capture = Capture(self.ground.namespace)
        dataset = lance.dataset(namespace_client=capture, table_id=TABLE)
        if self.branch is not None:
            dataset = dataset.checkout_version((self.branch, None))
        if of is None:
            of = self.chance.choice(self.mine) if self.mine else -1
        effect = self._change(dataset, kind, of)
        files = [parse_manifest_file(Path("/", each["manifest_path"]).read_bytes()) for each in capture.captured]
        return [file.transaction for file in files if file.transaction is not None], effect

    def _change(self, dataset: lance.LanceDataset, kind: str, key: int) -> Effect:
        """A change by stock pylance, of a row that a batch has put there if of any."""
        name = f"b{self.count}"
        match kind:
            case "delete":
                dataset.delete(f"id = {key}")
                return lambda state: {other: each for other, each in state.items() if other != key}
            case "update":
                dataset.update({"name": f"'{name}'"}, where=f"id = {key}")
                return lambda state: {**state, **({key: name} if key in state else {})}
            case "columns":
                dataset.add_columns({name: "id + 1"})
            case "compact":
                dataset.optimize.compact_files()
            case "index":
                dataset.create_scalar_index("id", "BTREE", name=name)
        return _keep

    def _uri(self) -> str:
        return str(self.ground.root / self.base)

    def read(self) -> None:
        self.log.append("read")
        self.ground.read("list_table_versions", id=TABLE, branch=self.branch, limit=1, descending=True)

    def sweep(self) -> None:
        self.log.append("sweep")
        self.ground.catalog.sweep()

    # what a stock client of the catalog does

    def client_opens(self, *, by_names: bool = True) -> None:
        """Open the table, by the names on storage: those of other writers as well."""
        self.namespace.looks = by_names
        dataset = lance.dataset(namespace_client=self.namespace, table_id=TABLE)
        self.client.handle = dataset if self.branch is None else dataset.checkout_version((self.branch, None))
        self.namespace.looks = False
        self.log.append(f"client opens version {self.client.handle.version}")

    def client_commits(self, kind: str) -> bool:
        """A commit through the catalog on the client's handle; whether it was answered with success."""
        self.count += 1
        one = self.client
        before = one.handle.version
        try:
            effect = getattr(self, f"_{kind}")(one)
        except (OSError, RuntimeError, ValueError) as error:
            self.log.append(f"client {kind} on {before}: {str(error)[:300]}")
            return False
        if effect is None:
            return False
        row = self.ground.catalog.snapshot().version_entry(tuple(TABLE), self.branch, one.handle.version)
        assert row is not None, f"version {one.handle.version} is that of a {kind}, and is not in the catalog"
        file = parse_manifest_file(self._stored(one.handle.version))
        assert file.transaction is not None
        assert file.transaction.uuid == row.transaction_uuid
        if _changes_nothing(file.transaction):
            effect = _keep
        self.effects[row.transaction_uuid] = (f"client {kind}", effect)
        self.acknowledged.add(row.transaction_uuid)
        self.log.append(f"client {kind} on {before}: version {one.handle.version}")
        return True

    # what writers by path do

    def commit(self, kind: str, writer: int = 0, *, again: bool = False) -> bool:
        """A commit by path on the writer's handle, or on a new one; whether it was answered with success."""
        one = self.writers[writer]
        if again or one.handle is None:
            one.opens()
        self.count += 1
        before = one.handle.version
        try:
            effect = getattr(self, f"_{kind}")(one)
        except (OSError, RuntimeError, ValueError) as error:
            self.log.append(f"path{writer} {kind} on {before}: {str(error)[:90]}")
            one.opens()
            return False
        if effect is None:
            return False
        version = one.handle.version
        file = parse_manifest_file(self._stored(version))
        assert file.transaction is not None
        if _changes_nothing(file.transaction):  # done again by pylance on a version without the row
            effect = _keep
        self.effects[file.transaction.uuid] = (f"path{writer} {kind}", effect)
        self.by_path.add(file.transaction.uuid)
        self.log.append(f"path{writer} {kind} on {before}: version {version}")
        return True

    def _stored(self, version: int) -> bytes:
        return (self.ground.root / manifest_path(self.base, version, NamingScheme.V2)).read_bytes()

    def _append(self, one: PathWriter) -> Effect:
        key = 100 + self.count
        data = rows(key, key + 1)
        for name in one.handle.schema.names[2:]:
            data = data.append_column(name, pa.array([None], one.handle.schema.field(name).type))
        one.handle.insert(data, mode="append")
        one.own.append(key)
        return _put([key], f"n{key}")

    def _delete_own(self, one: PathWriter) -> Effect | None:
        return self._delete(one, one.own)

    def _delete_base(self, one: PathWriter) -> Effect | None:
        return self._delete(one, one.base)

    def _delete_all(self, one: PathWriter) -> Effect:
        """All rows of the second fragment, which the transaction removes by its id."""
        one.handle.delete(f"id >= {BASE // 2} AND id < {BASE}")
        return lambda state: {key: name for key, name in state.items() if not BASE // 2 <= key < BASE}

    def _delete_two(self, one: PathWriter) -> Effect | None:
        return self._delete(one, one.base, 2)

    def _delete(self, one: PathWriter, keys: list[int], count: int = 1) -> Effect | None:
        gone = keys[-count:]
        if not gone:
            return None
        one.handle.delete(f"id IN ({', '.join(map(str, gone))})")
        del keys[-count:]
        return lambda state: {other: name for other, name in state.items() if other not in gone}

    def _update_own(self, one: PathWriter) -> Effect | None:
        return self._update(one, one.own)

    def _update_base(self, one: PathWriter) -> Effect | None:
        return self._update(one, one.base)

    def _update_two(self, one: PathWriter) -> Effect | None:
        return self._update(one, one.base, 2)

    def _update(self, one: PathWriter, keys: list[int], count: int = 1) -> Effect | None:
        changed, name = keys[-count:], f"u{self.count}"
        if not changed:
            return None
        one.handle.update({"name": f"'{name}'"}, where=f"id IN ({', '.join(map(str, changed))})")
        return lambda state: {**state, **{key: name for key in changed if key in state}}

    def _upsert(self, one: PathWriter) -> Effect:
        keys = [*one.own[-1:], 100 + self.count]
        name = f"m{self.count}"
        table = pa.table({"id": keys, "name": [name] * len(keys)}, schema=rows(0, 1).schema)
        for column in one.handle.schema.names[2:]:
            table = table.append_column(column, pa.array([None] * len(keys), one.handle.schema.field(column).type))
        one.handle.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(table)
        one.own.append(keys[-1])
        return _put(keys, name)

    def _add_column(self, one: PathWriter) -> Effect:
        one.handle.add_columns({f"c{self.count}": "id + 1"})
        one.columns.append(f"c{self.count}")
        return _keep

    def _drop_column(self, one: PathWriter) -> Effect | None:
        if not one.columns:
            return None
        one.handle.drop_columns([one.columns.pop()])
        return _keep

    def _alter_column(self, one: PathWriter) -> Effect:
        one.handle.alter_columns({"path": "name", "nullable": True})
        return _keep

    def _compact(self, one: PathWriter) -> Effect | None:
        before = one.handle.version
        one.handle.optimize.compact_files()
        return _keep if one.handle.version != before else None

    def _index(self, one: PathWriter) -> Effect:
        one.handle.create_scalar_index("id", "BTREE", name=f"i{self.count}", replace=True)
        return _keep

    def _index_names(self, one: PathWriter) -> Effect:
        one.handle.create_scalar_index("name", "BTREE", name=f"i{self.count}", replace=True)
        return _keep

    def _config(self, one: PathWriter) -> Effect:
        one.handle.update_config({f"path{self.count}": "v"})
        return _keep

    def _replace_data(self, one: PathWriter) -> Effect | None:
        fragments = {each.fragment_id: each for each in one.handle.get_fragments()}
        last = fragments[max(fragments)]
        keys = last.to_table(columns=["id"])["id"].to_pylist()
        if not set(keys) <= {*one.own} or last.physical_rows != len(keys):
            return None
        name, file = f"r{self.count}", f"{uuid.uuid4()}.lance"
        column = pa.table({"name": [name] * len(keys)})
        with LanceFileWriter(f"{self._uri()}/data/{file}", column.schema, version="2.2") as target:
            target.write_batch(column)
        group = lance.LanceOperation.DataReplacementGroup(last.fragment_id, DataFile.create(one.handle, file))
        operation = lance.LanceOperation.DataReplacement([group])
        one.handle = lance.LanceDataset.commit(one.handle, operation, read_version=one.handle.version)
        return lambda state: {**state, **{key: name for key in keys if key in state}}

    def _overwrite(self, one: PathWriter) -> Effect:
        key = 100 + self.count
        one.handle.insert(rows(key, key + 1), mode="overwrite")
        one.own, one.base, one.columns = [key], [], []
        return lambda state: {key: f"n{key}"}

    def _restore(self, one: PathWriter) -> Effect:
        number = one.handle.version if one is self.client else max(1, one.handle.version - 1)
        if one is self.client:
            one.handle.restore()
        else:
            old = lance.dataset(self.uri)
            old = old.checkout_version(number if self.branch is None else (self.branch, number))
            old.restore()
            one.opens()
        one.own, one.base, one.columns = [], [], []
        return lambda state, number=number: self.states[number]  # type: ignore[misc]

    # what must hold

    def finish(self) -> None:
        """Recover, then check every version, every answer and the invariants of the root."""
        for _ in range(3):
            self.read()
            self.sweep()
        told = "\n".join(self.log)
        self.states: dict[int, Rows] = {}
        snapshot = self.ground.catalog.snapshot()
        there: list[str] = []
        for row in snapshot.versions(tuple(TABLE), self.branch):
            state = self._state(row.version, told)
            there.append(row.transaction_uuid)
            below = self.states.get(row.version - 1)
            if below is not None and row.version > self.first:
                name, effect = self.effects.get(row.transaction_uuid, ("unknown", _keep))
                expected = effect(below)
                assert state == expected, f"version {row.version}, {name}: {state}, expected {expected}\n{told}"
            self.states[row.version] = state
        twice = {name for name in there if there.count(name) > 1}
        assert not twice, f"applied twice: {[self.effects[name][0] for name in twice]}\n{told}"
        lost = [self.effects[name][0] for name in self.acknowledged - set(there)]
        assert not lost, f"batches are lost: {lost}\n{told}"
        self._check_reports(set(there), told)
        if not any(each in told for each in ("restore", "overwrite")):
            config = self._open().config()
            missing = self.config.items() - config.items()
            assert not missing, f"config of batches is lost: {missing}\n{told}"
        self._check_indices(told)
        check_quiet(self.ground.root, was_away=self.was_away)
        check_progress(self.ground.root, was_away=self.was_away)

    def _open(self, version: int | None = None) -> lance.LanceDataset:
        dataset = lance.dataset(self.uri)
        if self.branch is not None:
            return dataset.checkout_version((self.branch, version))
        return dataset if version is None else dataset.checkout_version(version)

    def _state(self, version: int, told: str) -> Rows:
        table = self._open(version).scanner(columns=["id", "name"], use_scalar_index=False).to_table()
        ids = table["id"].to_pylist()
        assert len(set(ids)) == len(ids), f"version {version} has ids twice: {sorted(ids)}\n{told}"
        return dict(zip(ids, table["name"].to_pylist(), strict=True))

    def _check_reports(self, there: set[str], told: str) -> None:
        """Every commit by path is in the chain, or a report and the log say that it is not."""
        store = LocalStore(self.ground.root, "none")
        aside: dict[str, Any] = {}
        for record in self.ground.catalog.snapshot().records():
            if record.state == "foreign":
                content = orjson.loads(record.results)
                file = parse_manifest_file(store.get(content["kept_at"]))
                assert file.transaction is not None
                aside[file.transaction.uuid] = content
        self.reasons = {
            self.effects[name][0]: content["reason"] for name, content in aside.items() if name in self.effects
        }
        for name in self.by_path:
            told_as = aside.get(name, {}).get("outcome")
            if name in there:
                assert told_as in {None, "committed again"}, f"{self.effects[name][0]} is there, {aside[name]}\n{told}"
            else:
                assert told_as == "kept aside", f"{self.effects[name][0]} is not there, told {told_as}\n{told}"

    def _check_indices(self, told: str) -> None:
        dataset = self._open()
        head = self.states[max(self.states)]
        for key, name in head.items():
            found = dataset.to_table(filter=f"id = {key}")["id"].to_pylist()
            assert found == [key], f"by index {key} is found as {found}\n{told}"
            same = sorted(dataset.to_table(filter=f"name = '{name}'")["id"].to_pylist())
            wanted = sorted(each for each in head if head[each] == name)
            assert same == wanted, f"by index {name} is found as {same}, expected {wanted}\n{told}"


def _keep(state: Rows) -> Rows:
    return dict(state)


def _put(keys: list[int], name: str) -> Effect:
    return lambda state: {**state, **dict.fromkeys(keys, name)}


def _changes_nothing(transaction: pb.Transaction) -> bool:
    match transaction.WhichOneof("operation"):
        case "delete":
            return not (transaction.delete.updated_fragments or transaction.delete.deleted_fragment_ids)
        case "update":
            return not (transaction.update.new_fragments or transaction.update.updated_fragments)
    return False


def _refuse_promotion(verb: str, path: str) -> None:
    if verb == "publish":
        raise StorageError(f"{path}: not now")


BATCHES = ("append", "append", "config", "delete", "update", "columns", "compact", "index")
KINDS = (
    "append",
    "delete_own",
    "delete_base",
    "update_own",
    "update_base",
    "upsert",
    "add_column",
    "drop_column",
    "alter_column",
    "compact",
    "index",
    "index_names",
    "config",
    "replace_data",
    "overwrite",
    "restore",
)


OF_A_CLIENT = sorted(
    {*KINDS, "delete_two", "update_two", "delete_all"} - {"delete_own", "update_own", "drop_column", "replace_data"}
)
"""What a stock client of the catalog commits that has put no rows there itself."""


def run_random(root: Path, seed: str) -> Scenario:
    """A scenario whose steps a seed chooses, and its checks."""
    chance = random.Random(f"{seed} shape")
    branch = "dev" if chance.random() < 0.3 else None
    scenario = Scenario(root, seed, branch=branch, writers=chance.choice((1, 2)), stable=chance.random() < 0.3)
    for _ in range(chance.randint(4, 14)):
        step = chance.random()
        if step < 0.3:
            scenario.batch(chance.choice(BATCHES), promoted=chance.random() < 0.5)
        elif step < 0.45 and scenario.client.handle is not None and chance.random() < 0.8:
            scenario.client_commits(chance.choice(OF_A_CLIENT))
        elif step < 0.45:
            scenario.client_opens(by_names=False)
        elif step < 0.8:
            kind = chance.choice(("append", *KINDS))
            scenario.commit(kind, chance.randrange(len(scenario.writers)), again=chance.random() < 0.2)
        elif step < 0.9:
            scenario.read()
        else:
            scenario.sweep()
    scenario.finish()
    return scenario

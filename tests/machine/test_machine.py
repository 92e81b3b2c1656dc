"""Random operations of two engines on one table with branches and tags: rows, verdicts and files are those of a model.

The cases are the same in every run. To try more cases:

    LANCE_MACHINE_EXAMPLES=5000 python -m pytest tests/machine --timeout 0
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import lance
import pyarrow as pa
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lance_core.format.manifest import ManifestFile, encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.tables.branches import Branches
from lance_core.tables.tags import Tags
from lance_core.transaction.lineage import lineage_break
from tests.machine.engines import Finish, Step, begin, compacted_fragments, fragments_of_rows, touched
from tests.machine.model import COMMITTED, INCOMPATIBLE, RETRYABLE, Change, Row, State, permitted
from tests.transaction.tables import Table, make_table

EXAMPLES = int(os.environ.get("LANCE_MACHINE_EXAMPLES", "0"))
KINDS = ("append", "delete", "update", "overwrite", "rewrite", "merge", "project", "config", "restore")
OFTEN = (*KINDS, *("append", "delete", "update") * 3)
REFERENCES = ("branch", "one", "two")
ENGINES = st.sampled_from(["ours", "stock"])

seen: Counter[str] = Counter()
"""What happened in all cases together."""


@dataclass
class Chain:
    """A branch (None is main) and what the model says of each of its versions."""

    place: Table
    branch: str | None
    states: dict[int, State]
    changes: dict[int, Change] = field(default_factory=dict)
    files: dict[int, ManifestFile] = field(default_factory=dict)

    @property
    def head(self) -> int:
        return max(self.states)

    @property
    def state(self) -> State:
        return self.states[self.head]


@dataclass(frozen=True)
class Pending:
    """Something begun and not yet committed."""

    engine: str
    chain: Chain
    read_version: int
    step: Step
    change: Change
    rows: dict[int, Row]
    finish: Finish


class TwoEngines(RuleBasedStateMachine):
    """The table is called `t`, in a directory of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="machine-"))
        self.next_id = 1000
        self.names = 0
        self.chains: list[Chain] = []
        self.pending: list[Pending] = []
        self.tags: dict[str, tuple[str | None, int]] = {}
        self.touched: Chain | None = None

    @initialize(stable=st.booleans(), v2=st.booleans())
    def make(self, stable: bool, v2: bool) -> None:
        table = make_table(self.root, (0, 6), (6, 12), stable_row_ids=stable, v2=v2)
        first = {key: {"x": float(key), "s": str(key)} for key in range(6)}
        second = first | {key: {"x": float(key), "s": str(key)} for key in range(6, 12)}
        columns = ("id", "x", "s")
        self.chains.append(Chain(table, None, {1: State(first, columns), 2: State(second, columns)}))
        self.touched = self.chains[0]

    # Work

    @rule(engine=ENGINES, kind=st.sampled_from(OFTEN), where=st.integers(0, 9), data=st.data())
    def work(self, engine: str, kind: str, where: int, data: st.DataObject) -> None:
        """Something begun and finished at once."""
        pending = self._begin(engine, kind, self.chains[where % len(self.chains)], data)
        if pending is not None:
            self._finish(pending)

    @rule(
        engines=st.permutations(["ours", "stock", "ours"]),
        kinds=st.lists(st.sampled_from(OFTEN), min_size=3, max_size=3),
        where=st.integers(0, 9),
        data=st.data(),
    )
    def race(self, engines: list[str], kinds: list[str], where: int, data: st.DataObject) -> None:
        """Three begin on one version and finish one after the other."""
        chain = self.chains[where % len(self.chains)]
        begun = [self._begin(engine, kind, chain, data) for engine, kind in zip(engines, kinds, strict=True)]
        for pending in begun:
            if pending is not None:
                self._finish(pending)

    @rule(engine=ENGINES, kind=st.sampled_from(OFTEN), where=st.integers(0, 9), data=st.data())
    def begin(self, engine: str, kind: str, where: int, data: st.DataObject) -> None:
        """Something begun and left."""
        pending = self._begin(engine, kind, self.chains[where % len(self.chains)], data)
        if pending is not None and len(self.pending) < 6:
            self.pending.append(pending)

    @precondition(lambda self: self.pending)
    @rule(which=st.integers(0, 9))
    def finish(self, which: int) -> None:
        """Something finished that was begun earlier, whatever happened since."""
        self._finish(self.pending.pop(which % len(self.pending)))

    @rule(engine=ENGINES, what=st.sampled_from(REFERENCES), where=st.integers(0, 9), back=st.integers(0, 5))
    def refer(self, engine: str, what: str, where: int, back: int) -> None:
        """Begin a branch at some version, or put a tag there."""
        chain = self.chains[where % len(self.chains)]
        version = max(chain.head - back, min(chain.states))
        if what != "branch":
            self._tag(engine, what, chain, version, back)
        elif len(self.chains) < 4:
            self._branch(engine, chain, version)

    def _branch(self, engine: str, parent: Chain, version: int) -> None:
        self.names += 1
        name = f"b{self.names}"
        root = self.chains[0].place
        if engine == "stock":
            root.open().checkout_version((parent.branch or "main", version)).create_branch(name)
        else:
            Branches(root.store, "t").create(name, (parent.branch, version))
        self.touched = Chain(root.branch(name), name, {version: parent.states[version]})
        self.chains.append(self.touched)
        seen[f"{engine} branch{'' if parent.branch is None else ' of a branch'}"] += 1

    def _tag(self, engine: str, name: str, chain: Chain, version: int, back: int) -> None:
        root = self.chains[0].place
        tags = Tags(root.store, "t") if engine == "ours" else root.open().tags
        seen[f"{engine} tag"] += 1
        if name not in self.tags:
            tags.create(name, (chain.branch, version))
        elif back == 5:
            tags.delete(name)
            del self.tags[name]
            return
        else:
            tags.update(name, (chain.branch, version))
        self.tags[name] = (chain.branch, version)

    # What always holds

    @invariant()
    def the_version_that_was_made_is_right(self) -> None:
        chain, self.touched = self.touched, None
        if chain is None:
            return
        _read_new_files(chain)
        chain.place.open().validate()
        _check_rows(chain, chain.head)

    @invariant()
    def tags_are_where_they_were_put(self) -> None:
        if self.chains and self.tags:
            root = self.chains[0].place
            mine = {name: (tag.branch, tag.version) for name, tag in Tags(root.store, "t").list().items()}
            theirs = {name: (tag["branch"], tag["version"]) for name, tag in root.open().tags.list().items()}
            assert mine == theirs == self.tags

    def teardown(self) -> None:
        try:
            for chain in self.chains:
                for version in chain.states:
                    _check_rows(chain, version)
            for name, (branch, version) in self.tags.items():
                chain = next(chain for chain in self.chains if chain.branch == branch)
                tagged = self.chains[0].place.open().checkout_version(name)
                assert _rows_of(tagged) == chain.states[version].rows
        finally:
            shutil.rmtree(self.root)

    # How it is done

    def _begin(self, engine: str, kind: str, chain: Chain, data: st.DataObject) -> Pending | None:
        state = chain.state
        ids = data.draw(st.sets(st.sampled_from(sorted(state.rows)), max_size=4)) if state.rows else set()
        step, rows = Step(kind), {}
        change = Change(kind)
        match kind:
            case "append" | "overwrite":
                columns = state.columns if kind == "append" else ("id", "x", "s")
                rows = {self.next_id + place: _new_row(columns, self.next_id + place) for place in range(3)}
                self.next_id += 3
                step = replace(step, table=_table(columns, rows))
            case "delete" | "update" if not ids:
                return None
            case "delete":
                step = replace(step, predicate=f"id in ({', '.join(map(str, sorted(ids)))})")
            case "update":
                rows = {key: {**_new_row(state.columns, key), "s": f"by {engine}"} for key in sorted(ids)}
                step = replace(step, table=_table(state.columns, rows))
            case "rewrite" if not compacted_fragments(chain.place):
                return None
            case "rewrite":
                change = replace(change, fragments=compacted_fragments(chain.place))
            case "merge":
                self.names += 1
                step = replace(step, column=f"c{self.names}")
            case "project":
                droppable = [name for name in state.columns if name not in ("id", "x")]
                if not droppable:
                    return None
                step = replace(step, column=data.draw(st.sampled_from(droppable)))
            case "restore":
                version = max(chain.head - data.draw(st.integers(1, 5)), min(chain.states))
                if version == chain.head:
                    return None
                step = replace(step, version=version)
            case "config":
                step = replace(step, key=data.draw(st.sampled_from(["k", "l"])))
                change = replace(change, key=step.key)
        if kind in ("delete", "update"):
            change = replace(change, rows=frozenset(ids), fragments=fragments_of_rows(chain.place, ids))
        note(f"{engine} begins {kind} on {chain.branch or 'main'} {chain.head}: {sorted(ids)}")
        finish = begin(engine, chain.place, chain.branch, chain.head, step)
        return Pending(engine, chain, chain.head, step, change, rows, finish)

    def _finish(self, pending: Pending) -> None:
        chain, kind = pending.chain, pending.step.kind
        since = [chain.changes[version] for version in sorted(chain.changes) if version > pending.read_version]
        allowed = permitted(pending.change, since)
        verdict = pending.finish()
        if verdict == COMMITTED and any(other.fragments & pending.change.fragments for other in since):
            seen[f"{pending.engine} merged vectors"] += 1
        note(f"{pending.engine} finishes {kind} of version {pending.read_version}: {verdict}")
        assert verdict in allowed, (pending.engine, pending.change, since, verdict, allowed)
        before = chain.head
        made = {version: file for version, file in chain.place.manifests().items() if version > before}
        assert list(made) == list(range(before + 1, before + 1 + len(made)))
        for version, file in made.items():
            assert file.transaction is not None
            if file.operation == "reserve_fragments":  # the first half of a compaction by pylance
                chain.states[version] = chain.states[version - 1]
                continue
            assert verdict == COMMITTED
            assert version == max(made)
            chain.states[version] = _after(pending, chain)
            chain.changes[version] = replace(pending.change, fragments=touched(file.transaction))
        assert (verdict == COMMITTED) is (chain.head in chain.changes and chain.head > before)
        seen[f"{pending.engine} {kind} {verdict}"] += 1
        if since:
            seen[f"{pending.engine} behind: {verdict}"] += 1
        self.touched = chain


def _after(pending: Pending, chain: Chain) -> State:
    """The state that the operation makes of the head's."""
    state, step = chain.state, pending.step
    match step.kind:
        case "append":
            return state.with_rows({**state.rows, **pending.rows})
        case "update":
            return state.with_rows({**state.rows, **pending.rows})
        case "delete":
            return state.with_rows({key: row for key, row in state.rows.items() if key not in pending.change.rows})
        case "overwrite":
            return State(pending.rows, ("id", "x", "s"), state.config)
        case "merge":
            doubled = {key: {**row, step.column: 2 * row["x"]} for key, row in state.rows.items()}  # type: ignore[operator]
            return State(doubled, (*state.columns, step.column), state.config)
        case "project":
            return state.with_columns(tuple(name for name in state.columns if name != step.column))
        case "config":
            return replace(state, config={**state.config, step.key: pending.engine})
        case "restore":
            return chain.states[step.version]
    return state


def _new_row(columns: Iterable[str], key: int) -> Row:
    return {name: str(key) if name == "s" else float(key) for name in columns if name != "id"}


def _table(columns: Iterable[str], rows: dict[int, Row]) -> pa.Table:
    types = {"id": pa.int64(), "s": pa.string()}
    arrays = {
        name: pa.array(
            list(rows) if name == "id" else [row[name] for row in rows.values()], types.get(name, pa.float64())
        )
        for name in columns
    }
    return pa.table(arrays)


def _rows_of(dataset: lance.LanceDataset) -> dict[int, Row]:
    found = dataset.to_table().to_pylist()
    rows = {row.pop("id"): row for row in found}
    assert len(rows) == len(found), "a row came twice"
    return rows


def _check_rows(chain: Chain, version: int) -> None:
    dataset, state = chain.place.open(version), chain.states[version]
    assert tuple(dataset.schema.names) == state.columns
    assert _rows_of(dataset) == state.rows
    assert dataset.count_rows() == len(state.rows)
    assert dataset.config() == state.config


def _read_new_files(chain: Chain) -> None:
    """Every manifest that was written since: its number, its lineage, and that it is known to the last bit."""
    chain.files.update((version, file) for version, file in chain.place.manifests().items())
    versions = sorted(chain.files)
    assert versions == list(range(versions[0], versions[0] + len(versions))) == sorted(chain.states)
    file, before = chain.files[versions[-1]], chain.files.get(versions[-1] - 1)
    if before is not None:
        assert lineage_break(before, file) is None
        assert file.timestamp_ns > before.timestamp_ns
    for message in (file.manifest, file.transaction, file.indices):
        assert message is None or _unknown(message) == []
    again = parse_manifest_file(encode_manifest_file(file.manifest, file.transaction, file.indices))
    assert (_bare(again.manifest), again.transaction, again.indices) == (
        _bare(file.manifest),
        file.transaction,
        file.indices,
    )


def _bare(manifest: pb.Manifest) -> pb.Manifest:
    """Without the offsets of the sections, which writers may put in any order."""
    bare = pb.Manifest()
    bare.CopyFrom(manifest)
    for name in ("index_section", "transaction_section", "transaction_section_deprecated"):
        bare.ClearField(name)
    return bare


def _unknown(message: Message) -> list[str]:
    """Fields that the protocol has and our messages have not."""
    unknown = UnknownFieldSet(message)
    found = [f"{message.DESCRIPTOR.name} {unknown[place].field_number}" for place in range(len(unknown))]
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None or descriptor.message_type.GetOptions().map_entry:
            continue
        for inner in value if descriptor.is_repeated else [value]:
            found += _unknown(inner)
    return found


def test_two_engines_agree_with_one_model() -> None:
    seen.clear()
    run_state_machine_as_test(
        TwoEngines,
        settings=settings(
            max_examples=EXAMPLES or 50,
            stateful_step_count=25,
            derandomize=not EXAMPLES,
            database=None,
            phases=[Phase.generate],
            print_blob=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    for engine in ("ours", "stock"):
        for verdict in (COMMITTED, RETRYABLE, INCOMPATIBLE):
            assert seen[f"{engine} behind: {verdict}"] > 0
        assert seen[f"{engine} merged vectors"] > 0
        for kind in KINDS:
            assert seen[f"{engine} {kind} {COMMITTED}"] > 0
        assert min(seen[f"{engine} {what}"] for what in ("branch", "tag")) > 0
    assert seen["ours branch of a branch"] + seen["stock branch of a branch"] > 0

"""A feed of changed rows, applied to the rows of one version, gives those of a later one as pylance reads it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from table_data.batch_operations import TableState
from table_data.change_feed import selected_rows
from table_data.change_feed.feed import FEED_COLUMNS, changed_rows
from table_data.change_feed.ranges import ChangeRange, NumberedVersion

Rows = dict[int, dict[str, Any]]

TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "n": (pa.int64(), st.integers(-5, 5)),
    "small": (pa.uint8(), st.integers(0, 255)),
    "real": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "text": (pa.string(), st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=4)),
    "blob": (pa.large_binary(), st.binary(max_size=4)),
    "flag": (pa.bool_(), st.booleans()),
    "price": (pa.decimal128(10, 2), st.decimals(-99, 99, places=2)),
    "at": (
        pa.timestamp("us", "UTC"),
        st.integers(0, 2**42).map(lambda ms: dt.datetime.fromtimestamp(ms / 1000, dt.UTC)),
    ),
    "day": (pa.date32(), st.dates(dt.date(1970, 1, 1), dt.date(2100, 1, 1))),
    "words": (pa.list_(pa.string()), st.lists(st.sampled_from("abc"), max_size=3)),
    "vector": (pa.list_(pa.float32(), 2), st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=2)),
    "place": (
        pa.struct({"x": pa.int32(), "name": pa.string()}),
        st.fixed_dictionaries({"x": st.integers(0, 9), "name": st.none() | st.just("p")}),
    ),
    "kind": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["red", "green", "blue"])),
}


class Table:
    """A table with stable row ids and small fragments, which operations change through pylance."""

    def __init__(self, uri: str, names: list[str], data: st.DataObject) -> None:
        self.uri = uri
        self.data = data
        self.next = 0
        self.added = 0
        self.write("create", names, 12)

    @property
    def dataset(self) -> lance.LanceDataset:
        return lance.dataset(self.uri)

    def rows(self, schema: pa.Schema, keys: list[int]) -> pa.Table:
        columns = {}
        for field in schema:
            if field.name == "key":
                columns["key"] = pa.array(keys, pa.int64())
                continue
            value = next(strategy for kind, strategy in TYPES.values() if kind == field.type)
            drawn = self.data.draw(st.lists(st.none() | value, min_size=len(keys), max_size=len(keys)))
            plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            columns[field.name] = pa.array(drawn, plain).cast(field.type)
        return pa.table(columns, schema=schema)

    def write(self, mode: str, names: list[str], count: int) -> None:
        schema = pa.schema([("key", pa.int64()), *((name, TYPES[name][0]) for name in names)])
        self.put(mode, schema, count)

    def put(self, mode: str, schema: pa.Schema, count: int) -> None:
        keys = list(range(self.next, self.next + count))
        self.next += count
        lance.write_dataset(
            self.rows(schema, keys),
            self.uri,
            mode=mode,
            enable_stable_row_ids=True,
            max_rows_per_file=5,
            data_storage_version="2.2",
        )

    def step(self, operation: str) -> None:
        table = self.dataset
        keys = table.to_table(columns=["key"]).column("key").to_pylist()
        some = self.data.draw(st.lists(st.sampled_from(keys), unique=True, max_size=6)) if keys else []
        where = f"key IN ({', '.join(map(str, some))})" if some else "false"
        others = [name for name in table.schema.names if name != "key"]
        match operation:
            case "append":
                self.put("append", table.schema, 7)
            case "overwrite":
                self.write("overwrite", self.data.draw(names_of_columns), 6)
            case "delete":
                table.delete(where)
            case "update":
                table.update({"key": "key"}, where=where)
            case "merge":
                merge = table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
                merge.execute(self.rows(table.schema, [*some, self.next, self.next + 1]))
                self.next += 2
            case "compact":
                table.optimize.compact_files(target_rows_per_fragment=self.data.draw(st.sampled_from([9, 100])))
            case "restore":
                lance.dataset(self.uri, version=self.data.draw(st.integers(1, table.version))).restore()
            case "add":
                self.added += 1
                table.add_columns({f"added{self.added}": "key * 2"})
            case "add nulls":
                self.added += 1
                table.add_columns(pa.schema([(f"added{self.added}", pa.int64())]))
            case "drop" if others:
                table.drop_columns([self.data.draw(st.sampled_from(others))])
            case "rename" if others:
                self.added += 1
                table.alter_columns({"path": self.data.draw(st.sampled_from(others)), "name": f"named{self.added}"})
            case "cast" if "small" in others:
                table.alter_columns({"path": "small", "data_type": pa.int64()})
            case "index":
                table.create_scalar_index("key", "BTREE", replace=True)

    def at(self, version: int, like: pa.Schema, known: dict[str, str | None]) -> Rows:
        """The rows of a version in the columns of `like`; `known` says what each was called there."""
        if not version:
            return {}
        table = lance.dataset(self.uri, version=version)
        names = {name: known[name] for name in like.names}
        wanted = [source for source in names.values() if source is not None]
        found = table.scanner(columns=wanted, with_row_id=True).to_table().to_pylist()
        return {
            row["_rowid"]: {name: None if source is None else row[source] for name, source in names.items()}
            for row in found
        }

    def span(self, since: int, to: int) -> ChangeRange:
        known = NumberedVersion(since, since) if since else None
        return ChangeRange(
            since, to, known, tuple(NumberedVersion(each, each + 100) for each in range(since + 1, to + 1))
        )

    def feed(self, since: int, to: int) -> pa.Table:
        table = TableState(("t",), self.uri, to)
        return changed_rows(table, self.span(since, to), {}).read_all()


names_of_columns = st.lists(st.sampled_from(sorted(TYPES)), unique=True, min_size=1, max_size=4)
OPERATIONS = ("append", "overwrite", "delete", "update", "merge", "compact", "restore", "index")
EVOLUTIONS = ("add", "add nulls", "drop", "rename", "cast")


def applied(rows: Rows, changes: pa.Table, *, has_same_columns: bool) -> Rows:
    """The rows after the changes, each of which has to fit what is there."""
    left = dict(rows)
    names = [name for name in changes.schema.names if name not in FEED_COLUMNS.names]
    for change in changes.to_pylist():
        row, kind = change["_row_id"], change["_change_type"]
        values = {name: change[name] for name in names}
        if kind in ("delete", "update_preimage"):
            was = left.pop(row)
            assert was == values or not has_same_columns
        else:
            assert row not in left
            left[row] = values
    return left


def sources(uri: str, since: int, to: int) -> dict[str, str | None]:
    """What each column of `to` was called at `since`: by the ids of fields, as pylance has them."""
    last = lance.dataset(uri, version=to)
    if not since:
        return dict.fromkeys(last.schema.names)
    first = lance.dataset(uri, version=since)
    named = {field.id(): field.name() for field in first.lance_schema.fields()}
    types = {name: first.schema.field(name).type for name in first.schema.names}
    found = {}
    for field in last.lance_schema.fields():
        name = named.get(field.id())
        kept = name is not None and types[name] == last.schema.field(field.name()).type
        found[field.name()] = name if kept else None
    return found


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data(), sparse=st.booleans())
def test_a_feed_gives_the_rows_of_its_last_version(
    tmp_path_factory: pytest.TempPathFactory, data: Any, sparse: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if sparse:
            patch.setattr(selected_rows, "_SPARSE", 0)
            patch.setattr(selected_rows, "_MAX_IDS", 2)
        table = Table(str(tmp_path_factory.mktemp("feed") / "t"), data.draw(names_of_columns), data)
        operations = data.draw(st.lists(st.sampled_from(OPERATIONS + EVOLUTIONS), min_size=1, max_size=6))
        for operation in operations:
            table.step(operation)
        to = int(table.dataset.version)
        since = data.draw(st.integers(0, to))
        changes = table.feed(since, to)
        like = lance.dataset(table.uri, version=to).schema
        before = table.at(since, like, sources(table.uri, since, to))
        after = table.at(to, like, {name: name for name in like.names})
        has_same_columns = not {"overwrite", "restore"} & {*operations}
        assert applied(before, changes, has_same_columns=has_same_columns) == after
        kinds = {*changes.column("_change_type").to_pylist()}
        event(f"{changes.num_rows.bit_length()} bits of changes of {len(kinds)} types")
        assert set(changes.column("_catalog_version").to_pylist()) <= {each + 100 for each in range(since + 1, to + 1)}


@pytest.mark.parametrize("how", ["restored", "nested"])
def test_a_column_that_has_values_again_or_other_fields_updates_all_rows(tmp_path: Path, how: str) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"key": [1, 2], "place": [{"x": 1, "name": "a"}, {"x": 2, "name": None}]})
    lance.write_dataset(rows, uri, enable_stable_row_ids=True)
    if how == "restored":
        lance.dataset(uri).drop_columns(["place"])
        lance.dataset(uri, version=1).restore()
    else:
        lance.dataset(uri).update({"key": "key"})
        lance.dataset(uri).drop_columns(["place.x"])
    span = ChangeRange(2, 3, NumberedVersion(2, 2), (NumberedVersion(3, 3),))
    changes = changed_rows(TableState(("t",), uri, 3), span, {}).read_all()
    read = [lance.dataset(uri, version=each).scanner(with_row_id=True).to_table().to_pylist() for each in (2, 3)]
    before, after = ({row.pop("_rowid"): row for row in found} for found in read)
    known = {row: {"key": values["key"], "place": None} for row, values in before.items()}
    assert applied(known, changes, has_same_columns=True) == after

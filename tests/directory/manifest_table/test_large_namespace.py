"""What a change costs does not depend on the size of its namespace: counted in what is copied, not in seconds."""

from __future__ import annotations

import orjson
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, TableAlreadyExistsError

from namespace_server.directory.manifest_table.bulk_load import BulkLoader
from namespace_server.directory.manifest_table.row_codec import Row, encode_entry
from namespace_server.directory.model.entries import (
    Changes,
    Entry,
    NamespaceEntry,
    RecordEntry,
    TableEntry,
    VersionEntry,
)
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.persistent.sorted_names import SortedNames
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.model.state import CatalogState
from namespace_server.directory.reading import descriptions as reads
from tests.directory.reference import put
from tests.directory.tables import Ground, rows

pytestmark = pytest.mark.slow

WIDE = NamespaceEntry(("w",))


def table(number: int) -> TableEntry:
    return TableEntry(("w", f"t{number:07d}"), f"{number:08x}_w$t{number:07d}")


def load(found: list[Row]) -> CatalogState:
    loader = BulkLoader()
    columns = [pa.array(values, pa.string()) for values in zip(*found, strict=True)]
    serials = pa.array(range(len(found))).to_numpy()
    loader.add(pa.table(columns, names=list(Row._fields)), serials)
    return loader.finish()


@pytest.fixture(scope="module")
def wide() -> CatalogSnapshot:
    """A namespace of 50,000 tables with even numbers, as it is loaded."""
    found = [encode_entry(entry) for entry in (WIDE, *(table(number) for number in range(0, 100_000, 2)))]
    return CatalogSnapshot(1, state=load(found))


def new_leaves(before: SortedNames, after: SortedNames) -> int:
    known = {id(leaf) for leaf in before.leaves()}
    return sum(id(leaf) not in known for leaf in after.leaves())


def test_a_flip_shares_all_names_but_those_beside_its_own(wide: CatalogSnapshot) -> None:
    before = wide.child_tables(WIDE.id)
    after = wide.apply(put([table(1), table(77_777)])).child_tables(WIDE.id)
    assert len(after) == len(before) + 2
    assert new_leaves(before, after) <= 4
    many = wide.apply(put([table(number) for number in range(1, 100_000, 500)])).child_tables(WIDE.id)
    assert new_leaves(before, many) <= 2 * 200


def test_a_flip_that_leaves_the_names_alone_keeps_their_object(wide: CatalogSnapshot) -> None:
    first = table(0)
    version = VersionEntry(first.id, None, 1, first.location, 10, "", "", 0)
    renamed = TableEntry(table(2).id, table(2).location, {"owner": "another"})
    after = wide.apply(put([version, renamed, NamespaceEntry(("other",))]))
    assert after.facts(WIDE.id) == wide.facts(WIDE.id)
    assert after.state.children.get(WIDE.id) is wide.state.children.get(WIDE.id)
    assert after.facts(table(4).id)[3] is wide.facts(table(4).id)[3]
    assert after.facts(first.id)[3] is not wide.facts(first.id)[3]


def test_declares_of_one_batch_are_applied_once(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    ground.make_namespace("w")
    applied: list[Changes] = []
    apply = CatalogSnapshot.apply

    def counted(self: CatalogSnapshot, changes: Changes) -> CatalogSnapshot:
        applied.append(changes)
        return apply(self, changes)

    monkeypatch.setattr(CatalogSnapshot, "apply", counted)
    ground.batch(*({"declare_table": {"id": ["w", f"t{number}"]}} for number in range(300)))
    assert not applied
    assert len(ground.read("list_tables", id=["w"])["tables"]) == 300


def test_operations_see_the_tables_declared_before_them(ground: Ground) -> None:
    ground.make_namespace("w")

    def declare(*path: str, location: str | None = None) -> dict[str, object]:
        return {"declare_table": {"id": list(path), "location": location}}

    deregister = {"deregister_table": {"id": ["w", "a"]}}
    with pytest.raises(TableAlreadyExistsError):
        ground.batch(declare("w", "a"), declare("w", "a"))
    with pytest.raises(InvalidInputError, match="is a table, expected a namespace"):
        ground.batch(declare("w", "a"), declare("w", "a", "b"))
    with pytest.raises(InvalidInputError, match="belongs to table w\\$é"):
        ground.batch(declare("w", "é", location="00000000_w$_"), declare("w", "è", location="00000000_w$_"))
    with pytest.raises(TableAlreadyExistsError):
        ground.batch(declare("w", "a"), deregister, declare("w", "b"), declare("w", "b"))
    ground.batch(declare("w", "a"), deregister, declare("w", "b"), declare("w", "a"), declare("w", "c"), deregister)
    assert ground.read("list_tables", id=["w"])["tables"] == ["b", "c"]


def test_a_page_of_created_tables_looks_at_no_more_than_it_needs(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.make_namespace("w")
    ground.batch(*({"declare_table": {"id": ["w", f"t{number:03d}"]}} for number in range(100)))
    for number in (3, 5, 50):
        ground.write(["w", f"t{number:03d}"], rows(0, 1), "overwrite")
    asked: list[ObjectId] = []
    is_created = reads._is_created

    def counted(view: reads.ReadContext, table_id: ObjectId) -> bool:
        asked.append(table_id)
        return is_created(view, table_id)

    monkeypatch.setattr(reads, "_is_created", counted)
    request = {"id": ["w"], "include_declared": False, "limit": 1}
    assert ground.read("list_tables", **request) == {"tables": ["t003"], "page_token": "t003"}
    assert len(asked) == 6
    assert ground.read("list_tables", **request, page_token="t005") == {"tables": ["t050"]}


def test_a_location_finds_its_table_whether_or_not_it_says_its_id() -> None:
    plain, root = TableEntry(("w", "t"), "00000001_w$t"), TableEntry(("t",), "00000002_t")
    moved, odd = TableEntry(("w", "u"), "00000003_w$before"), TableEntry(("w", "é"), "00000004_w__")
    entries: list[Entry] = [WIDE, plain, root, moved, odd]
    loaded = load([encode_entry(entry) for entry in entries])
    for state in (loaded, CatalogSnapshot().apply(put(entries)).state):
        assert {location: state.table_at(location) for location in ("00000003_w$before", "00000004_w__")} == {
            "00000003_w$before": moved.id,
            "00000004_w__": odd.id,
        }
        assert len(state.locations) == 2
        assert (state.table_at("00000001_w$t"), state.table_at("00000002_t")) == (plain.id, root.id)
        for vacant in ("00000009_w$t", "00000001_w$u", "t", ""):
            assert state.table_at(vacant) is None
        gone = CatalogSnapshot(state=state).apply(Changes({}, frozenset({"w$t", "w$u"})))
        assert (gone.table_at("00000001_w$t"), gone.table_at("00000003_w$before")) == (None, None)


def test_of_rows_with_one_object_id_the_last_counts_whatever_their_types() -> None:
    record = encode_entry(RecordEntry("5", "closed"))
    found = [
        Row("a", "table", "1_a", None),
        Row("b", "namespace", None, None),
        Row("c", "table", "1_c", None),
        Row("$transactions$5", "table", "1_r", None),
        Row("b", "table", "2_b", None),
        Row("a", "namespace", None, None),
        Row("c", "table", "2_c", '{"p":"q"}'),
        record,
        Row("d", "table", None, None),
        Row("", "table", "empty", None),
        Row("$x", "table", "x", "{}"),
    ]
    state = load(found)
    snapshot = CatalogSnapshot(state=state)
    assert {entry.object_id: type(entry) for entry in snapshot.entries()} == {
        "a": NamespaceEntry,
        "b": TableEntry,
        "c": TableEntry,
        "$transactions$5": RecordEntry,
        "": TableEntry,
        "$x": TableEntry,
    }
    assert snapshot.table(("c",)) == TableEntry(("c",), "2_c", {"p": "q"})
    assert dict(state.unrecognised_rows) == {"a": (0,), "b": (1,), "c": (2,), "$transactions$5": (3,), "d": (8,)}
    assert {path for path, _ in state.tables.items()} == {("b",), ("c",), ("",), ("", "x")}
    assert (snapshot.child_tables(()), snapshot.child_namespaces(())) == (("", "b", "c"), ("a",))
    assert snapshot.child_tables(("",)) == ("x",)
    assert (snapshot.table_at("2_c"), snapshot.table_at("1_c"), snapshot.table_at("1_r")) == (("c",), None, None)


def test_long_results_of_a_batch_come_back_as_they_were() -> None:
    results = orjson.dumps([{"location": f"{number:08x}_w$t"} for number in range(5_000)])
    record = RecordEntry("u", "closed", "h", "k", results=results)
    snapshot = CatalogSnapshot().apply(put([record]))
    assert snapshot.record("u") == record
    assert list(snapshot.records()) == [record]

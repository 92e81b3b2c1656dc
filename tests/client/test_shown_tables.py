"""What the catalog tells of tables and rows without access to storage: overviews and pages of rows."""

from __future__ import annotations

import json
import math
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest

from namespace_client import CommitRejected, InvalidCall, NotFound, TagDescription
from namespace_client.row_pages import Cell, RowQuery, _cell_maker, row_page
from namespace_client.table_overview import fragment_page
from tests.client.scene import Scene, rows


class TestOverviews:
    def test_it_tells_what_pylance_does(self, scene: Scene) -> None:
        catalog, top = scene.catalog, scene.namespace
        catalog.create_namespace("kept", properties={"maintenance.min_fragments": "8", "gc.tables.age": "7d"})
        catalog.create("kept.t", rows(*range(10)), properties={"maintenance.min_fragments": "3", "owner": "ann"})
        catalog.append("kept.t", rows(*range(10, 15)))
        catalog.delete("kept.t", "id < 3")
        with catalog.begin() as tx:
            tx.create_index("kept.t", "id", "BTREE")
        catalog.append("kept.t", rows(20, 21))
        catalog.create_tag("kept.t", "first", version=1)
        catalog.create_branch("kept.t", "dev", from_version=2)

        found = catalog.show("kept.t")

        state = catalog.access.table((top, "kept", "t"))
        assert state is not None
        dataset = lance.dataset(state.uri)
        assert found.version == dataset.version
        assert found.catalog_version == scene.catalog_version()
        assert (found.rows, found.deleted_rows) == (dataset.count_rows(), 3)
        assert found.fragments is not None
        assert (found.fragments.count, found.fragments.most_rows) == (len(dataset.get_fragments()), 10)
        assert [(each.name, each.type) for each in found.columns] == [("id", "int64"), ("v", "double")]
        [index] = found.indices
        assert (index.columns, index.kind, index.rows, index.unindexed_rows) == (("id",), "BTree", 12, 2)
        assert [each.version for each in found.versions] == [each["version"] for each in dataset.versions()[::-1]]
        assert found.committed_at == found.versions[0].committed_at
        assert found.tags == {"first": TagDescription(1)}
        assert list(found.branches or ()) == ["dev"]
        assert found.properties["owner"] == "ann"
        assert [(each.name, each.value, each.of) for each in found.policy] == [
            ("maintenance.min_fragments", "3", (top, "kept", "t")),
            ("gc.tables.age", "7d", (top, "kept")),
        ]
        assert "version" in repr(found)
        assert "<table>" in found._repr_html_()

    def test_of_an_earlier_version_and_a_branch(self, scene: Scene) -> None:
        catalog = scene.catalog
        scene.make("t", 1, 2)
        before = scene.catalog_version()
        catalog.create_branch("t", "dev")
        catalog.append("t", rows(3))
        catalog.append("t", rows(4, 5), branch="dev")
        found = catalog.at(before).show("t")
        assert (found.rows, found.version, found.tags, found.branches) == (2, 1, None, None)
        assert [each.version for each in found.versions] == [1]
        assert catalog.show("t", branch="dev").rows == 4
        assert catalog.show("t", version=1).rows == 2
        with pytest.raises(NotFound):
            catalog.show("absent")
        with pytest.raises(CommitRejected):
            catalog.show("t", version=99)

    def test_fragments_are_those_of_pylance(self, scene: Scene) -> None:
        scene.make("t", *range(25))
        scene.catalog.delete("t", "id < 3")
        with scene.catalog.begin() as tx:
            tx.add_columns("t", {"twice": "id * 2"})
        access, name = scene.catalog.access, (scene.namespace, "t")
        first = fragment_page(access, name, None, limit=2)
        second = fragment_page(access, name, None, limit=2, after=first.next)
        found = [*first.fragments, *second.fragments]
        dataset = scene.open()
        expected = dataset.get_fragments()
        assert (first.version, first.count, second.next) == (dataset.version, len(expected), None)
        assert [(each.id, each.rows, each.deleted_rows) for each in found] == [
            (each.fragment_id, each.count_rows(), each.num_deletions) for each in expected
        ]
        assert [[(file.path, file.bytes) for file in each.files] for each in found] == [
            [(f"data/{file.path}", file.file_size_bytes) for file in each.data_files()] for each in expected
        ]
        assert [file.columns for file in found[0].files] == [("id", "v"), ("twice",)]
        deletions = expected[0].deletion_file()
        assert deletions is not None
        assert deletions.endswith(found[0].deletion_file or "nothing")
        assert fragment_page(access, name, None, version=1).count == 1
        with pytest.raises(NotFound):
            fragment_page(access, name, None, version=99)

    def test_a_declared_table_has_no_version(self, scene: Scene) -> None:
        scene.stock().declare_table(DeclareTableRequest(id=[scene.namespace, "declared"]))
        found = scene.catalog.show("declared")
        assert (found.version, found.rows, found.columns, found.versions) == (None, None, (), ())
        assert "declared" in repr(found)


class TestPages:
    def page(self, scene: Scene, query: RowQuery, name: str = "t") -> tuple[list[str], int | None]:
        found = row_page(scene.catalog.access, (scene.namespace, name), scene.catalog_version(), query)
        assert found.seconds > 0
        return [row.cells[0].text for row in found.rows], found.next

    def test_they_are_of_one_catalog_version(self, scene: Scene) -> None:
        scene.make("t", *range(5))
        version = scene.catalog_version()
        scene.catalog.append("t", rows(5))
        found = row_page(scene.catalog.access, (scene.namespace, "t"), version, RowQuery(limit=3, after=3))
        assert [row.cells[0].text for row in found.rows] == ["3", "4"]
        assert (found.next, found.previous) == (None, 0)
        assert [row.id for row in found.rows] == [3, 4]

    def test_filter_order_and_pages(self, scene: Scene) -> None:
        scene.make("t", *range(9))
        assert self.page(scene, RowQuery("id > 2", "id", descending=True, limit=3)) == (["8", "7", "6"], 3)
        assert self.page(scene, RowQuery("id > 2", "id", descending=True, limit=3, after=3)) == (["5", "4", "3"], None)
        assert self.page(scene, RowQuery("id = 2 or id = 5")) == (["2", "5"], None)

    def test_what_does_not_go_is_refused(self, scene: Scene) -> None:
        scene.make("t", 1)
        with pytest.raises(CommitRejected):
            self.page(scene, RowQuery("nothing = 1"))
        with pytest.raises(InvalidCall, match="limit"):
            self.page(scene, RowQuery(limit=10_000))
        with pytest.raises(InvalidCall, match="at most one"):
            self.page(scene, RowQuery(order="id", text="words"))
        with pytest.raises(InvalidCall, match="vectors"):
            self.page(scene, RowQuery(like=1))
        with pytest.raises(NotFound, match="row 77"):
            self.page(scene, RowQuery(like=77, vector="id"))

    def test_words_and_rows_like_another_one(self, scene: Scene) -> None:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array([0, 0, 9, 9, 1, 1, 8, 8], pa.float32()), 2)
        data = pa.table({"id": [0, 1, 2, 3], "s": ["red fox", "blue sky", "red sky", "fox"], "vec": vectors})
        scene.catalog.create("t", data)
        with scene.catalog.begin() as tx:
            tx.create_index("t", "s", "INVERTED")
        found, _ = self.page(scene, RowQuery(text="fox"))
        assert sorted(found) == ["0", "3"]
        assert self.page(scene, RowQuery(text="sky", filter="id > 1"))[0] == ["2"]
        assert self.page(scene, RowQuery(like=1, vector="vec"))[0] == ["1", "3", "2", "0"]

    def test_cells_are_what_they_are_shown_as(self, scene: Scene) -> None:
        blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        schema = pa.schema(
            [
                pa.field("n", pa.int64()),
                pa.field("s", pa.string()),
                pa.field("l", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.binary())]))),
                pa.field("v", pa.list_(pa.float32(), 2)),
                pa.field("b", pa.binary()),
                pa.field("t", pa.timestamp("us", "UTC")),
                blob,
            ]
        )
        values = [
            {"n": 1, "s": "x" * 30_000, "l": [{"x": 1, "y": b"\xff"}], "v": [1.0, math.nan], "b": b"ab", "t": 0},
            dict.fromkeys(schema.names),
        ]
        values[0]["blob"] = b"\x89PNG"
        scene.catalog.create("t", pa.Table.from_pylist(values, schema=schema))
        found = row_page(scene.catalog.access, (scene.namespace, "t"), scene.catalog_version(), RowQuery())
        one, two = found.rows
        assert [cell.kind for cell in one.cells] == ["number", "text", "nested", "vector", "bytes", "time", "blob"]
        assert {cell.kind for cell in two.cells} == {"null"}
        number, text, nested, vector, data, time, blob_cell = one.cells
        assert (number.text, len(text.text), text.is_cut) == ("1", 20_000, True)
        assert '"x": 1' in nested.text
        assert (vector.points, vector.text) == ((1.0, 0.0), "1, nan")
        assert (data.text, data.size) == ("61 62", 2)
        assert time.text == "1970-01-01 00:00:00+00:00"
        assert blob_cell.size == 4
        assert [(each.type, each.sortable) for each in found.columns][-1] == ("blob", False)
        assert "x" in repr(found)


class TestLongValues:
    """Of a value with more items than are shown only its beginning is made."""

    def cell(self, value: Any, kind: pa.DataType) -> Cell:
        [cell] = map(_cell_maker(pa.field("x", kind)), pa.array([value], kind))
        assert isinstance(cell, Cell)
        return cell

    @pytest.mark.parametrize(
        ("kind", "value", "shown"),
        [
            (pa.list_(pa.int64()), list(range(5_000)), list(range(1_000))),
            (pa.large_list(pa.list_(pa.int64())), [list(range(600))] * 9, [list(range(600)), list(range(398))]),
            (pa.list_(pa.struct([("a", pa.string())])), [{"a": "x"}] * 5_000, [{"a": "x"}] * 1_000),
            (pa.map_(pa.string(), pa.int64()), [("a", 1)] * 5_000, [["a", 1]] * 1_000),
        ],
        ids=str,
    )
    def test_a_nested_one_is_cut(self, kind: pa.DataType, value: Any, shown: Any) -> None:
        cell = self.cell(value, kind)
        assert cell.is_cut
        assert json.loads(cell.text) == shown

    def test_a_short_one_is_whole(self) -> None:
        kind = pa.struct([("l", pa.list_(pa.binary())), ("m", pa.map_(pa.string(), pa.int64()))])
        cell = self.cell({"l": [b"\x01", None], "m": [("a", None)]}, kind)
        assert not cell.is_cut
        assert json.loads(cell.text) == {"l": ["01", None], "m": [["a", None]]}

    def test_a_vector_is_a_line_of_all_of_it(self) -> None:
        cell = self.cell([float(each % 7) for each in range(70_000)], pa.list_(pa.float32(), 70_000))
        assert (cell.size, cell.is_cut, len(cell.points)) == (70_000, True, 256)
        assert cell.text.startswith("0, 1, 2, 3, 4, 5, 6, 0")

"""Every field of a client's transaction with wrong values: refused by name, or a version that stock pylance reads.

One row for each field and value. What is refused leaves the table as it is. What is accepted is opened, validated,
scanned and filtered by stock pylance, which finds the rows of the transaction as it was without the change.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import lance
import numpy as np
import pytest
from lance_namespace.errors import InvalidInputError
from pyroaring import BitMap

from lance_core.format.manifest import parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import encode_transaction
from lance_core.transaction.row_ids import encode_row_id_range, encode_row_ids, encode_uniform_versions
from tests.directory.tables import Ground, as_operation
from tests.hostile.scene import Scene, make_scene

TABLE = ["g", "t"]
Change = Callable[[pb.Transaction, Scene], None]


class Case(NamedTuple):
    """A change of the transaction of an operation, and a part of the refusal, None if it is accepted."""

    operation: str
    field: str
    value: Any
    says: str | None
    stable_only: bool = False


def on(operation: str, *rows: tuple[Any, ...]) -> Iterator[Case]:
    return (Case(operation, *row) for row in rows)


def schema_only(change: Callable[[Any], None]) -> Change:
    """A new schema without rows: nothing but the schema is judged."""

    def make(message: pb.Transaction, _: Scene) -> None:
        del message.overwrite.fragments[:]
        change(message.overwrite.schema)

    return make


def of_type(name: str) -> Change:
    return schema_only(lambda schema: setattr(schema[2], "logical_type", name))


def below(name: str, *children: str) -> Change:
    """A column of this type, with fields of other types below it."""

    def change(schema: Any) -> None:
        schema[1].logical_type = name
        for number, child in enumerate(children):
            schema.add(name=f"c{number}", id=10 + number, parent_id=1, logical_type=child, nullable=True)

    return schema_only(change)


def described(key: str, value: bytes) -> Change:
    return schema_only(lambda schema: schema[1].metadata.update({key: value}))


def entry(kind: str, key: str, value: str) -> Change:
    def change(message: pb.Transaction, _: Scene) -> None:
        config = message.update_config
        update = config.field_metadata_updates[0] if kind == "field" else getattr(config, kind)
        update.update_entries.add(key=key, value=value)

    return change


def again(path: str) -> Change:
    """The first entry of a list twice."""

    def change(message: pb.Transaction, _: Scene) -> None:
        entries = follow(message, path)
        entries.add().CopyFrom(entries[0])

    return change


def without(path: str) -> Change:
    def change(message: pb.Transaction, _: Scene) -> None:
        owner, _dot, name = path.rpartition(".")
        if name.isdigit():
            del follow(message, owner)[int(name)]
        else:
            follow(message, owner).ClearField(name)

    return change


def follow(message: Any, path: str) -> Any:
    for part in path.split("."):
        message = message[int(part)] if part.isdigit() else getattr(message, part)
    return message


def change_field(message: pb.Transaction, case: Case, scene: Scene) -> None:
    if callable(case.value):
        case.value(message, scene)
        return
    owner, _, name = case.field.rpartition(".")
    target = follow(message, owner) if owner else message
    if isinstance(case.value, list):
        del getattr(target, name)[:]
        getattr(target, name).extend(case.value)
    else:
        setattr(target, name, case.value)


FILE = "append.fragments.0.files.0"
UPDATED = "delete.updated_fragments.0"
MOVED = "update.new_fragments.0"
COMPACTED = "rewrite.groups.0.new_fragments.0"
INDEX = "create_index.new_indices.0"
REPLACED = "data_replacement.replacements.0"

CASES = [
    *on(
        "append",
        ("uuid", "", "expected a base64-encoded Lance Transaction with a uuid"),
        ("uuid", "x", "expected a base64-encoded Lance Transaction with a uuid"),
        ("uuid", f"{{{uuid.uuid4()}}}", "expected letters, digits"),
        ("read_version", 2**64 - 1, "read version 18446744073709551615, but the head is"),
        ("tag", "x" * 5000, None),
        ("fragments.id", lambda m, _: setattr(m.append.fragments[0], "id", 2**63), None),
        ("fragments", again("append.fragments"), "is named by two fragments"),
        ("append.fragments.0.physical_rows", 2, "has 3 rows, expected 2"),
        ("append.fragments.0.physical_rows", 2**33, "rows, expected 8589934592"),
        ("append.fragments.0.files", again("append.fragments.0.files"), "twice"),
        ("append.fragments.0.overlays", lambda m, _: m.append.fragments[0].overlays.add(), "is no file of the table"),
        ("append.fragments.0.inline_row_ids", encode_row_id_range(0, 3), None),
        ("append.fragments.0.inline_created_at_versions", b"\xff\xff\xff", None),
        (f"{FILE}.fields", [], "has no field"),
        (f"{FILE}.fields", [-2, -2, -2], "has no field"),
        (f"{FILE}.fields", [0, 1, 9], "field 9, which is not known"),
        (f"{FILE}.fields", [0, 1, -5], "field -5, which is not known"),
        (f"{FILE}.fields", [2, 1, 2], "field 2 twice|expected string"),
        (f"{FILE}.fields", [2, 1, 0], "has int64 in column 0, expected string"),
        (f"{FILE}.column_indices", [0, 0, 2], "expected double"),
        (f"{FILE}.column_indices", [0, -1, 2], "column index -1 for field 1"),
        (f"{FILE}.column_indices", [0, -7, 2], "expected a column -7"),
        (f"{FILE}.column_indices", [0, 1, 100], "expected a column 100"),
        (f"{FILE}.file_major_version", 0, "format version 0"),
        (f"{FILE}.file_size_bytes", 1, "bytes, expected 1"),
        (f"{FILE}.file_size_bytes", 0, None),
        (f"{FILE}.base_id", 5, "base 5, which is no base path"),
        (f"{FILE}.path", "/etc/passwd", "is no file of the table|expected a path below"),
    ),
    *on(
        "overwrite",
        *((f"schema type {name!r}", of_type(name), "expected a type that readers know") for name in (
            "", "foo", "int65", "utf8", "float16", "decimal:128:99:2", "decimal:128:0:0", "decimal:128:5",
            "fixed_size_binary:-1", "fixed_size_list:float:0", "fixed_size_list:float:-1", "fixed_size_list:foo:3",
            "timestamp:xs:-", "dict:foo:int8:false", "list", "list.struct", "large_list", "map",
        )),
        *((f"schema type {name!r}", of_type(name), None) for name in (
            "null", "bool", "halffloat", "large_string", "date32:day", "time64:us", "duration:ms", "timestamp:us:UTC",
            "decimal:128:10:-2", "decimal:256:60:2", "fixed_size_binary:16", "dict:string:int8:false",
            "fixed_size_list:float:4", "fixed_size_list:fixed_size_list:float:4:3", "struct",
        )),
        ("schema children", below("list", "int64"), None),
        ("schema children", below("struct", "int64", "string"), None),
        ("schema children", below("list", "int64", "int64"), "with fields of types"),
        ("schema children", below("list.struct", "int64"), "with fields of types"),
        ("schema children", below("fixed_size_list:float:2", "int64"), "with fields of types"),
        ("schema children", below("map", "int64"), "with fields of types"),
        ("schema children", below("double", "int64"), "with fields of types"),
        *((f"schema name {name!r}", schema_only(lambda schema, name=name: setattr(schema[1], "name", name)), says)
          for name, says in (
            ("id", "2 fields are called 'id'"), ("", "expected a name"), ("a.b", "expected a name"),
            ("a`b", "expected a name"), ("a\0b", "expected a name"), ("_rowid", "a column of the system"),
            ("_rowaddr", "a column of the system"), ("_row_created_at_version", "a column of the system"),
            ("ID", None), ("a b", None),
        )),
        ("schema id", schema_only(lambda schema: setattr(schema[1], "id", 0)), "expected a fresh one"),
        ("schema id", schema_only(lambda schema: setattr(schema[1], "id", -1)), "expected a fresh one"),
        ("schema parent", schema_only(lambda schema: setattr(schema[2], "parent_id", 9)), "before its parent 9"),
        ("schema parent", schema_only(lambda schema: setattr(schema[2], "parent_id", 2)), "before its parent 2"),
        ("schema", schema_only(lambda schema: schema.__delitem__(slice(None))), "the schema has no field"),
        ("schema metadata", described("lance-encoding:compression", b"nope"), "is 'nope', expected"),
        ("schema metadata", described("lance-encoding:structural-encoding", b"nope"), "is 'nope', expected"),
        ("schema metadata", described("lance-encoding:blob", b"true"), "is for large_binary, found double"),
        ("schema metadata", described("ARROW:extension:name", b"lance.blob.v2"), "which is stored as struct"),
        ("schema metadata", described("raw", b"\xff\xfe"), None),
        ("overwrite.schema.0.logical_type", "string", "has int64 in column 0, expected string"),
        ("overwrite.schema.0.logical_type", "date32:day", "has int64 in column 0, expected date32:day"),
        ("overwrite.schema.1.logical_type", "timestamp:us:-", "has double in column 1, expected timestamp:us:-"),
        (
            "schema",
            lambda m, _: m.overwrite.schema.add(name="z", id=7, parent_id=-1, logical_type="int64"),
            "no column 'z', which must not be null",
        ),
        ("initial_bases", lambda m, _: m.overwrite.initial_bases.add(id=1, path="x"), "base path"),
    ),
    *on(
        "delete",
        ("delete.deleted_fragment_ids", [99], "fragment 99 is not in the table"),
        (f"{UPDATED}.physical_rows", 11, "has 11 rows"),
        (f"{UPDATED}.deletion_file.num_deleted_rows", 9, "delet"),
        (f"{UPDATED}.deletion_file.num_deleted_rows", 0, "delet"),
        (f"{UPDATED}.deletion_file.base_id", 4, "base 4, which is no base path"),
        (f"{UPDATED}.inline_row_ids", encode_row_id_range(100, 110), "inline_row_ids are not those"),
        (f"{UPDATED}.inline_row_ids", encode_row_id_range(0, 5), "inline_row_ids are not those"),
        (f"{UPDATED}.inline_row_ids", b"\xff\xff\xff", "inline_row_ids are not those"),
        ("no row ids", without(f"{UPDATED}.inline_row_ids"), "inline_row_ids are not those", True),
        (f"{UPDATED}.inline_created_at_versions", b"\xff\xff\xff", "inline_created_at_versions are not those"),
        (f"{UPDATED}.inline_last_updated_at_versions", encode_uniform_versions(3, 1), "_at_versions are not those"),
        (f"{UPDATED}.files.0.fields", [2, 1, 0], "has other data files"),
        (f"{UPDATED}.files.0.column_indices", [2, 1, 0], "has other data files"),
        (f"{UPDATED}.files.0.file_minor_version", 0, "has other data files"),
        (f"{UPDATED}.files.0.file_size_bytes", 1, "other data files"),
        ("overlays", lambda m, _: m.delete.updated_fragments[0].overlays.add(), "other overlays"),
        ("delete.predicate", "(((", None),
    ),
    *on(
        "update",
        (f"{MOVED}.inline_row_ids", encode_row_id_range(0, 2), "brings row id 0", True),
        (f"{MOVED}.inline_row_ids", encode_row_ids(np.array([18, 18], np.uint64)), "a row id twice", True),
        (f"{MOVED}.inline_row_ids", encode_row_id_range(10**6, 10**6 + 2), "brings row id", True),
        (f"{MOVED}.inline_row_ids", b"\xff\xff\xff", "inline_row_ids: .*not a sequence", True),
        (f"{MOVED}.physical_rows", 3, "rows, expected 3"),
        (f"{MOVED}.files.0.fields", [0, 1, 9], "field 9, which is not known"),
        ("update.updated_fragments.0.inline_row_ids", encode_row_id_range(0, 10), "inline_row_ids are not those"),
        ("update.fields_for_preserving_frag_bitmap", [77], None),
    ),
    *on(
        "columns",
        ("no files", without("update.updated_fragments.0.files"), "has no data file with field"),
        ("update.updated_fragments.0.files.0.fields", [0, 1, 2], "field [01] twice"),
        ("update.updated_fragments.0.inline_row_ids", encode_row_id_range(10, 20), "inline_row_ids are not those"),
    ),
    *on(
        "rewrite",
        (f"{COMPACTED}.id", 2**32, "expected an id up to"),
        (f"{COMPACTED}.physical_rows", 3, "rows"),
        ("no files", without(f"{COMPACTED}.files"), "has 0 data files"),
        (f"{COMPACTED}.files.0.fields", [0, 1, 9], "field 9, which is not known"),
        (f"{COMPACTED}.files.0.fields", [0, 0, 2], "field 0 twice|expected int64"),
        (f"{COMPACTED}.inline_created_at_versions", b"\xff\xff\xff", "are not a sequence"),
        (f"{COMPACTED}.inline_last_updated_at_versions", encode_uniform_versions(3, 1), "are of 3 rows"),
        ("row ids", lambda m, _: change_row_ids(m, 1000), "brings row id 1000", True),
        (
            "rewritten_indices.new_id",
            lambda m, scene: m.rewrite.rewritten_indices.add(old_id=segment(scene).uuid, new_id=pb.UUID(uuid=b"b")),
            "uuid of 1 bytes|twice",
        ),
    ),
    *on(
        "merge",
        ("merge.fragments", without("merge.fragments.0"), "fragment 0 is left out"),
        ("merge.fragments", without("merge.fragments"), "fragment 0 is left out"),
        ("merge.schema.0.logical_type", "string", "expected the table's, 'int64'|expected string"),
        ("merge.schema.3.logical_type", "foo", "expected a type that readers know"),
        ("merge.schema.3.id", 1, "expected a fresh one"),
        ("merge.schema.3.name", "id", "2 fields are called 'id'"),
        ("merge.schema.3.parent_id", 0, "with fields of types"),
        ("merge.fragments.0.files.1.fields", [88], "field 88, which is not known"),
        ("merge.fragments.0.files.1.fields", [0], "twice|expected int64"),
        ("a file of a column", without("merge.fragments.0.files.0"), "has no data file with field 0 left"),
        ("merge.fragments.0.inline_row_ids", encode_row_id_range(10, 20), "inline_row_ids are not those"),
        (
            "merge.schema",
            lambda m, _: m.merge.schema.add(name="q", id=50, parent_id=-1, logical_type="int64"),
            "no column 'q', which must not be null",
        ),
    ),
    *on(
        "project",
        ("project.schema.0.logical_type", "string", "expected the table's, 'int64'"),
        ("project.schema.0.logical_type", "int32", "expected the table's, 'int64'"),
        ("project.schema.0.logical_type", "foo", "expected a type that readers know"),
        ("project.schema.1.parent_id", 0, "with fields of types"),
        ("project.schema.1.name", "id", "2 fields are called 'id'"),
        ("project.schema.1.id", 55, "field 55, which is not in version"),
        ("metadata", lambda m, _: m.project.schema[0].metadata.update({"lance-encoding:packed": b"true"}), "cannot ch"),
    ),
    *on(
        "data",
        (f"{REPLACED}.fragment_id", 99, "fragment 99 is not in the table"),
        (f"{REPLACED}.fragment_id", 3, "has 10 rows, expected 1"),
        (f"{REPLACED}.new_file.fields", [88], "has fields \\[88\\]|field 88"),
        (f"{REPLACED}.new_file.fields", [0], "expected int64"),
        (f"{REPLACED}.new_file.column_indices", [7], "expected a column 7"),
        ("twice", again("data_replacement.replacements"), "replaced twice"),
    ),
    *on(
        "index",
        (f"{INDEX}.uuid.uuid", b"x", "uuid of 16 bytes|is not there"),
        (f"{INDEX}.fields", [], "over fields \\[\\]"),
        (f"{INDEX}.fields", [0, 0], "each once"),
        (f"{INDEX}.fields", [88], "over field 88"),
        (f"{INDEX}.covering_fields", [88], "covers field 88"),
        (f"{INDEX}.fragment_bitmap", b"\x00\x01\x02", "not a Roaring bitmap"),
        (f"{INDEX}.fragment_bitmap", BitMap([0, 99]).serialize(), "covers fragment 99"),
        (f"{INDEX}.fragment_bitmap", BitMap([0]).serialize(), None),
        ("fragment_bitmap", without(f"{INDEX}.fragment_bitmap"), "fragment_bitmap is missing"),
        (f"{INDEX}.dataset_version", 10**6, "is of version 1000000"),
        (f"{INDEX}.created_at", 2**63, "expected a time"),
        (f"{INDEX}.name", "", "expected a name"),
        (f"{INDEX}.name", "__lance_frag_reuse", "which are not its own"),
        (f"{INDEX}.name", "__lance_mem_wal", "which are not its own"),
        (f"{INDEX}.name", "x_idx", "one of that name over others"),
        (f"{INDEX}.base_id", 5, "base 5, which is no base path"),
        (f"{INDEX}.files.0.size_bytes", 1, "bytes, expected 1"),
        ("new_indices", again("create_index.new_indices"), "another one of the transaction has"),
    ),
    *on(
        "config",
        ("config", entry("config_updates", "lance.auto_cleanup.interval", "x"), None),
        ("field metadata", entry("field", "lance-encoding:blob", "true"), "cannot change"),
        ("field metadata", entry("field", "lance-encoding:packed", "true"), "cannot change"),
        ("field metadata", entry("field", "lance-encoding:compression", "nope"), "is 'nope', expected"),
        ("field metadata", entry("field", "lance-encoding:structural-encoding", "x"), "is 'x', expected"),
        ("field metadata", entry("field", "ARROW:extension:name", "arrow.json"), "which is stored as"),
        ("field metadata", entry("field", "ARROW:extension:name", "arrow.uuid"), "which is stored as"),
        ("field metadata", entry("field", "lance-schema:unenforced-primary-key", "true"), "may be null"),
        ("field metadata", entry("field", "lance:field_id", "x"), "is 'x', expected"),
        ("field metadata", entry("field", "ours", "x"), None),
    ),
    *on("restore", ("restore.version", 0, "version 0"), ("restore.version", 99, "version 99")),
    *on("reserve", ("reserve_fragments.num_fragments", 2**32 - 1, "expected at most")),
    *on("log", ("update_mem_wal_state.compacted_sstables.0.shard_id.uuid", b"x", "an id of 1 bytes")),
    *on("bases", ("update_bases.new_bases.0.path", "", "base path")),
]  # fmt: skip


def change_row_ids(message: pb.Transaction, start: int) -> None:
    fragment = message.rewrite.groups[0].new_fragments[0]
    fragment.inline_row_ids = encode_row_id_range(start, start + fragment.physical_rows)


def segment(scene: Scene) -> pb.IndexMetadata:
    assert scene.head.indices is not None
    return scene.head.indices.indices[0]


class Judged(NamedTuple):
    """A catalog with the table of a scene."""

    scene: Scene
    root: Path

    def send(self, root: Path, message: pb.Transaction) -> None:
        Ground(root).batch(as_operation(TABLE, message))

    def transaction(self, operation: str) -> pb.Transaction:
        return encode_transaction(self.scene.operations[operation], read_version=self.scene.head.version)

    def rows_after(self, message: pb.Transaction, to: Path) -> list[str]:
        """Commit to a copy; stock pylance then opens, validates, scans and filters the version."""
        shutil.copytree(self.root, to)
        self.send(to, message)
        dataset = lance.dataset(str(to / "t"))
        assert dataset.version == self.scene.head.version + 1
        dataset.validate()
        dataset.describe_indices()
        table = dataset.to_table()
        assert dataset.to_table(with_row_id=True)["_rowid"].unique().__len__() == table.num_rows
        if "x" in table.column_names and table.num_rows:
            assert dataset.to_table(filter=f"x = {table['x'][0].as_py()}").num_rows == 1
        return sorted(map(repr, table.to_pylist()))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Judged]:
    """The catalog with a table whose row ids are stable, or not: one of each for all tests."""

    @cache
    def make(is_stable: bool) -> Judged:
        root = tmp_path_factory.mktemp("fields")
        scene = make_scene(root / "scene", stable_row_ids=is_stable)
        ground = Ground(root / "catalog")
        ground.make_namespace("g")
        shutil.copytree(scene.table.path, root / "catalog" / "t")
        ground.call("register_table", id=TABLE, location="t")
        return Judged(scene, root / "catalog")

    return make


@pytest.fixture
def judged(request: pytest.FixtureRequest, made: Callable[[bool], Judged]) -> Judged:
    return made(request.param)


TABLES = {"plain": False, "stable": True}
"""Whether the row ids of the tables are stable."""


def on_tables(*, refused: bool) -> list[Any]:
    """Each table with each case that is refused, or accepted, on it: row ids are dropped where they are not stable."""
    return [
        pytest.param(is_stable, case, id=f"{name}-{case.operation}-{case.field}")
        for name, is_stable in TABLES.items()
        for case in CASES
        if (case.says is not None and (is_stable or not case.stable_only)) is refused
    ]


@pytest.mark.parametrize(("judged", "case"), on_tables(refused=True), indirect=["judged"])
def test_a_wrong_value_is_refused_by_name(judged: Judged, case: Case) -> None:
    message = judged.transaction(case.operation)
    change_field(message, case, judged.scene)
    with pytest.raises(InvalidInputError, match=case.says):
        judged.send(judged.root, message)
    [_, newest] = sorted((judged.root / "t" / "_versions").glob("*.manifest"))[:2][::-1]
    assert parse_manifest_file(newest.read_bytes()).version == judged.scene.head.version


@pytest.mark.parametrize(("judged", "case"), on_tables(refused=False), indirect=["judged"])
def test_a_value_that_is_accepted_makes_a_version_that_pylance_reads(
    judged: Judged, case: Case, tmp_path: Path
) -> None:
    message = judged.transaction(case.operation)
    honest = judged.rows_after(message, tmp_path / "honest")
    message.uuid = str(uuid.uuid4())
    change_field(message, case, judged.scene)
    rows = judged.rows_after(message, tmp_path / "changed")
    assert rows == ([] if case.field.startswith("schema") and not message.overwrite.fragments else honest)


@pytest.mark.parametrize("judged", TABLES.values(), ids=TABLES, indirect=True)
def test_each_transaction_without_a_change_is_accepted(judged: Judged, tmp_path: Path) -> None:
    for operation in {case.operation for case in CASES} - {"bases"}:
        judged.rows_after(judged.transaction(operation), tmp_path / operation)

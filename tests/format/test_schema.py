from pathlib import Path

import pyarrow as pa
import pytest

from lance_core.data import schema_fields
from lance_core.format.schema import data_file_message
from tests.staged_fragments import stage_fragments

PACKED = {"lance-encoding:packed": "true"}
COLUMNS = {
    "flat": (pa.int64(), [1, 2], {}),
    "struct": (
        pa.struct({"x": pa.int32(), "y": pa.list_(pa.float32()), "z": pa.struct({"q": pa.string()})}),
        [{"x": 1, "y": [1.0], "z": {"q": "a"}}, {"x": 2, "y": [], "z": {"q": "b"}}],
        {},
    ),
    "list": (pa.list_(pa.struct({"u": pa.int8()})), [[{"u": 1}], []], {}),
    "large_list": (pa.large_list(pa.large_string()), [["a"], ["b"]], {}),
    "vector": (pa.list_(pa.float32(), 2), [[1.0, 2.0], [3.0, 4.0]], {}),
    "nested_vector": (pa.list_(pa.list_(pa.float32(), 1), 2), [[[1.0], [2.0]], [[3.0], [4.0]]], {}),
    "vector_of_structs": (pa.list_(pa.struct({"k": pa.int32()}), 1), [[{"k": 1}], [{"k": 2}]], {}),
    "packed": (pa.struct({"a": pa.int32(), "b": pa.int32()}), [{"a": 1, "b": 2}, {"a": 3, "b": 4}], PACKED),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b"], {}),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], []], {}),
}
UNSUPPORTED = {("2.0", "map"), ("2.1", "map"), ("2.1", "vector_of_structs")}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_data_files_are_described_as_pylance_does(tmp_path: Path, version: str) -> None:
    columns = {name: column for name, column in COLUMNS.items() if (version, name) not in UNSUPPORTED}
    schema = pa.schema([pa.field(name, kind, metadata=meta) for name, (kind, _, meta) in columns.items()])
    table = pa.table([pa.array(rows, kind) for kind, rows, _ in columns.values()], schema=schema)
    uri = str(tmp_path / "table.lance")
    (fragment,) = stage_fragments(table, uri, mode="create", data_storage_version=version)
    (file,) = fragment.files
    fields = schema_fields(schema)
    assert len(fields) > len(columns)
    assert data_file_message(file.path, fields, size=file.file_size_bytes, version=version) == file


def test_the_legacy_format_has_other_files() -> None:
    with pytest.raises(ValueError, match=r"version 0\.1, expected 2\.0"):
        data_file_message("x", [], size=0, version="0.1")

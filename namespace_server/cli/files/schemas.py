"""Schemas that users write: a text, a JSON object, or the schema of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from namespace_server.cli.files.arrow_files import ArrowRows
from namespace_server.cli.files.formats import TEXT_FORMATS, format_of
from namespace_server.cli.files.json_rows import different_keys
from namespace_server.cli.files.refusals import FileRefused
from namespace_server.cli.files.sources import SourceFinder
from table_data.requests.arrow_types import arrow_type
from table_data.values.type_texts import schema_of, type_of


def read_schema(given: str) -> pa.Schema:
    """The schema in a file, or in a text such as `id int64, name string`. Raises `ValueError`, `OSError`."""
    file = Path(given)
    if not file.is_file():
        if " " in given.strip():
            return schema_of(given)
        raise FileRefused(f"{given}: expected a file, or columns such as 'id int64, name string'")
    if file.suffix.lower() == ".json":
        return _described(file)
    if format_of(file.name) in TEXT_FORMATS:
        raise FileRefused(f"{given}: expected a JSON object with the type of each column, or a Parquet or Arrow file")
    with SourceFinder(None, {}) as finder:
        [source] = finder.find(given)
        return ArrowRows(source).schema


def _described(file: Path) -> pa.Schema:
    try:
        described = json.loads(file.read_text("utf-8"), object_pairs_hook=different_keys)
    except ValueError as error:
        raise FileRefused(f"{file}: expected JSON: {error}") from None
    if not isinstance(described, dict) or not described:
        raise FileRefused(f"{file}: expected a JSON object with the type of each column")
    fields = []
    for name, kind in described.items():
        try:
            found = type_of(kind) if isinstance(kind, str) else arrow_type(kind, name)
        except ValueError as error:
            raise FileRefused(f"{file}: column {name}: {error}") from None
        fields.append(pa.field(name, found))
    return pa.schema(fields)

"""Translations of operations on tables, their rows, columns, tags and versions. Pure."""

from __future__ import annotations

import base64
from typing import Any, Final

from lance_namespace.errors import InvalidInputError

from namespace_server.rest.dialects.translation import Query, Translation, present
from namespace_server.rest.handlers import Read, RowsChange, TableChange
from namespace_server.rest.header_names import TIMEOUT_MILLIS
from namespace_server.rest.models import MergeInsertQuery
from namespace_server.rest.request.body import JsonObject
from namespace_server.rest.request.headers import Headers

_DESCRIBED: Final = ("version", "schema", "location", "properties", "metadata", "stats")


class _Described:
    """Describes a table in the JSON of Lance's types."""

    def handler(self, _operation: str, path: str) -> Any:
        """The handler of an operation on a path."""
        return Read(body=True).handler("describe_table_in_lance_types", path)


def described(body: JsonObject) -> JsonObject:
    """A description, which always has the version and the schema."""
    return {**present(body), "load_detailed_metadata": True, "vend_credentials": False}


def description(answer: Any) -> object:
    """The description of a table that has a version. Raises `InvalidInputError` for one that is declared only."""
    if "version" not in answer:
        raise InvalidInputError(
            f"table {answer.get('table')}: expected a table with a version, found one without any yet"
        )
    return {name: answer[name] for name in _DESCRIBED if name in answer}


def merge_query(query: Query, headers: Headers) -> Query:
    """The parameters of a merge. New rows are inserted if it says so; the time that the client has bounds the tries.

    A merge into the table alone, without a log, is what every merge is here.
    """
    found = [parameter for parameter in query if parameter != ("use_lsm", "false")]
    if all(name != "when_not_matched_insert_all" for name, _ in found):
        found.append(("when_not_matched_insert_all", "false"))
    milliseconds = headers.get(TIMEOUT_MILLIS)
    if milliseconds is not None:
        found.append(("timeout", f"{milliseconds.decode('latin-1')}ms"))
    return found


def renamed(body: JsonObject) -> JsonObject:
    """A new name, and perhaps another namespace."""
    found = present(body)
    if "new_namespace" in found:
        found["new_namespace_id"] = found.pop("new_namespace")
    return found


def added_columns(rows: bytes, query: Query) -> JsonObject:
    """New columns of nulls with the fields of an Arrow stream."""
    return {**dict(query), "new_columns": [], "arrow_schema": base64.b64encode(rows).decode()}


TRANSLATIONS: Final = {
    "describe_table": Translation(body=described, answer=description, work=_Described()),
    "create_table": Translation(creates_database=True),
    "clone_table": Translation(body=present, creates_database=True),
    "drop_table": Translation(body=present),
    "rename_table": Translation(body=renamed),
    "insert_into_table": Translation(),
    "merge_insert_into_table": Translation(
        query=merge_query,
        work=RowsChange(MergeInsertQuery),
        answer=lambda merged: {**merged, "num_rows": merged["num_inserted_rows"] + merged["num_updated_rows"]},
    ),
    "create_multipart_write": Translation(body=present),
    "complete_multipart_write": Translation(body=present),
    "abort_multipart_write": Translation(body=present),
    "update_table": Translation(
        body=present, answer=lambda updated: {**updated, "rows_updated": updated["updated_rows"]}, is_keyed=True
    ),
    "delete_from_table": Translation(body=present, work=TableChange(), is_keyed=True),
    "get_table_stats": Translation(body=present),
    "list_table_versions": Translation(body=present),
    "restore_table": Translation(body=present, is_keyed=True),
    "update_field_metadata": Translation(body=present, is_keyed=True),
    "alter_table_add_columns": Translation(body=present, rows=added_columns, is_keyed=True),
    "alter_table_alter_columns": Translation(body=present, is_keyed=True),
    "alter_table_drop_columns": Translation(body=present, is_keyed=True),
    "list_table_tags": Translation(body=present, answer=lambda listed: listed["tags"]),
    "get_table_tag_version": Translation(body=present),
    "create_table_tag": Translation(body=present, is_keyed=True),
    "update_table_tag": Translation(body=present, is_keyed=True),
    "delete_table_tag": Translation(body=present, is_keyed=True),
    "list_table_branches": Translation(body=present),
    "create_table_branch": Translation(body=present),
    "delete_table_branch": Translation(body=present),
}

"""Translations of operations on tables, their rows, columns, tags, versions, branches and indices. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from lance_namespace.errors import InvalidInputError

from namespace_server.rest.dialects.translation import Query, Translation, present
from namespace_server.rest.handlers import Read, RowsChange, TableChange, TableRead
from namespace_server.rest.header_names import TIMEOUT_MILLIS
from namespace_server.rest.models import MergeInsertQuery
from namespace_server.rest.request.body import JsonObject
from namespace_server.rest.request.headers import Headers

_WORD: Final = re.compile("_([a-z])")
_SPELLED: Final = ("status", "code")
"""Fields whose values are names."""
_REFUSED: Final = ("failed", "not_implemented")
_KNOWN: Final = frozenset(
    {
        *("IVFFLAT", "IVFSQ", "IVFPQ", "IVFRQ", "IVFHNSWPQ", "IVFHNSWSQ", "IVFHNSWFLAT"),
        *("BTREE", "BITMAP", "LABELLIST", "FTS", "INVERTED", "FM", "ZONEMAP", "NGRAM", "BLOOMFILTER", "RTREE"),
    }
)
"""The types that lancedb's clients know, without underscores. One that they do not know fails their whole list."""


_NGRAMS: Final = {"min_ngram_length": 3, "max_ngram_length": 3, "prefix_only": False}
"""What clients send with every index of text, though it is of other tokenizers, where it has no effect."""
_UNBOUNDED: Final = (1 << 31) - 1
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


def in_camel_case(value: Any) -> Any:
    """A JSON value with the names of its fields as these clients spell them, and so the values that are names."""
    if isinstance(value, Mapping):
        return {
            _camel(name): _camel(each) if name in _SPELLED and isinstance(each, str) else in_camel_case(each)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [in_camel_case(each) for each in value]
    return value


def picked(answer: Any) -> object:
    """What became of a branch, with the version of main if there is a new one."""
    body = {name: answer[name] for name in ("status", "diff", "preview")}
    if answer["status"] == "cherry_picked":
        body["main_version_after"] = answer["version"]
    return in_camel_case(body)


def status_of_pick(answer: Any) -> int:
    """A branch that main cannot take is answered as a conflict, which the client has as a result."""
    return HTTPStatus.CONFLICT if answer["status"] in _REFUSED else HTTPStatus.OK


def _camel(name: str) -> str:
    return _WORD.sub(lambda found: found[1].upper(), name)


def created(body: JsonObject) -> JsonObject:
    """A new index: lancedb calls the distance type a metric, and replaces an index unless it is told not to."""
    found = present(body)
    if "metric_type" in found:
        if "distance_type" in found:
            raise InvalidInputError("distance_type: expected metric_type alone, found both")
        found["distance_type"] = found.pop("metric_type")
    if "max_token_length" in body:
        found.setdefault("max_token_length", _UNBOUNDED)  # their null is no bound, that of the published API no value
    if found.get("base_tokenizer") != "ngram":
        found = {name: value for name, value in found.items() if name not in _NGRAMS or value != _NGRAMS[name]}
    found.setdefault("replace", True)
    return found


def listed_indices(answer: Any) -> object:
    """A list of indices; of one whose type clients do not know the type is left out."""
    return {**answer, "indexes": [_named(index) for index in answer["indexes"]]}


def _named(index: dict[str, Any]) -> dict[str, Any]:
    kind = str(index.get("index_type", "")).replace("_", "").upper()
    return index if kind in _KNOWN else {name: value for name, value in index.items() if name != "index_type"}


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
    "diff_table_branch": Translation(body=present, answer=in_camel_case),
    "cherry_pick_table_branch": Translation(body=present, answer=picked, status=status_of_pick),
    "create_table_index": Translation(body=created, is_keyed=True),
    "create_table_scalar_index": Translation(body=created, is_keyed=True),
    "list_table_indices": Translation(body=present, answer=listed_indices),
    "describe_table_index_stats": Translation(body=present),
    "drop_table_index": Translation(body=present, is_keyed=True),
    "prewarm_table_index": Translation(body=present, work=TableRead(named="index_name")),
    "prewarm_table_pages": Translation(body=present, work=TableRead()),
}

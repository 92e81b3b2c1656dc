"""Pydantic models of what this server adds to the published ones, and of the query parameters."""

from __future__ import annotations

from typing import Annotated, Any, Required

import orjson
from pydantic import BeforeValidator, ConfigDict, Field, StrictStr
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict  # pydantic takes that of `typing` from Python 3.12 on only

from namespace_server.attempts import Decision
from namespace_server.directory.model.limits import MAX_INT64, MIN_INT64


def _parse_integer(value: Any) -> Any:
    """Digits only: pydantic would take `1.0` and `1_0` as well."""
    if isinstance(value, str) and not (value.isascii() and value.removeprefix("-").isdigit() and len(value) <= 20):
        raise PydanticCustomError("int_parsing", "a number")
    return value


def _parse_flag(value: Any) -> Any:
    """`true` and `false` only, in any case: pydantic would take `yes`, `1` and others as well."""
    if isinstance(value, str):
        flag = {"true": True, "false": False}.get(value.lower())
        if flag is None:
            raise PydanticCustomError("bool_parsing", "true or false")
        return flag
    return value


PageSize = Annotated[int, BeforeValidator(_parse_integer), Field(ge=MIN_INT64, le=MAX_INT64)]
"""Zero asks for an empty page without a successor, less than zero for everything."""
EntryCount = Annotated[int, BeforeValidator(_parse_integer), Field(ge=1, le=MAX_INT64)]
"""The most entries of a page of a list that the published API does not have."""
Flag = Annotated[bool, BeforeValidator(_parse_flag)]


class QueryParameters(TypedDict, total=False):
    """No query parameters but the delimiter, which belongs to the path. Unknown parameters are refused."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]


class Paging(QueryParameters, total=False):
    """Query parameters of every list of the published API."""

    page_token: str
    limit: PageSize


class Pages(QueryParameters, total=False):
    """Query parameters of the lists that the published API does not have."""

    page_token: str
    limit: EntryCount


class FindTablesQuery(QueryParameters, total=False):
    """Query parameters of the search of tables by words of their ids."""

    text: Required[str]
    limit: EntryCount


class EventsQuery(QueryParameters, total=False):
    """Query parameters of the events of the catalog. `wait` is in seconds."""

    since: Annotated[int, BeforeValidator(_parse_integer), Field(ge=0, le=MAX_INT64)]
    limit: EntryCount
    wait: Annotated[int, BeforeValidator(_parse_integer), Field(ge=0, le=60)]


class AttemptsQuery(Pages, total=False):
    """Query parameters of the list of refused attempts. `object` is a path of names, as in a route."""

    principal: str
    object: str
    decision: Decision


class ListTablesQuery(Paging, total=False):
    """Query parameters of the lists of tables."""

    include_declared: Flag


class ListTableVersionsQuery(Paging, total=False):
    """Query parameters of the list of a table's versions."""

    branch: str
    descending: Flag


class ListFragmentsQuery(Paging, total=False):
    """Query parameters of the list of a table's fragments: of its newest version, or of another one."""

    version: Annotated[int, BeforeValidator(_parse_integer), Field(ge=0, le=MAX_INT64)]
    branch: str


class DescribeTableQuery(QueryParameters, total=False):
    """Query parameters of the description of a table."""

    with_table_uri: Flag
    load_detailed_metadata: Flag
    check_declared: Flag


class GrantsQuery(Pages, total=False):
    """Query parameters of the list of grants."""

    principal: str
    role: str
    object: str


class BranchQuery(QueryParameters, total=False):
    """Query parameters of changes whose body has no place for the branch."""

    branch: str


def _parse_texts(value: Any) -> Any:
    """An object of texts as JSON, as clients put it into a query."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        raise PydanticCustomError("dict_type", "an object") from None


Texts = Annotated[dict[StrictStr, StrictStr], BeforeValidator(_parse_texts)]


class CreateTableQuery(QueryParameters, total=False):
    """Query parameters of the creation of a table from rows."""

    mode: str
    properties: Texts
    storage_options: Texts


class StageRowsQuery(CreateTableQuery, total=False):
    """Query parameters of rows that are uploaded before their batch."""

    branch: str


class InsertQuery(QueryParameters, total=False):
    """Query parameters of an insert, or of a part of an upload."""

    mode: str
    branch: str
    upload_id: str
    upload_part_id: str


class AbortMultipartQuery(QueryParameters, total=False):
    """Query parameters of requests that give an upload up."""

    upload_id: Required[str]


class CompleteMultipartQuery(AbortMultipartQuery, total=False):
    """Those of requests that complete one."""

    branch: str


class StageMergeQuery(QueryParameters, total=False):
    """Query parameters of a merge that is uploaded before its batch."""

    branch: str
    on: Required[Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]]
    when_matched_update_all: Flag
    when_matched_update_all_filt: str
    when_not_matched_insert_all: Flag
    when_not_matched_by_source_delete: Flag
    when_not_matched_by_source_delete_filt: str
    use_index: Flag


class MergeInsertQuery(StageMergeQuery, total=False):
    """Query parameters of a merge."""

    timeout: str


class BlobQuery(QueryParameters, total=False):
    """Query parameters of a read of one blob: the version of its table, the newest without."""

    version: Annotated[int, BeforeValidator(_parse_integer), Field(ge=0, le=MAX_INT64)]
    branch: str
    tag: str


class FindBlobQuery(BlobQuery, total=False):
    """Those of a read of the blob of the row that matches a filter."""

    filter: Required[str]

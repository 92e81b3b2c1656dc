"""Rows of a table, at any of its versions: a grid, searches in it, and single values that can be seen or heard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import httpx

from namespace_client.blobs import WantedBlob
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import CommitRejected, InvalidCall, NotFound
from namespace_client.explanations import explain_error
from namespace_client.media_types import NEEDED, media_type
from namespace_client.names import Name
from namespace_client.routes import blob_path
from namespace_client.row_pages import MOST_ROWS, ROWS, RowPage, RowQuery, column_path, row_page
from namespace_client.table_overview import VersionOverview
from namespace_console.screens.tables import named
from namespace_console.visits import Content, Shown, Visit, missing
from table_data.batch_operations import TableId

VERSIONS: Final = 200
"""Versions among which one moves."""
MOST_BYTES: Final = 32 << 20
"""Bytes of a value of a column that has no blobs."""
_OF_THE_QUESTION: Final = frozenset({ErrorCode.INVALID_INPUT, ErrorCode.TABLE_COLUMN_NOT_FOUND})
"""What the catalog refuses by these is for the visitor to correct, in the form that asked for it."""
_LOOKED_AT: Final = 4
"""Columns of blobs whose first value is looked at."""


def show(visit: Visit) -> Shown:
    """A page of rows: four requests, and one more for each column of blobs, and for rows like another one."""
    table_id = named(visit)
    branch = visit.text("branch")
    versions, has_more = _versions(visit, table_id, branch)
    wanted = visit.number("version")
    version = _nearest(versions, wanted)
    query = RowQuery(
        filter=visit.text("filter"),
        order=visit.text("order"),
        descending=visit.query.get("descending") == "1",
        text=visit.text("text"),
        like=visit.number("like"),
        vector=visit.text("vector"),
        branch=branch,
        version=version,
        columns=tuple(name for each in (visit.text("columns") or "").split(",") if (name := each.strip())),
        after=visit.number("after") or 0,
        limit=visit.number("limit", MOST_ROWS) or ROWS,
    )
    rows, told, media = None, None, {}
    try:
        rows = row_page(visit.catalog.access, table_id, visit.version, query)
        media = _media(visit, table_id, rows)
    except (CommitRejected, InvalidCall) as error:
        if isinstance(error, CommitRejected) and error.code not in _OF_THE_QUESTION:
            raise
        told = explain_error(error)
    page = visit.page(
        "rows.html",
        f"Rows of {Name(table_id)}",
        table=Name(table_id),
        query=query,
        rows=rows,
        told=told,
        media=media,
        versions=versions,
        has_more_versions=has_more,
        shown_version=version if version is not None else (versions[0].version if versions else None),
    )
    return page if told is None else replace(page, status=400)


def _versions(visit: Visit, table_id: TableId, branch: str | None) -> tuple[list[VersionOverview], bool]:
    request = {"id": list(table_id), "descending": True, "limit": VERSIONS}
    request |= {} if branch is None else {"branch": branch}
    answer = visit.catalog.access.read("list_table_versions", request, at=visit.version)
    return [VersionOverview.of(row) for row in answer["versions"]], bool(answer.get("page_token"))


def _nearest(versions: list[VersionOverview], wanted: int | None) -> int | None:
    """The version that is meant: the newest up to a number, since not every number has one."""
    if wanted is None:
        return None
    return next((each.version for each in versions if each.version <= wanted), wanted)


def _media(visit: Visit, table_id: TableId, page: RowPage) -> dict[str, str]:
    """What the values of columns of blobs are, by the first one of each."""
    found: dict[str, str] = {}
    blobs = [(at, column.name) for at, column in enumerate(page.columns) if column.type == "blob"]
    for at, name in blobs[:_LOOKED_AT]:
        first = next((row.id for row in page.rows if row.cells[at].size), None)
        kind = None if first is None else media_type(_beginning(visit, table_id, name, first, page.query))
        if kind is not None:
            found[name] = kind
    return found


def _beginning(visit: Visit, table_id: TableId, column: str, row: int, query: RowQuery) -> bytes:
    given = {"branch": query.branch, "version": query.version}
    try:
        answer = visit.client.fetch(
            "GET",
            blob_path(table_id, column, row),
            headers={"Range": f"bytes=0-{NEEDED - 1}"},
            parameters={name: value for name, value in given.items() if value is not None},
            at=visit.version,
            accepted=(httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE,),
        )
    except (InvalidCall, NotFound):
        return b""
    return answer.content[:NEEDED] if answer.is_success else b""


def show_value(visit: Visit) -> Shown:
    """One value, if its bytes begin as an image, a sound or a film does: two requests, of a column of blobs three."""
    table_id, column = named(visit), visit.path["column"]
    row = visit.number("row")
    if row is None:
        raise InvalidCall("row: expected the id of a row, found none")
    name, branch, version = f"{column} of row {row}", visit.text("branch"), visit.number("version")
    if visit.query.get("blob") == "1":
        wanted = WantedBlob(table_id, column, row, branch=branch, version=version, at=visit.version)
        return _content(name, *_blob(visit, name, wanted))
    data = _value(visit, table_id, column, RowQuery(f"_rowid = {row}", branch=branch, version=version, limit=1))
    return _content(name, len(data), lambda first, length: data[first : first + length])


def _content(name: str, size: int, read: Callable[[int, int], bytes]) -> Content:
    kind = media_type(read(0, min(NEEDED, size)))
    if kind is None:
        raise InvalidCall(f"{name}: expected an image, a sound or a film, found bytes of another kind")
    return Content(name, kind, size, read)


def _blob(visit: Visit, name: str, wanted: WantedBlob) -> tuple[int, Callable[[int, int], bytes]]:
    from namespace_client.blobs import open_remote

    found = open_remote(visit.client, wanted)
    if found is None:
        raise missing(name)
    return found.size, found.read_range


def _value(visit: Visit, table_id: TableId, column: str, query: RowQuery) -> bytes:
    request = {"filter": query.filter, "k": 1, "columns": {"column_names": [column_path(column)]}}
    request |= {
        name: value for name, value in {"branch": query.branch, "version": query.version}.items() if value is not None
    }
    found = visit.catalog.access.query(table_id, request, at=visit.version, most=MOST_BYTES).read_all()
    value = found.column(0)[0].as_py() if found.num_rows else None
    if not isinstance(value, bytes):
        raise missing(f"bytes in {column}")
    return value

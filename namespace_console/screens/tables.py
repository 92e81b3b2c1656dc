"""Namespaces and tables: what is in them, and what the catalog tells of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from namespace_client.names import Name
from namespace_client.table_overview import ColumnOverview, fragment_page, table_overview
from namespace_console.visits import Shown, Visit
from table_data.batch_operations import DELIMITER, TableId

PAGE: Final = 100
"""Namespaces, and tables, of one page."""
COLUMNS: Final = 500
"""Columns of one page of a table."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Some columns of a table, and after how many of them those before and the next ones begin, None without any."""

    shown: Sequence[ColumnOverview]
    has_metadata: bool
    before: int | None
    next: int | None

    @classmethod
    def after(cls, count: int, columns: Sequence[ColumnOverview]) -> _Columns:
        shown, end = columns[count : count + COLUMNS], count + COLUMNS
        before = max(count - COLUMNS, 0) if count else None
        return cls(shown, any(each.metadata for each in shown), before, end if end < len(columns) else None)


def named(visit: Visit, parameter: str = "table") -> TableId:
    """The table or namespace that the path of a page names."""
    return tuple(visit.path[parameter].split(DELIMITER))


def show_table(visit: Visit) -> Shown:
    """A table: nine requests, and one for each namespace above it."""
    table_id = named(visit)
    branch, version = visit.text("branch"), visit.number("version")
    found = table_overview(visit.catalog.access, table_id, visit.version, at=visit.at, branch=branch, version=version)
    columns = _Columns.after(visit.number("columns_after") or 0, found.columns)
    return visit.page("table.html", f"Table {Name(table_id)}", table=found, columns=columns, wanted_version=version)


def show_fragments(visit: Visit) -> Shown:
    """The fragments of a version with their files: two requests."""
    table_id = named(visit)
    branch, version, after = visit.text("branch"), visit.number("version"), visit.text("after")
    page = fragment_page(visit.catalog.access, table_id, visit.version, branch=branch, version=version, after=after)
    return visit.page(
        "fragments.html", f"Fragments of {Name(table_id)}", table=Name(table_id), branch=branch, page_of=page
    )


def show_root(visit: Visit) -> Shown:
    """The namespaces and tables at the root: three requests, as many as there may be."""
    return _namespace(visit, ())


def show_namespace(visit: Visit) -> Shown:
    """The namespaces and tables in one: four requests, as many as there may be."""
    return _namespace(visit, named(visit, "namespace"))


def _namespace(visit: Visit, path: TableId) -> Shown:
    access, at = visit.catalog.access, visit.version
    properties: dict[str, str] = {}
    if path:
        properties = dict(access.read("describe_namespace", {"id": list(path)}, at=at).get("properties") or {})
    pages: dict[str, object] = {}
    for operation, field in (("list_namespaces", "namespaces"), ("list_tables", "tables")):
        after = visit.text(f"{field}_after")
        request = {"id": list(path), "limit": PAGE, **({} if after is None else {"page_token": after})}
        answer = access.read(operation, request, at=at)
        pages[field] = [Name((*path, name)) for name in answer.get(field) or ()]
        pages[f"more_{field}"] = answer.get("page_token")
    title = f"Namespace {Name(path)}" if path else "Namespaces"
    return visit.page("namespace.html", title, name=Name(path), properties=properties, **pages)

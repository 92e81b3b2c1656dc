"""Plans of queries as text, without the places of files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from table_data.queries import fusion
from table_data.queries.scans import scan_of

if TYPE_CHECKING:
    import lance

    from table_data.requests.table_requests import QueryTable

_URI = re.compile(r"\buri=[^\n]*?(?=, \w+=|$)", re.MULTILINE)


def plan_text(dataset: lance.LanceDataset, request: QueryTable, text: Callable[[lance.LanceScanner], str]) -> str:
    """The plan of a QueryTable request, as `text` gets it of a scanner; paths are left out.

    A query that takes several searches has the plan of each.
    """
    scan = scan_of(dataset, request)
    plan = fusion.plan_of(dataset, scan, text) if scan.is_fused else text(scan.scanner(dataset))
    return without_paths(plan, dataset.uri)


def without_paths(plan: str, uri: str) -> str:
    """The plan without the location of the table, in any of the forms that pylance writes it in."""
    split = urlsplit(uri)
    path = (split.path if split.scheme else uri).rstrip("/")
    forms = {uri.rstrip("/"), path, path.lstrip("/")}
    forms |= {unquote(form) for form in forms} | {quote(form) for form in forms}
    for form in sorted(filter(None, forms), key=len, reverse=True):
        plan = plan.replace(form, "(table)")
    return _URI.sub("uri=(table)", plan)

"""Requests about intents (rule G11), made into operations. Errors are those of `requests`."""

from __future__ import annotations

import re
from typing import Final

from lance_namespace.errors import InvalidInputError, UnsupportedOperationError

from namespace_server.directory.model import naming_rules
from namespace_server.directory.model.errors import shown
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import EndIntent, IntendedTable, RegisterIntent
from namespace_server.directory.model.request_fields import (
    Request,
    branch,
    check_known,
    integer,
    located,
    objects,
    table_id,
    text,
)
from namespace_server.directory.model.requests import RequestRules

_TABLE: Final = frozenset({"id", "branch", "location", "read_version"})
_SECONDS: Final = range(3_600, 30 * 86_400 + 1)
"""Seconds that an intent may be asked for."""
_DEFAULT_SECONDS: Final = 86_400


def register_intent(request: Request, rules: RequestRules) -> RegisterIntent:
    """Ours. `tables` are those that the job writes or reads; without `seconds` the intent is for a day."""
    items = objects(request, "tables")
    rules.limits.check_operations(len(items), "tables")
    tables: list[IntendedTable] = []
    for index, item in enumerate(items):
        try:
            tables.append(_intended_table(item, rules))
        except (InvalidInputError, UnsupportedOperationError) as error:
            raise located(f"tables[{index}]", error) from None
    seconds = integer(request, "seconds")
    if seconds is not None and seconds not in _SECONDS:
        raise InvalidInputError(f"seconds: expected a number from {_SECONDS[0]} to {_SECONDS[-1]}, found {seconds}")
    return RegisterIntent(_intent_id(request), tuple(tables), seconds or _DEFAULT_SECONDS, text(request, "reason"))


def _intended_table(request: Request, rules: RequestRules) -> IntendedTable:
    check_known(request, _TABLE, "table of an intent")
    target, given, version = table_id(request), text(request, "location"), integer(request, "read_version")
    location = None if given is None else rules.paths.location_key(given)
    if given is not None:
        if location is None:
            raise InvalidInputError(f"table {join(target)}: location {shown(given)} lies outside the catalog root")
        naming_rules.check_registered_location(location)
    if version is not None and version < 1:
        raise InvalidInputError(f"read_version: expected a table version, from 1 on, found {version}")
    return IntendedTable(target, branch(request), location, version or 0)


def end_intent(request: Request, _rules: RequestRules) -> EndIntent:
    """Ours."""
    return EndIntent(_intent_id(request))


def _intent_id(request: Request) -> str:
    given = text(request, "intent_id", required=True) or ""
    if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", given, re.ASCII) is None:
        raise InvalidInputError(f"intent_id: expected a UUID in lower case, found {shown(given)}")
    return given

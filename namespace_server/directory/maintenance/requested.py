"""A request for maintenance of one table, as it comes over the wire. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lance_namespace.errors import InvalidInputError

from namespace_server.directory.model import request_fields
from namespace_server.directory.model.errors import shown
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.request_fields import Request

OPERATION: Final = "maintain_table"
_SECONDS: Final = 30.0
_MOST_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True)
class RequestedMaintenance:
    """Maintenance of the main branch of a table that is asked for.

    Attributes:
        table_id: The table.
        dry_run: Whether it is only planned.
        forced: Whether the work is done though other writers have changed the table just now.
        seconds: Time after which no more work is begun.
    """

    table_id: ObjectId
    dry_run: bool = False
    forced: bool = False
    seconds: float = _SECONDS

    @classmethod
    def of(cls, request: Request) -> RequestedMaintenance:
        """What a request asks for. Raises InvalidInputError (13)."""
        request_fields.check_fields(OPERATION, request)
        return cls(
            request_fields.table_id(request),
            request_fields.flag(request, "dry_run"),
            request_fields.flag(request, "forced"),
            _seconds(request),
        )


def _seconds(request: Request) -> float:
    value = request.get("seconds")
    if value is None:
        return _SECONDS
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= _MOST_SECONDS:
        raise InvalidInputError(f"seconds: expected a number from 1 to {_MOST_SECONDS}, found {shown(value)}")
    return float(value)

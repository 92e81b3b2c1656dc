"""What came of a change that was to be handed to another server."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.responses import Response

from namespace_server.data.change_request import Caller
from namespace_server.rest.header_names import CATALOG_VERSION


@dataclass(frozen=True, slots=True)
class HandedOn:
    """What came of a change that was to be handed on. As given, nothing was.

    Attributes:
        caller: For whom it is to be committed here; a change that was handed on has a key of this caller.
        answer: That of the other server, if it decides the change.
        is_open: Whether another server may have the change, and commit it later.
        stays: Whether the other server takes no such changes of this client, so that asking again is of no use.
    """

    caller: Caller
    answer: Response | None = None
    is_open: bool = False
    stays: bool = False

    @property
    def catalog_version(self) -> int:
        """The catalog version that the answer tells; 0 if it tells none."""
        told = "" if self.answer is None else self.answer.headers.get(CATALOG_VERSION.decode(), "")
        return int(told) if re.fullmatch("[0-9]{1,18}", told) else 0

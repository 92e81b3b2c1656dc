"""The result of forwarding a change. Apart from `forwarding`, whose HTTP client few servers load."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.responses import Response

from namespace_server.data.change_request import Caller
from namespace_server.rest.header_names import CATALOG_VERSION


@dataclass(frozen=True, slots=True)
class ForwardingResult:
    """The result of forwarding a change. By default it was not forwarded.

    Attributes:
        caller: The caller for a commit here; a change that was forwarded has an idempotency key of this caller.
        answer: The answer of the other server, if it decides the change.
        may_still_commit: Whether another server may have the change, and commit it later.
        do_not_forward: Whether the other server refuses such changes of this client: another try is of no use.
    """

    caller: Caller
    answer: Response | None = None
    may_still_commit: bool = False
    do_not_forward: bool = False

    @property
    def catalog_version(self) -> int:
        """The catalog version in the answer; 0 if it has none."""
        stated = "" if self.answer is None else self.answer.headers.get(CATALOG_VERSION.decode(), "")
        return int(stated) if re.fullmatch("[0-9]{1,18}", stated) else 0

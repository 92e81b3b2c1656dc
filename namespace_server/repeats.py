"""Answer a request that came before, byte for byte, without taking it apart again.

Clients ask the same things in the same bytes. What such a request asks was found out when it came first; what is left
is to find out whether its answer still holds, and to send it. The way through the parser, ASGI and the endpoints takes
three times as long as that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

REPEAT: Final = "namespace_server.repeat"
"""The ASGI extension: a mapping with one entry, `REMEMBER`. An application that calls it with an `Again` while it
answers a request is asked that way when the same bytes come again, on any connection."""
REMEMBER: Final = "remember"

Header = tuple[bytes, bytes]
Again = Callable[[], tuple[Iterable[Header], bytes] | None]
"""Headers and body of a success, or None when the request must go the long way. It does not block, and is called in the
round of the event loop in which the request was read."""

_SUCCESS: Final = b"HTTP/1.1 200 OK\r\n"


class Repeats:
    """Requests by their bytes: at most `count` of them, none longer than `longest`."""

    def __init__(self, *, count: int = 8192, longest: int = 2048) -> None:
        self._count = count
        self._longest = longest
        self._known: dict[bytes, Again] = {}
        self._common: list[Header] = []
        self._head = _SUCCESS

    def remember(self, request: bytes, again: Again) -> None:
        """Answer a request by `again` from now on. When full, it begins anew."""
        if len(request) > self._longest:
            return
        if len(self._known) >= self._count:
            self._known.clear()
        self._known[request] = again

    def answer(self, request: bytes, common: list[Header]) -> tuple[bytes, bytes] | None:
        """Head and body of the answer to a request that came before; None when it has to go the long way.

        `common` are headers of every answer; a new list whenever one of them has changed.
        """
        again = self._known.get(request)
        if again is None:
            return None
        try:
            answer = again()
        except Exception:  # noqa: BLE001 - the long way meets it too, and tells the client
            return None
        if answer is None:
            return None
        if common is not self._common:
            self._common, self._head = common, _SUCCESS + _lines(common)
        headers, body = answer
        return self._head + _lines(headers) + b"\r\n", body


def _lines(headers: Iterable[Header]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])

"""A bound on the wrong keys that one address may try."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from math import ceil
from typing import Final

from lance_namespace.errors import ThrottlingError

_ADDRESSES: Final = 10_000
_PROVEN: Final = 10_000
_BURST_SECONDS: Final = 60.0
SHOWN_DIGITS: Final = 12


class TooManyWrongKeys(ThrottlingError):
    """No key of the address is looked at for `retry_after` seconds, since too many were wrong (429)."""

    def __init__(self, seconds: int, digest: bytes) -> None:
        super().__init__(
            "credentials: too many wrong keys came from this address, so the key was not looked at; nothing was done, "
            f"try again in {seconds} s"
        )
        self.retry_after = seconds
        self.key_digest = digest.hex()[:SHOWN_DIGITS]


class WrongKeys:
    """Counts wrong keys by address, and decides which addresses must wait.

    An address may try `per_minute` wrong keys at once, and again as they are forgotten, evenly over a minute. After
    that no key of it is looked at, right or wrong, so that nothing is learned of one; but a key that was right from
    there before goes on: other clients behind the same address are not locked out. IPv6 addresses count by their /64.
    Memory is bounded: the addresses that failed last are kept, and the keys that were used last. Belongs to one thread.

    Args:
        per_minute: wrong keys of one address; 0: no bound.
        clock: seconds that never go back.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._each = _BURST_SECONDS / per_minute if per_minute else 0.0
        self._free_at: OrderedDict[str, float] = OrderedDict()
        self._proven: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def wait(self, address: str | None, digest: bytes) -> int | None:
        """The seconds that an address must wait before this key is looked at; None if it is looked at now."""
        if not self._free_at or address is None:
            return None
        group = _group(address)
        free_at = self._free_at.get(group)
        if free_at is None or (group, digest) in self._proven:
            return None
        over = free_at - self._clock() - _BURST_SECONDS + self._each
        return max(1, ceil(over)) if over > 1e-6 else None

    def failed(self, address: str | None) -> None:
        """Note a wrong key of an address."""
        if address is None or not self._each:
            return
        group, now = _group(address), self._clock()
        self._free_at[group] = max(now, self._free_at.pop(group, now)) + self._each
        if len(self._free_at) > _ADDRESSES:
            self._free_at.popitem(last=False)

    def succeeded(self, address: str | None, digest: bytes) -> None:
        """Note a right key of an address."""
        if address is None or not self._each:
            return
        used = (_group(address), digest)
        self._proven[used] = None
        self._proven.move_to_end(used)
        if len(self._proven) > _PROVEN:
            self._proven.popitem(last=False)


@lru_cache(1024)
def _group(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if (four := parsed if parsed.version == 4 else parsed.ipv4_mapped) is not None:
        return str(four)
    return str(ipaddress.ip_network((parsed, 64), strict=False))

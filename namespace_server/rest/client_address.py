"""The address and the scheme of the client of a request: those of its connection, or what a trusted proxy says."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from starlette.types import Scope

_FORWARDED_FOR: Final = b"x-forwarded-for"
_FORWARDED: Final = b"forwarded"
_FORWARDED_PROTO: Final = b"x-forwarded-proto"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class ClientAddresses:
    """Reads `X-Forwarded-For` and `Forwarded` of requests that come from trusted proxies.

    Each proxy appends the address that it was called from. So the lists are read from the right: the client is the
    first address that is of no trusted proxy. Everything to the left of it is what the client says of itself. Where the
    two headers name different clients, one of them is the client's own: the address of the connection is taken.

    Args:
        proxies: addresses and networks of the proxies; none: no header is read.
    """

    def __init__(self, proxies: Iterable[str] = ()) -> None:
        self._proxies: tuple[Network, ...] = tuple(ipaddress.ip_network(proxy, strict=False) for proxy in proxies)

    def of(self, scope: Scope) -> str | None:
        """The address of the client, None if the connection has none."""
        connection = scope.get("client")
        if connection is None:
            return None
        address: str = connection[0]
        if not self._proxies or not self._is_trusted(address):
            return address
        named = {
            client
            for name, read in ((_FORWARDED_FOR, _read_list), (_FORWARDED, _read_forwarded))
            if (values := [value for header, value in scope["headers"] if header == name])
            and (client := self._client(address, read(b",".join(values).decode("latin-1"))))
        }
        return named.pop() if len(named) == 1 else address

    def scheme_of(self, scope: Scope) -> str:
        """`http` or `https`: by which of them the client called the first proxy, or this server.

        That of the connection, unless a trusted proxy names the other one, and no header contradicts it.
        """
        own: str = scope["scheme"]
        connection = scope.get("client")
        if not self._proxies or connection is None or not self._is_trusted(connection[0]):
            return own
        named = {
            scheme.strip().strip('"').lower()
            for name, read in ((_FORWARDED_PROTO, _read_list), (_FORWARDED, _read_schemes))
            for header, value in scope["headers"]
            if header == name
            for scheme in read(value.decode("latin-1"))
        }
        return named.pop() if len(named) == 1 and named <= {"http", "https"} else own

    def _client(self, proxy: str, listed: list[str]) -> str:
        """The client in a list, searched from its right end; an unreadable item ends the search at the proxy before."""
        found = proxy
        for item in reversed(listed):
            address = _parse(item)
            if address is None:
                return found
            found = address
            if not self._is_trusted(address):
                return address
        return found

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = getattr(parsed, "ipv4_mapped", None)
        return any((mapped or parsed) in network for network in self._proxies)


def _read_list(value: str) -> list[str]:
    return value.split(",")


def _read_forwarded(value: str) -> list[str]:
    """The `for` of each element (RFC 7239); an element without one cannot be read."""
    return [
        next((found.strip() for name, _, found in map(_pair, element.split(";")) if name == "for"), "")
        for element in value.split(",")
    ]


def _read_schemes(value: str) -> list[str]:
    """The `proto` of the elements that have one."""
    pairs = (_pair(text) for element in value.split(",") for text in element.split(";"))
    return [found for name, _, found in pairs if name == "proto"]


def _pair(text: str) -> tuple[str, str, str]:
    name, separator, value = text.partition("=")
    return name.strip().lower(), separator, value


def _parse(item: str) -> str | None:
    """The address in an item, without quotes, brackets and port."""
    text = item.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None

"""Connections to the receiver of a webhook, to addresses that are checked when they are connected to.

The name is resolved for each connection, and the address that was checked is the one that is connected to. So a name
that is resolved to another address later (DNS rebinding) is checked as well. Redirects are not followed, and proxies
of the environment are not used.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpcore

from namespace_server.cli.command import refusal

Resolve = Callable[[str, int], Sequence[str]]
"""The IP addresses of a host and a port. Raises `OSError`."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All IPv6 addresses of the public internet. Others lead to hosts by rules of the own network, such as a NAT64 of its
own (64:ff9b:1::/48), site-local addresses, or IPv4 addresses in old forms."""
_SPECIAL: Final = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))
"""Addresses of protocols, some of them with services of clouds, which `is_global` takes for public ones."""
_LONGEST_ANSWER: Final = 1 << 16
_PORTS: Final = {"https": 443, "http": 80}


class ForbiddenAddress(Exception):
    """The receiver has an address that is not of the public internet."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a receiver: its status, and after how many seconds it wants the next try, if it says so."""

    status: int
    retry_after: float | None = None


class Receiver:
    """One receiver. Not thread-safe. Close it.

    Args:
        url: Its URL, https:// unless private addresses are allowed.
        allow_private: Whether its addresses may be private, of this machine or of its link.
        ca: PEM file of the authorities that may have signed its certificate, in place of those of the system.
        timeout: Seconds for each step of a request.
        resolve: Finds the addresses of a host.
    """

    def __init__(
        self,
        url: str,
        *,
        allow_private: bool = False,
        ca: Path | None = None,
        timeout: float = 30.0,
        resolve: Resolve | None = None,
    ) -> None:
        self.url = _checked(url, allow_private=allow_private)
        self._timeout = dict.fromkeys(("connect", "read", "write", "pool"), timeout)
        backend = _CheckedConnections(_resolve if resolve is None else resolve, allow_private=allow_private)
        self._pool = httpcore.ConnectionPool(ssl_context=_trust(ca), network_backend=backend, max_connections=1)

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send a message once. Raises `ForbiddenAddress`; `OSError`, `httpcore` errors without an answer."""
        sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        with self._pool.stream(
            "POST", self.url, headers=sent, content=body, extensions={"timeout": self._timeout}
        ) as answer:
            taken, until = 0, time.monotonic() + self._timeout["read"]
            for chunk in answer.iter_stream():  # to its end, so that the connection can be used again
                taken += len(chunk)
                if taken > _LONGEST_ANSWER or time.monotonic() > until:
                    break
            return Reply(answer.status, _seconds(dict(answer.headers)))

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()


class _CheckedConnections(httpcore.NetworkBackend):
    """Connects to addresses that are checked."""

    def __init__(self, resolve: Resolve, *, allow_private: bool) -> None:
        self._resolve = resolve
        self._allow_private = allow_private
        self._sync = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of the host that answers, if all of them are allowed."""
        try:
            addresses = self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"{host}: {error.strerror or error}") from error
        if not self._allow_private:
            for address in addresses:
                _require_public(host, address)
        failed: Exception = httpcore.ConnectError(f"{host}: it has no address")
        for address in addresses:
            try:
                return self._sync.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed


def _require_public(host: str, text: str) -> None:
    """Raise `ForbiddenAddress` for an address that is private, of this machine, of its link, or of no host."""
    address = ipaddress.ip_address(text.partition("%")[0])
    embedded = _embedded(address)
    leads_to_ipv4 = isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address in _NAT64)
    checked = embedded if leads_to_ipv4 else [address, *embedded]
    if not all(_is_public(each) for each in checked):
        raise ForbiddenAddress(
            f"{host} has the address {text}: expected one of the public internet; --allow-private allows others"
        )


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        is_ordinary = not any(address in network for network in _SPECIAL)
    else:
        is_ordinary = address in _UNICAST
    return is_ordinary and address.is_global and not address.is_multicast


def _embedded(address: Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses in an IPv6 address that a gateway would connect to."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in found if each is not None]


def _resolve(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def _checked(url: str, *, allow_private: bool) -> str:
    """The URL. Raises what `refusal` gives for one that is none of a webhook."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise refusal("URL: expected ASCII without spaces and control characters; others are percent-encoded")
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:  # UnicodeError too, of a host with an empty or a long part
        raise refusal("URL: expected https://host/path, found a text that is no URL") from None
    if not parts.hostname or not has_port or parts.scheme not in _PORTS or parts.fragment:
        raise refusal(f"URL: expected https://host/path, found one of {parts.scheme or 'no scheme'}")
    if parts.username is not None or parts.password is not None:
        raise refusal("URL: expected none with a user or a password: messages are signed by the secret")
    if parts.scheme == "http" and not allow_private:
        raise refusal("URL: expected https://: http:// goes with --allow-private")
    return url


def _trust(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:  # ssl.SSLError too
        raise refusal(f"--ca {ca}: expected a PEM file of certificates: {error.strerror or error}") from error


def _seconds(headers: Mapping[bytes, bytes]) -> float | None:
    found = {name.lower(): value for name, value in headers.items()}.get(b"retry-after", b"").strip()
    return float(found) if found.isdigit() and len(found) < 6 else None

"""Which addresses are of this machine, and which URLs others on the network cannot read or answer. Pure.

Nothing is looked up: a name server may say anything of a name.
"""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether a host, in lower case and without brackets, is this machine for every program: what is sent stays here.

    So of names it is `localhost` alone: others below it are asked of name servers by some resolvers.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback and (address.version == 4 or address.ipv4_mapped is None)


def may_be_loopback(host: str) -> bool:
    """Whether a host can be this machine for some program, whichever machine that runs on; all of `is_loopback` are.

    Beside those: names below `localhost`, unspecified addresses, to which Linux connects as to loopback, IPv4 in
    IPv6, and the short forms of IPv4 that resolvers read (`127.1`).
    """
    name = host.removesuffix(".")
    if is_loopback(name) or name.endswith(".localhost"):
        return True
    with suppress(ValueError):
        address = ipaddress.ip_address(name)
        if address.version == 6 and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return address.is_loopback or address.is_unspecified
    with suppress(OSError, ValueError):
        return may_be_loopback(socket.inet_ntoa(socket.inet_aton(name)))
    return False


def is_secure(url: str) -> bool:
    """Whether what is sent to a URL is read, and what it answers is written, only there: TLS, or this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))

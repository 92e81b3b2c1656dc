"""The address of this machine for others."""

from __future__ import annotations

import socket
from contextlib import closing
from ipaddress import ip_address

_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of documentation, to which nothing is sent: the way to them begins where the way to others does."""


def url_of(host: str, port: int) -> str | None:
    """The URL of a server that listens without TLS; on all addresses: by the one that others are reached from.

    None if there is no such address.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return f"http://{host}:{port}"
    if address.is_unspecified:
        found = _own_address(socket.AF_INET if address.version == 4 else socket.AF_INET6)
        if found is None:
            return None
        address = ip_address(found)
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"


def _own_address(family: socket.AddressFamily) -> str | None:
    try:
        with closing(socket.socket(family, socket.SOCK_DGRAM)) as probe:
            probe.connect((_ELSEWHERE[family], 9))
            address: str = probe.getsockname()[0]
    except OSError:
        return None
    return address.partition("%")[0]

"""Where a request came from, and how one server tells another of it with a change that it hands over."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import orjson
from starlette.types import Scope

from namespace_server.attempts import LONGEST_USER_AGENT, RequestOrigin
from namespace_server.directory.manifest_table.peer_secret import PeerSecret

_USER_AGENT: Final = b"user-agent"


def origin_of(scope: Scope) -> RequestOrigin:
    """Where a request came from, as the outermost layer has left it in the scope.

    Of a change that another server handed over, with a proof of the common secret, it is what that server says.
    """
    handed: RequestOrigin | None = scope.get("handed_origin")
    if handed is not None:
        return handed
    agent: bytes | None = scope["header_map"].get(_USER_AGENT)
    shown = None if agent is None else agent[:LONGEST_USER_AGENT].decode("latin-1")
    return RequestOrigin(scope["client_address"], shown, scope["request_id"])


def write_origin(origin: RequestOrigin, secret: PeerSecret, instance: str) -> str:
    """The header that tells the process `instance` where a change came from, with a proof of the secret."""
    text = base64.urlsafe_b64encode(orjson.dumps(origin.as_json())).decode()
    return f"{text}.{secret.origin_proof(instance, text)}"


def read_origin(header: bytes, secret: PeerSecret, instance: str) -> RequestOrigin | None:
    """What such a header tells this process; None without a proof: anybody can send a header."""
    text, _, proof = header.decode("latin-1").partition(".")
    if not secret.is_origin_proof(proof, instance, text):
        return None
    try:
        found = orjson.loads(base64.urlsafe_b64decode(text))
        return RequestOrigin(found.get("client"), found.get("user_agent"), found["request_id"])
    except (binascii.Error, orjson.JSONDecodeError, AttributeError, KeyError):
        return None

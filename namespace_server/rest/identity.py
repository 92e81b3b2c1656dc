"""Who is asking: static API keys, in `x-api-key` or as a bearer token."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from lance_namespace.errors import UnauthenticatedError

_HASHED = "sha256:"


class Authenticator:
    """Principals by API key. Without any key everybody is let in, as nobody in particular.

    `keys` maps a key to the name of its principal. A key stands there in plain, or as `sha256:` and the hex digest of
    its UTF-8 bytes. Only digests are held. Raises `ValueError` for a digest that is none.
    """

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._principals = [(_digest(key), principal) for key, principal in keys.items()]

    @property
    def required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._principals)

    def principal(self, headers: Mapping[bytes, bytes]) -> str | None:
        """The principal of a request with these (lower-case) headers.

        `x-api-key` goes first: stock clients that are given both send both. Raises `UnauthenticatedError` (16) if the
        key is missing or unknown.
        """
        if not self._principals:
            return None
        presented = headers.get(b"x-api-key")
        if presented is None:
            scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not token:
                raise UnauthenticatedError("credentials: expected x-api-key or Authorization: Bearer, found neither")
            presented = token.strip()
        digest = hashlib.sha256(presented).digest()
        # Every key is compared, in constant time each: how long it takes tells nothing about which one came close.
        found = [principal for known, principal in self._principals if hmac.compare_digest(known, digest)]
        if not found:
            raise UnauthenticatedError("credentials: the key is not known")
        return found[0]


def _digest(key: str) -> bytes:
    if not key.startswith(_HASHED):
        return hashlib.sha256(key.encode()).digest()
    digest = bytes.fromhex(key.removeprefix(_HASHED))
    if len(digest) != hashlib.sha256().digest_size:
        raise ValueError(f"api key sha256:…: expected {hashlib.sha256().digest_size} bytes in hex, found {len(digest)}")
    return digest

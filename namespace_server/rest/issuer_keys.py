"""The keys that an issuer of tokens publishes: found by discovery at its configured URL, kept, and read again.

Nothing that a token says decides which address is asked: a key that is unknown leads to one more look at the keys of
the configured issuer, once in some seconds at most, which all requests that need it share.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, Final

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, KeySet, RSAKey

from lance_core.amounts import counted
from lance_core.own_machine import is_secure
from namespace_server.rest.principals import TokenIssuer, TokenNotJudged

_FRESH: Final = 300.0
"""Seconds after which keys are read again, beside the requests."""
_USABLE: Final = 3600.0
"""Seconds for which keys are used while the issuer does not answer. Most of its tokens have expired then."""
_PAUSE: Final = 5.0
"""Seconds between two looks at least."""
_PATIENCE: Final = 5.0
"""Seconds that a look may take."""
_MAX_ANSWER: Final = 512 << 10
_MAX_KEYS: Final = 100
_PLAIN_JSON: Final = {"accept": "application/json", "accept-encoding": "identity"}
_DISCOVERY: Final = "/.well-known/openid-configuration"
_KINDS: Final[Mapping[str, type[RSAKey | ECKey]]] = {"RSA": RSAKey, "EC": ECKey}

_log = logging.getLogger(__name__)


class IssuerKeys:
    """The keys of one issuer. Belongs to one event loop, which it never blocks."""

    def __init__(self, issuer: TokenIssuer, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._clock = clock
        self._tls = ssl.create_default_context(cafile=issuer.ca)
        self._published = b""
        self._keys: KeySet | None = None
        self._read_at = 0.0
        self._next_look = 0.0
        self._failed = False
        self._look: asyncio.Task[None] | None = None

    def current(self) -> KeySet | None:
        """The keys that tokens are checked with; None if there are none, or none that are new enough.

        The same object as long as the issuer publishes the same keys. Keys that are no longer fresh are read again
        meanwhile.
        """
        if self._keys is None:
            return None
        age = self._clock() - self._read_at
        if age > _FRESH and self._may_look():
            self.begin()
        return self._keys if age <= _USABLE else None

    def can_change(self) -> bool:
        """Whether a look at the keys may find others now. False just after one.

        Raises `TokenNotJudged` if the issuer did not answer just now.
        """
        if self._look is not None or self._may_look():
            return True
        if self._failed:
            raise self._not_judged()
        return False

    async def look(self) -> None:
        """Read the keys again, or wait for the look that is under way.

        Raises `TokenNotJudged` if the issuer does not answer, or did not just now.
        """
        if self._look is None and not self._may_look():
            if self._failed:
                raise self._not_judged()
            return
        await asyncio.shield(self.begin())
        if self._failed:
            raise self._not_judged()

    def _may_look(self) -> bool:
        return self._clock() >= self._next_look

    def _not_judged(self) -> TokenNotJudged:
        return TokenNotJudged(max(1, ceil(self._next_look - self._clock())))

    def begin(self) -> asyncio.Task[None]:
        """The look that is under way; one begins if there is none."""
        if self._look is None:
            self._look = asyncio.create_task(self._read())
        return self._look

    async def _read(self) -> None:
        """Read the keys; what goes wrong is logged."""
        url = self._issuer.issuer
        try:
            async with asyncio.timeout(_PATIENCE):
                published = await self._ask()
                if published != self._published:
                    self._keys = await asyncio.to_thread(_parse, published)
                    self._published = published
                    _log.info("issuer %s: %s", url, counted(len(self._keys.keys), "key"))
            self._read_at, self._failed = self._clock(), False
        except Exception as error:  # noqa: BLE001 - whatever the issuer answers: its tokens are answered 503 then
            self._failed = True
            _log.warning("issuer %s: its keys cannot be read: %s", url, str(error) or type(error).__name__)
        finally:
            self._look, self._next_look = None, self._clock() + _PAUSE

    async def _ask(self) -> bytes:
        """The key set as the issuer publishes it. Raises `ValueError` and what httpx raises."""
        async with httpx.AsyncClient(verify=self._tls, follow_redirects=False, timeout=_PATIENCE) as client:
            place = self._issuer.issuer.rstrip("/") + _DISCOVERY
            found = _object(await _get(client, place), place)
            if found.get("issuer") != self._issuer.issuer:
                raise ValueError(f"{place}: expected the issuer {self._issuer.issuer}, found {found.get('issuer')!r}")
            keys = found.get("jwks_uri")
            if not isinstance(keys, str) or not is_secure(keys):
                raise ValueError(f"{place}: jwks_uri: expected an https URL, found {keys!r}")
            return await _get(client, keys)


async def _get(client: httpx.AsyncClient, url: str) -> bytes:
    async with client.stream("GET", url, headers=_PLAIN_JSON) as answer:
        if answer.status_code != httpx.codes.OK:
            raise ValueError(f"{url}: expected status 200, found {answer.status_code}")
        found = bytearray()
        async for piece in answer.aiter_bytes():
            found += piece
            if len(found) > _MAX_ANSWER:
                raise ValueError(f"{url}: expected at most {_MAX_ANSWER} bytes")
        return bytes(found)


def _object(data: bytes, url: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError(f"{url}: expected JSON") from None
    if not isinstance(found, dict):
        raise ValueError(f"{url}: expected a JSON object, found {type(found).__name__}")
    return found


def _parse(published: bytes) -> KeySet:
    """The keys of a set that check signatures. Those of other kinds, and secret ones, are passed over."""
    listed = _object(published, "the key set").get("keys")
    if not isinstance(listed, list) or len(listed) > _MAX_KEYS:
        raise ValueError(f"the key set: expected at most {_MAX_KEYS} keys in a list")
    found: list[Key] = []
    for each in listed:
        kind = _KINDS.get(str(each.get("kty"))) if isinstance(each, dict) else None
        if kind is None or each.get("use", "sig") != "sig":
            continue
        try:
            found.append(kind.import_key(each))
        except (JoseError, ValueError, TypeError, KeyError) as error:
            _log.warning("key %r of an issuer cannot be used: %s", each.get("kid"), error)
    if not found:
        raise ValueError("the key set: expected an RSA or EC key for signatures, found none")
    return KeySet(found)

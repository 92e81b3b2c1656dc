"""Bearer tokens of OpenID Connect: signed JSON Web Tokens, which joserfc checks with the keys of their issuers."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from joserfc.errors import ExpiredTokenError, InvalidClaimError, InvalidKeyIdError, JoseError, UnsupportedAlgorithmError
from joserfc.jwk import KeySet
from joserfc.jws import CompactSignature, JWSRegistry, extract_compact, validate_compact
from joserfc.jwt import JWTClaimsRegistry

from namespace_server.rest.issuer_keys import IssuerKeys
from namespace_server.rest.principals import KeysNeeded, Refusal, RequestIdentity, TokenIssuer, TokenRefused

MAX_TOKEN: Final = 16 << 10
"""Bytes of the longest token."""
_KEPT: Final = 10_000
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""Types of tokens that say who a caller is. Others, such as logout+jwt, are signed with the same keys."""
_EXTENSIONS: Final = frozenset({"crit", "b64"})
_MALFORMED: Final = (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)
"""What a token of any bytes makes the library raise."""
_LAST: Final = 253_402_300_799
"""The end of the year 9999, in seconds since the epoch."""


class _Registry(JWSRegistry):
    """Headers of tokens may hold certificates, and members of the issuer's own; nothing goes by them."""

    max_header_length = MAX_TOKEN


@dataclass(frozen=True, slots=True)
class _Issuer:
    """An issuer, its keys, and what joserfc takes of its rules."""

    rules: TokenIssuer
    keys: IssuerKeys
    now: Callable[[], float]
    algorithms: JWSRegistry = field(init=False)
    claims: JWTClaimsRegistry = field(init=False)

    def __post_init__(self) -> None:
        registry = _Registry(algorithms=self.rules.algorithms, strict_check_header=False)
        object.__setattr__(self, "algorithms", registry)
        claims = JWTClaimsRegistry(
            now=lambda: int(self.now()),
            leeway=self.rules.clock_skew,
            iss={"essential": True, "value": self.rules.issuer},
            aud={"essential": True, "values": list(self.rules.audience)},
            exp={"essential": True},
        )
        object.__setattr__(self, "claims", claims)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A token that was valid: whose it is, until when, and the keys that it was checked with."""

    identity: RequestIdentity
    until: float
    issuer: _Issuer
    keys: KeySet


class AccessTokens:
    """Judges the tokens of some issuers. Belongs to one event loop.

    A token that was found valid is kept by its digest until it expires, or the keys of its issuer change: the next
    requests with it cost a look-up. Of 10,000 tokens the one that was used longest ago is forgotten first.

    Args:
        issuers: those whose tokens are accepted; see `check_issuers`.
        now: seconds since the epoch.
        keys_of: where the keys of an issuer are from.

    Raises:
        OSError: the authorities of an issuer cannot be read.
    """

    def __init__(
        self,
        issuers: Sequence[TokenIssuer],
        now: Callable[[], float] = time.time,
        keys_of: Callable[[TokenIssuer], IssuerKeys] = IssuerKeys,
    ) -> None:
        self._issuers = {each.issuer: _Issuer(each, keys_of(each), now) for each in issuers}
        self._now = now
        self._judged: OrderedDict[bytes, _Judged] = OrderedDict()

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the names of all principals of these issuers begin with."""
        return tuple(each.rules.prefix for each in self._issuers.values())

    def begin(self) -> None:
        """Begin to read the keys of all issuers, on the running event loop."""
        for each in self._issuers.values():
            each.keys.begin()

    def judge(self, token: bytes, digest: bytes) -> RequestIdentity:
        """Whose token this is. `digest` is the SHA-256 digest of it.

        Raises:
            TokenRefused: it is not valid.
            KeysNeeded: the keys of its issuer must be read first.
            TokenNotJudged: they cannot be read for now.
        """
        known = self._judged.get(digest)
        if known is not None and known.issuer.keys.current() is known.keys:
            if self._now() >= known.until:
                raise TokenRefused("expired", digest)
            self._judged.move_to_end(digest)
            return known.identity
        if len(token) > MAX_TOKEN:
            raise TokenRefused("size", digest)
        signature, issuer = self._read(token, digest)
        keys = issuer.keys.current()
        if keys is None:
            if issuer.keys.can_change():
                raise KeysNeeded(issuer.keys.look)
            raise TokenRefused("key", digest)
        found = self._checked(signature, issuer, keys, digest)
        self._judged[digest] = found
        self._judged.move_to_end(digest)
        if len(self._judged) > _KEPT:
            self._judged.popitem(last=False)
        return found.identity

    def _read(self, token: bytes, digest: bytes) -> tuple[CompactSignature, _Issuer]:
        """The parts of a token, of which nothing is checked yet, and the configured issuer that it names."""
        try:
            signature = extract_compact(token, registry=_ANY)
            named = json.loads(signature.payload)["iss"]
            header = signature.headers()
            kind = header.get("typ", "jwt").lower()
        except _MALFORMED as error:
            raise TokenRefused("form", digest) from error
        issuer = self._issuers.get(named) if isinstance(named, str) else None
        if issuer is None:
            raise TokenRefused("issuer", digest)
        if kind not in _TYPES:
            raise TokenRefused("type", digest)
        if not _EXTENSIONS.isdisjoint(header):
            raise TokenRefused("form", digest)
        return signature, issuer

    def _checked(self, signature: CompactSignature, issuer: _Issuer, keys: KeySet, digest: bytes) -> _Judged:
        try:
            if not validate_compact(signature, keys, registry=issuer.algorithms):
                raise TokenRefused("signature", digest)
            claims: dict[str, Any] = json.loads(signature.payload)
            issuer.claims.validate(claims)
        except InvalidKeyIdError as error:
            if issuer.keys.can_change():
                raise KeysNeeded(issuer.keys.look) from error
            raise TokenRefused("key", digest) from error
        except _MALFORMED as error:
            raise TokenRefused(_reason(error), digest) from error
        principal, roles = issuer.rules.principal(claims), issuer.rules.roles(claims)
        if principal is None:
            raise TokenRefused("principal", digest)
        if roles is None:
            raise TokenRefused("roles", digest)
        expires = int(claims["exp"])
        if expires > _LAST:
            raise TokenRefused("claims", digest)
        identity = RequestIdentity(principal, "token", issuer.rules.issuer, roles, expires)
        return _Judged(identity, expires + issuer.rules.clock_skew, issuer, keys)


_ANY: Final = _Registry(strict_check_header=False)


def _reason(error: Exception) -> Refusal:
    match error:
        case UnsupportedAlgorithmError():
            return "algorithm"
        case ExpiredTokenError():
            return "expired"
        case InvalidClaimError():
            if error.claim == "aud":
                return "audience"
            return "not yet valid" if error.claim in {"nbf", "iat"} else "claims"
        case JoseError():
            return "claims" if "claim" in error.error else "key"
    return "form"

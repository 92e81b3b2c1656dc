"""Sign-in: the visitor's credential in a cookie, and tokens that tell forms of this console from forged ones.

There is no state on the server: any server of a root that knows the credential serves its session. Cookies of one host
are shared by its ports, so that their names hold the port.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import quote, unquote, urlsplit

Means = Literal["key", "token"]

MOST: Final = 3_800
"""Bytes of the credential and its principal in a cookie: browsers keep 4,096 with its name and attributes."""
_MEANS: Final[Mapping[str, Means]] = {"key": "key", "token": "token"}
_NONCE: Final = 32


@dataclass(frozen=True, slots=True)
class Session:
    """What the cookies of a visitor say.

    Attributes:
        nonce: Random text of this browser that no page shows, empty if it has none yet.
        means: What the credential is, None where the visitor has not signed in.
        credential: API key or bearer token.
        principal: The name that the server gave at sign-in. It is shown, and decides nothing.
    """

    nonce: str = field(default="", repr=False)
    means: Means | None = None
    credential: str = field(default="", repr=False)
    principal: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of requests of this visitor."""
        match self.means:
            case "key":
                return {"x-api-key": self.credential}
            case "token":
                return {"authorization": f"Bearer {self.credential}"}
        return {}

    @property
    def token(self) -> str:
        """What a form of this session holds."""
        return hmac.new(self.nonce.encode(), f"form {self.credential}".encode(), hashlib.sha256).hexdigest()

    def is_of_form(self, given: str) -> bool:
        """Whether a form was made for this session."""
        return bool(self.nonce) and hmac.compare_digest(self.token.encode(), given.encode())


@dataclass(frozen=True, slots=True)
class Cookies:
    """The cookies of a console under one address; `secure` if browsers reach it by TLS."""

    secure: bool
    port: int | None

    @classmethod
    def at(cls, scheme: str, host: str) -> Cookies:
        """The cookies under a scheme and a `Host`."""
        try:
            port = urlsplit(f"//{host}").port
        except ValueError:
            port = None
        return cls(scheme == "https", port)

    def _name(self, what: str) -> str:
        prefix = "__Secure-" if self.secure else ""
        return f"{prefix}lance-console-{what}" + ("" if self.port is None else f"-{self.port}")

    def read(self, header: str) -> Session:
        """The session that a `Cookie` header tells; what is not ours, or not whole, counts as absent."""
        pairs = (pair.strip().partition("=") for pair in header.split(";"))
        given = {name: value for name, _, value in pairs}
        parts = [unquote(part) for part in given.get(self._name("session"), "").split(":")]
        nonce = given.get(self._name("form"), "")
        nonce = nonce if len(nonce) == 2 * _NONCE and nonce.isalnum() else ""
        if len(parts) == len(("means", "credential", "principal")) and parts[0] in _MEANS and is_sendable(parts[1]):
            return Session(nonce, _MEANS[parts[0]], parts[1], parts[2])
        return Session(nonce)

    def nonce(self) -> tuple[str, str]:
        """A new random text, and the header that gives it to the browser."""
        made = secrets.token_hex(_NONCE)
        return made, self._set("form", made)

    def session(self, session: Session) -> str:
        """The header that gives the browser a session. Raises `ValueError` for a credential that is too long."""
        parts = (session.means or "", session.credential, session.principal)
        value = ":".join(quote(part, safe="") for part in parts)
        if len(value) > MOST:
            raise ValueError(f"expected at most {MOST:,} bytes, which browsers keep, found {len(value):,}")
        return self._set("session", value)

    def ended(self) -> str:
        """The header that removes the session."""
        return self._set("session", "") + "; Max-Age=0"

    def _set(self, what: str, value: str) -> str:
        secure = "; Secure" if self.secure else ""
        return f"{self._name(what)}={value}; Path=/console; HttpOnly; SameSite=Strict{secure}"


def is_sendable(credential: str) -> bool:
    """Whether it can be the value of a header."""
    return bool(credential) and credential.isascii() and credential.isprintable() and credential == credential.strip()

"""Who requests are from: identities, the issuers whose tokens tell them, and refusals of tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from lance_namespace.errors import ServiceUnavailableError, UnauthenticatedError
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, FilePath

from lance_core.own_machine import is_secure
from namespace_server.access.subjects import Subject, is_name
from namespace_server.outcomes import NOTHING_DONE
from namespace_server.rest.wrong_keys import SHOWN_DIGITS

MAX_PRINCIPAL_LENGTH: Final = 255
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
Refusal = Literal[
    "algorithm", "audience", "claims", "expired", "form", "issuer", "key", "not yet valid", "principal", "roles",
    "signature", "size", "type",
]  # fmt: skip
"""What a token was refused for, as the log and the metrics say it."""


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """The caller of a request, and how that was found out.

    Attributes:
        principal: Its name, of 1 to 255 printable characters.
        means: What it has shown.
        issuer: The issuer of its token; None for an API key.
        roles: What its token says of its roles.
        expires_at: When its token expires, in seconds since the epoch; None for an API key.
        subject: The caller as grants are judged for it.
    """

    principal: str
    means: Literal["api_key", "token"] = "api_key"
    issuer: str | None = None
    roles: frozenset[str] = frozenset()
    expires_at: int | None = None
    subject: Subject = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the subject once: an identity is kept, and is that of many requests."""
        object.__setattr__(self, "subject", Subject(self.principal, self.roles))


class TokenRefused(UnauthenticatedError):
    """A token is not valid (401). The client is not told why; the log is, by `reason`.

    `is_try` says whether it counts as a wrong key of its address. One that was right until it expired does not.
    """

    def __init__(self, reason: Refusal, digest: bytes) -> None:
        super().__init__("credentials: the token is not valid")
        self.reason: Refusal = reason
        self.is_try = reason != "expired"
        self.key_digest = digest.hex()[:SHOWN_DIGITS]


class TokenNotJudged(ServiceUnavailableError):
    """Whether a token is valid cannot be found out for now, since the keys of its issuer cannot be read (503)."""

    outcome = NOTHING_DONE

    def __init__(self, retry_after: int) -> None:
        super().__init__(
            "credentials: the token cannot be checked, since the keys of its issuer cannot be read for now; nothing "
            f"was done, try again in {retry_after} s"
        )
        self.retry_after = retry_after


class KeysNeeded(Exception):
    """A token can be judged after `look`, which reads the keys of its issuer again. Raises `TokenNotJudged`."""

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        super().__init__("the keys of an issuer are to be read first")
        self.look = look


def _check_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"https", "http"} or not parts.hostname or parts.query or parts.fragment or "@" in url:
        raise ValueError(f"{url!r}: expected https://host or https://host/path")
    if not is_secure(url):
        raise ValueError(f"{url!r}: expected https; http is for addresses of this machine")
    return url


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _check_printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("expected printable characters without spaces at the ends")
    return text


_Word = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_printable)]
_Words = Annotated[tuple[_Word, ...], BeforeValidator(_one_or_more)]


class TokenIssuer(BaseModel):
    """An issuer of OpenID Connect whose tokens are accepted, as the settings describe it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    issuer: Annotated[_Word, AfterValidator(_check_url)]
    """Its URL, as `iss` of its tokens has it."""
    audience: Annotated[_Words, Field(min_length=1)]
    """A token must be for one of these."""
    algorithms: Annotated[tuple[Algorithm, ...], BeforeValidator(_one_or_more), Field(min_length=1)] = (
        "RS256",
        "ES256",
    )
    principal_claim: _Word = "sub"
    principal_prefix: _Word | None = None
    """What names of its principals begin with; None: the issuer and `#`."""
    roles_claim: _Words = ()
    """The claim that holds the roles, or the path of claims to it; none: roles are not read."""
    role_prefix: Annotated[str, Field(max_length=200), AfterValidator(_check_printable)] = ""
    """What is put before the names of its roles, so that they are not those of another issuer."""
    clock_skew: Annotated[int, Field(ge=0, le=600)] = 60
    """Seconds by which the clocks of issuer and server may differ."""
    ca: FilePath | None = None
    """PEM file of the authorities that sign the issuer's certificate; None: those of the system."""

    @property
    def prefix(self) -> str:
        """What the name of every principal of its tokens begins with."""
        return f"{self.issuer}#" if self.principal_prefix is None else self.principal_prefix

    def principal(self, claims: dict[str, Any]) -> str | None:
        """The name of the principal that claims are about; None if they name none that can be one.

        An e-mail address that its issuer has not verified names none: its owner may be another one.
        """
        value = claims.get(self.principal_claim)
        if not isinstance(value, str) or not value.isprintable() or not value or value != value.strip():
            return None
        if self.principal_claim == "email" and claims.get("email_verified") is not True:
            return None
        name = self.prefix + value
        return name if len(name) <= MAX_PRINCIPAL_LENGTH else None

    def roles(self, claims: dict[str, Any]) -> frozenset[str] | None:
        """The roles in claims, which are a list of texts or words between spaces; None for anything else.

        Groups whose names no role can have are none: nothing can be granted to them.
        """
        found: Any = claims if self.roles_claim else []
        for name in self.roles_claim:
            found = found.get(name, []) if isinstance(found, dict) else None
        if isinstance(found, str):
            found = found.split()
        if not isinstance(found, list) or not all(isinstance(role, str) for role in found):
            return None
        return frozenset(filter(is_name, (self.role_prefix + role for role in found)))


def check_issuers(issuers: Sequence[TokenIssuer]) -> None:
    """Raise `ValueError` if a principal or role of one issuer could be one of another, or one is named twice."""
    for place, each in enumerate(issuers):
        for other in issuers[:place]:
            if each.issuer == other.issuer:
                raise ValueError(f"{each.issuer}: expected each issuer once")
            if each.prefix.startswith(other.prefix) or other.prefix.startswith(each.prefix):
                raise ValueError(
                    f"{other.issuer}, {each.issuer}: expected a principal_prefix of each that the other one does not "
                    f"begin with, found {other.prefix!r} and {each.prefix!r}"
                )
            roles = (each.role_prefix, other.role_prefix)
            if (
                each.roles_claim
                and other.roles_claim
                and (roles[0].startswith(roles[1]) or roles[1].startswith(roles[0]))
            ):
                raise ValueError(
                    f"{other.issuer}, {each.issuer}: expected a role_prefix of each that the other one does not begin "
                    f"with, since both name roles; found {other.role_prefix!r} and {each.role_prefix!r}"
                )

"""The address of a catalog and the caller's credentials: from arguments, the environment, and profiles in a file.

Profiles are tables of `profiles.toml` in the directory `lance-namespace` of the user's configuration:

    [shop]
    url = "https://catalog.example.org"
    api_key = "..."
    namespace = "eu"
    ca = "company-ca.pem"

A `ca` that is no absolute path is beside the file.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from namespace_client.errors import InvalidCall
from namespace_client.logins import LoginToken, configuration_directory, find_login

URL: Final = "LANCE_NAMESPACE_URL"
CA: Final = "LANCE_NAMESPACE_CA"
API_KEY: Final = "LANCE_NAMESPACE_API_KEY"
TOKEN: Final = "LANCE_NAMESPACE_TOKEN"  # noqa: S105 - the name of a variable
PROFILE: Final = "LANCE_NAMESPACE_PROFILE"
TokenProvider = Callable[[], str]
"""Gives a bearer token. It is asked before the first request, and again when the server has refused the one before."""
_FIELDS: Final = frozenset({"url", "api_key", "token", "namespace", "storage_options", "ca"})
_HOST: Final = re.compile(r"(?:localhost|\[[\da-fA-F:]+\]|[\w-]+(?:\.[\w-]+)*):\d{1,5}(?:/.*)?")
_SERVER: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Connection:
    """How to connect to a catalog.

    Attributes:
        target: URL of a server, or root of a catalog to open in this process.
        api_key: API key, sent as `x-api-key`.
        token: Token, sent as `Authorization: Bearer`, or what gives one.
        namespace: Default namespace.
        storage_options: Options of Lance for the object store of the tables.
        ca: PEM file of the authorities that may have signed the server's certificate; None for those of the system.
    """

    target: str
    api_key: str | None = field(default=None, repr=False)
    token: str | TokenProvider | None = field(default=None, repr=False)
    namespace: str = ""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca: str | None = None

    @property
    def is_server(self) -> bool:
        """Whether the target is a server."""
        return self.target.startswith(_SERVER)

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers that say who the caller is, without the token of a provider."""
        key = {} if self.api_key is None else {"x-api-key": self.api_key}
        return key | {"authorization": f"Bearer {self.token}"} if isinstance(self.token, str) else key

    @property
    def provider(self) -> TokenProvider | None:
        """What gives the token, None for one that is fixed."""
        return self.token if callable(self.token) else None


def find_connection(
    target: str | os.PathLike[str] | None = None,
    *,
    profile: str | None = None,
    api_key: str | None = None,
    token: str | TokenProvider | None = None,
    ca: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Connection:
    """The connection that arguments, environment, profiles and logins give, in this order.

    A key or token that the environment or a profile has together with a URL is for that server, and is sent to no
    other one.

    Args:
        target: URL or root; None for that of the environment or the profile.
        profile: Name of a profile; None for `LANCE_NAMESPACE_PROFILE`, or none at all.
        api_key: API key; None for that of the environment or the profile.
        token: Token; None for that of the environment or the profile.
        ca: PEM file of authorities; None for that of the environment or the profile. For a server.
        environment: Variables of the environment.

    Raises:
        InvalidCall: There is no target, or no such profile; the target is no URL and no root; a key or `ca` is given
            for a catalog in this process; a key or token is none that can be sent, or both are given.
    """
    named = profile or environment.get(PROFILE) or None
    kept = Connection("") if named is None else read_profile(named, environment)
    given = Connection(environment.get(URL, ""), environment.get(API_KEY) or None, environment.get(TOKEN) or None)
    chosen = os.fspath(target) if target is not None else (kept.target if profile else given.target or kept.target)
    if not chosen:
        raise InvalidCall(f"no catalog is named: give its URL or root, set {URL}, or name a profile")
    _check_target(chosen)
    _check_credentials(api_key, token)
    if api_key is None and token is None:
        for source in (kept, given) if profile else (given, kept):
            if source.target.rstrip("/") in {"", chosen.rstrip("/")} and (source.api_key or source.token):
                api_key, token = source.api_key, source.token
                break
        else:
            token = _login(chosen, environment)
    elif not chosen.startswith(_SERVER):
        raise InvalidCall(f"{chosen}: a catalog in this process takes no api_key and no token")
    if ca is not None and not chosen.startswith(_SERVER):
        raise InvalidCall(f"{chosen}: a catalog in this process takes no ca")
    own, told = environment.get(CA) or None, kept.ca
    trusted = os.fspath(ca) if ca is not None else (told or own if profile else own or told)
    return Connection(chosen, api_key, token, kept.namespace, kept.storage_options, trusted)


def _check_credentials(api_key: object, token: object) -> None:
    """Raise `InvalidCall` for a key and a token together, of which servers look at one, and for what is none."""
    if api_key is not None and token is not None:
        raise InvalidCall("api_key, token: expected one of them")
    given = api_key if token is None else token
    if given is None or callable(given):
        return
    name, expected = "api_key" if token is None else "token", "expected printable characters of ASCII"
    if not isinstance(given, str):
        raise InvalidCall(f"{name}: {expected}, found {type(given).__name__}")
    if not (given.strip() and given.isascii() and given.isprintable()):
        raise InvalidCall(f"{name}: {expected}, found {'others' if given.strip() else 'none'}")


def _login(target: str, environment: Mapping[str, str]) -> TokenProvider | None:
    """What gives the token of the user's login at a server, if there is one."""
    server = target.rstrip("/")
    if not target.startswith(_SERVER) or find_login(server, environment) is None:
        return None
    return LoginToken(server, environment)


def profiles_path(environment: Mapping[str, str] = os.environ) -> Path:
    """The file with the profiles of the user. It need not exist."""
    return configuration_directory(environment) / "profiles.toml"


def read_profile(name: str, environment: Mapping[str, str] = os.environ) -> Connection:
    """A profile of the user. Raises `InvalidCall` if there is none of this name, or it is not well-formed."""
    path = profiles_path(environment)
    try:
        profiles = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidCall(f"profile {name!r}: expected it in {path}, which does not exist") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidCall(f"{path}: it cannot be read: {error}") from error
    values = profiles.get(name)
    if not isinstance(values, dict):
        known = ", ".join(sorted(profiles)) or "none"
        raise InvalidCall(f"profile {name!r}: expected one of {path}, which has {known}")
    place = f"{path}: profile {name!r}"
    if unknown := sorted(values.keys() - _FIELDS):
        raise InvalidCall(f"{place}: expected {', '.join(sorted(_FIELDS))}; found {', '.join(unknown)}")
    options = values.get("storage_options", {})
    if not isinstance(options, dict):
        raise InvalidCall(f"{place}: storage_options: expected a table")
    texts = {key: _text(values, key, place) for key in ("url", "api_key", "token", "namespace", "ca")}
    return Connection(
        texts["url"] or "",
        texts["api_key"],
        texts["token"],
        texts["namespace"] or "",
        {key: str(value) for key, value in options.items()},
        None if texts["ca"] is None else str(path.parent / Path(texts["ca"]).expanduser()),
    )


def _text(values: Mapping[str, Any], key: str, place: str) -> str | None:
    value = values.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidCall(f"{place}: {key}: expected a text")
    return value or None


def _check_target(target: str) -> None:
    if _HOST.fullmatch(target) and not Path(target).exists():
        raise InvalidCall(
            f"{target}: expected a URL or the root of a catalog; did you mean http://{target}? "
            f"A directory of this name is ./{target}"
        )

"""Logins of the user: tokens of OpenID Connect by server, got by the device authorization grant (RFC 8628).

They are kept in `logins.json` beside the profiles, which its owner alone may read. A token that has expired is renewed
with its refresh token. Processes take turns: issuers that give a new refresh token each time revoke all when an old one
comes twice.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import httpx

from lance_core.own_machine import is_secure
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import AccessRefused, InvalidCall
from namespace_client.wire import present

_TIMEOUT: Final = 30.0
_MARGIN: Final = 30.0
"""Seconds before its end at which a token is renewed."""
_INTERVAL: Final = 5.0
"""Seconds between two questions whether the user has agreed, if the issuer says no other number."""
_LONGEST: Final = 366 * 86_400.0
_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
SCOPES: Final = ("openid", "offline_access")
"""What is asked for unless the caller says otherwise: with the second an issuer gives a refresh token."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What the user does: open `url`, and type `code` there, within `seconds`. `whole_url` has the code in it."""

    url: str
    code: str
    whole_url: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Login:
    """Where a token is from, and the token.

    Attributes:
        issuer: URL of the issuer.
        client_id: The client that the issuer knows this program as; one without a secret.
        scope: Scopes, between spaces.
        audience: What the token is for, in the words of some issuers; None to send nothing.
        resource: The same as RFC 8707 has it: a URI; None to send nothing.
        ca: PEM file of the authorities that may have signed the issuer's certificate; None for those of the system.
        access_token: The token that servers are shown.
        refresh_token: What it is renewed with, if the issuer gave it.
        expires_at: When it ends, in seconds since the epoch; None if the issuer does not say.
    """

    issuer: str
    client_id: str
    scope: str = " ".join(SCOPES)
    audience: str | None = None
    resource: str | None = None
    ca: str | None = None
    access_token: str = field(default="", repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None

    def begun(self, show: Callable[[DeviceCode], None], sleep: Callable[[float], None] = time.sleep) -> Login:
        """The same login with a token, once the user has agreed. Nothing of the user before is kept.

        Args:
            show: Tells the user what to do.
            sleep: Waits for some seconds.

        Raises:
            AccessRefused: The user did not agree in time, or the issuer refused.
            InvalidCall: The issuer does not serve this grant.
        """
        with self._http() as http:
            found = self._discovered(http)
            endpoint = found.get("device_authorization_endpoint")
            if not isinstance(endpoint, str):
                raise InvalidCall(f"{self.issuer}: expected an issuer that serves the device authorization grant")
            started = self._asked(http, endpoint, {"scope": self.scope})
            code = _text(started, "device_code")
            lasting = _seconds(started, "expires_in", 600.0)
            complete = started.get("verification_uri_complete")
            show(DeviceCode(_text(started, "verification_uri"), _text(started, "user_code"), complete, lasting))
            pause, deadline = _seconds(started, "interval", _INTERVAL), time.monotonic() + lasting
            while time.monotonic() < deadline:
                sleep(pause)
                answer = self._asked(
                    http, _text(found, "token_endpoint"), {"grant_type": _GRANT, "device_code": code}, _WAITING
                )
                error = answer.get("error")
                if error is None:
                    return self._with(answer, None)  # the one that is there is of the user, or the issuer, before
                pause += _INTERVAL if error == "slow_down" else 0.0
        raise self._refused("the code has expired before it was used")

    def renewed(self) -> Login:
        """The same login with a new token. Raises `AccessRefused` where the user has to log in again."""
        if self.refresh_token is None:
            raise self._refused("the token has expired, and the issuer gave nothing to renew it with")
        with self._http() as http:
            endpoint = _text(self._discovered(http), "token_endpoint")
            asked = {"grant_type": "refresh_token", "refresh_token": self.refresh_token}
            return self._with(self._asked(http, endpoint, asked), self.refresh_token)

    @property
    def is_over(self) -> bool:
        """Whether the token has expired, or is about to."""
        return self.expires_at is not None and time.time() >= self.expires_at - _MARGIN

    def _with(self, answer: Mapping[str, Any], refresh_token: str | None) -> Login:
        """The same login with the tokens of an answer; `refresh_token` is for one that has none."""
        has_end = answer.get("expires_in") is not None
        return replace(
            self,
            access_token=_text(answer, "access_token"),
            refresh_token=answer.get("refresh_token", refresh_token),
            expires_at=time.time() + _seconds(answer, "expires_in", 0.0) if has_end else None,
        )

    def _http(self) -> httpx.Client:
        return httpx.Client(verify=ssl.create_default_context(cafile=self.ca), timeout=_TIMEOUT)

    def _discovered(self, http: httpx.Client) -> dict[str, Any]:
        place = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
        _require_secure(place)
        found = self._answer(lambda: http.get(place))
        if found.get("issuer") != self.issuer:
            raise self._refused(f"it says that it is {found.get('issuer')!r}")
        return found

    def _asked(
        self, http: httpx.Client, endpoint: str, form: Mapping[str, str], expected: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """The answer to a form. An error is returned if it is one of those, else raised."""
        _require_secure(endpoint)
        sent = {**form, **present(client_id=self.client_id, audience=self.audience, resource=self.resource)}
        return self._answer(lambda: http.post(endpoint, data=sent), expected)

    def _answer(self, send: Callable[[], httpx.Response], expected: frozenset[str] = frozenset()) -> dict[str, Any]:
        try:
            answer = send()
            found = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise self._refused(f"it gave no answer: {type(error).__name__}: {error}") from error
        if not isinstance(found, dict) or (answer.is_error and found.get("error") not in expected):
            reason = found.get("error_description") or found.get("error") if isinstance(found, dict) else None
            raise self._refused(f"it answered {answer.status_code}" + (f": {reason}" if reason else ""))
        return found

    def _refused(self, why: str) -> AccessRefused:
        return AccessRefused(f"issuer {self.issuer}: {why}; log in with: lance-namespace login", code=_CODE)


_WAITING: Final = frozenset({"authorization_pending", "slow_down"})
_CODE: Final = ErrorCode.UNAUTHENTICATED


class LoginToken:
    """The token of a login, for `token=` of `Catalog.connect`. Thread-safe.

    Each call gives one that has not expired. A call that would give the same one as the call before renews it: the
    server has refused that one.
    """

    def __init__(self, server: str, environment: Mapping[str, str] = os.environ) -> None:
        self._server = server
        self._environment = environment
        self._last: str | None = None

    def __repr__(self) -> str:
        return f"<token of the login at {self._server}>"

    def __call__(self) -> str:
        """The token. Raises `AccessRefused` where the user has to log in again."""
        with _changing(self._environment) as logins:
            login = logins.get(self._server)
            if login is None:
                raise AccessRefused(f"{self._server}: not logged in; use: lance-namespace login", code=_CODE)
            if (login.is_over and login.refresh_token is not None) or login.access_token == self._last:
                login = logins[self._server] = login.renewed()
            self._last = login.access_token
            return login.access_token


def configuration_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory of the user's profiles and logins. It need not exist."""
    if sys.platform == "win32":
        home = environment.get("APPDATA") or str(Path.home() / "AppData" / "Roaming")
    else:
        home = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "lance-namespace"


def find_login(server: str, environment: Mapping[str, str] = os.environ) -> Login | None:
    """The login at a server, None if there is none. Raises `InvalidCall` for a file that cannot be read."""
    return _read(_path(environment)).get(server.rstrip("/"))


def keep_login(server: str, login: Login, environment: Mapping[str, str] = os.environ) -> None:
    """Keep a login for a server, in place of the one before."""
    with _changing(environment) as logins:
        logins[server.rstrip("/")] = login


def forget_login(server: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Remove the login at a server. False if there was none."""
    with _changing(environment) as logins:
        return logins.pop(server.rstrip("/"), None) is not None


def _path(environment: Mapping[str, str]) -> Path:
    return configuration_directory(environment) / "logins.json"


@contextmanager
def _changing(environment: Mapping[str, str]) -> Iterator[dict[str, Login]]:
    """The logins, which are written at the end of the block if they have changed. One process at a time is in it."""
    path = _path(environment)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor)
        before = _read(path)
        logins = dict(before)
        yield logins
        if logins != before:
            _write(path, logins)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Wait until no other process has the file. It is free again once the descriptor is closed."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _read(path: Path) -> dict[str, Login]:
    try:
        found = json.loads(path.read_text("utf-8"))
        return {server: _parse(values) for server, values in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InvalidCall(f"{path}: it cannot be read: {type(error).__name__}; remove it, and log in again") from error


def _parse(values: Mapping[str, Any]) -> Login:
    """A login of the file. Raises `AttributeError` or `TypeError` if it is none."""
    found = Login(**{each.name: values[each.name] for each in fields(Login) if each.name in values})
    for each in fields(found):
        value, kind = getattr(found, each.name), float | int if each.name == "expires_at" else str
        if not isinstance(value, kind) and not (value is None and each.default is None):
            raise TypeError(each.name)
    return found


def _write(path: Path, logins: Mapping[str, Login]) -> None:
    """Replace the file, which is never readable for others."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".logins")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({server: asdict(login) for server, login in logins.items()}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str) or not value:
        raise AccessRefused(f"the answer of the issuer: expected {name}, found none", code=_CODE)
    return value


def _seconds(answer: Mapping[str, Any], name: str, otherwise: float) -> float:
    value = answer.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LONGEST:
        raise AccessRefused(f"the answer of the issuer: expected seconds as {name}, found {value!r}", code=_CODE)
    return float(value)


def _require_secure(url: str) -> None:
    """Raise `InvalidCall` for a URL to which a token would go readable for others."""
    if not is_secure(url):
        raise InvalidCall(f"{url}: expected https; http is for addresses of this machine")

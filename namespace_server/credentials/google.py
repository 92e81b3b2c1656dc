"""Temporary credentials for a table on Google Cloud Storage: a token of the server's account, limited to the table."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from datetime import UTC
from functools import partial
from typing import Any, Final

import google.auth
from google.auth.downscoped import AccessBoundaryRule, AvailabilityCondition, CredentialAccessBoundary
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request
from google.oauth2 import service_account, sts
from lance_namespace.errors import ServiceUnavailableError

from lance_core.storage.services.options import Options, gcs_arguments
from namespace_server.credentials.temporary import Credentials

_log = logging.getLogger(__name__)

_EXCHANGE: Final = "https://sts.googleapis.com/v1/token"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  (a type of tokens, not one)
_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_ROLES: Final = {"read": "roles/storage.objectViewer", "write": "roles/storage.objectUser"}
_TIMEOUT: Final = 10.0


class DownscopedToken:
    """Issues access tokens of the server's account that are limited by a credential access boundary.

    The account is the one that `storage` names, or else the default of the environment. A token is valid for as long as
    that of the account from which it is made: an hour at most. The bucket must have uniform access. Thread-safe. Makes
    no request before the first `issue`. Raises `ValueError` if `storage` names no service account that can be read.
    """

    def __init__(self, bucket: str, storage: Mapping[str, str], permission: str, sts_endpoint: str | None) -> None:
        self._bucket = bucket
        self._permission = permission
        self._exchange = sts.Client(sts_endpoint or _EXCHANGE)
        self._request = partial(Request(), timeout=_TIMEOUT)
        self._lock = threading.Lock()
        self._account = _service_account(storage)
        self._renew_at = 0.0

    def issue(self, path: str) -> Credentials:
        """A new token for the objects below a path. Raises ServiceUnavailableError (17)."""
        now = time.time()
        try:
            token, end = self._account_token(now)
            answer = self._exchange.exchange_token(
                self._request,
                grant_type=_GRANT,
                subject_token=token,
                subject_token_type=_ACCESS_TOKEN,
                requested_token_type=_ACCESS_TOKEN,
                additional_options=access_boundary(self._bucket, path, self._permission).to_json(),
            )
            issued = {"google_storage_token": str(answer["access_token"])}
        except (GoogleAuthError, KeyError, ValueError) as error:
            _log.error("no token is issued for clients: %s", error)
            raise ServiceUnavailableError(
                f"credentials of the table: expected an answer of the token service, found {type(error).__name__}"
            ) from None
        lifetime = answer.get("expires_in")
        return Credentials(issued, now, end if lifetime is None else now + float(lifetime))

    def _account_token(self, now: float) -> tuple[str, float]:
        """The account's own token and its end. It is renewed when half of its time is over, as clients get the rest."""
        with self._lock:
            if self._account is None:
                self._account, _ = google.auth.default(scopes=_SCOPES, request=self._request)
            if now >= self._renew_at:
                self._account.refresh(self._request)
                self._renew_at = (now + self._end()) / 2
            return self._account.token, self._end()

    def _end(self) -> float:
        end: float = self._account.expiry.replace(tzinfo=UTC).timestamp()
        return end


def access_boundary(bucket: str, path: str, permission: str) -> CredentialAccessBoundary:
    """The condition that limits a token to the objects below a path.

    Args:
        bucket: Name of the bucket.
        path: Path of the table in the bucket, without a slash at its ends.
        permission: `read`, or `write` for all that Lance's writers do.
    """
    objects, listed = _text(f"projects/_/buckets/{bucket}/objects/{path}/"), _text(f"{path}/")
    prefix = "api.getAttribute('storage.googleapis.com/objectListPrefix', '')"
    condition = f"resource.name.startsWith({objects}) || {prefix}.startsWith({listed})"
    rule = AccessBoundaryRule(
        f"//storage.googleapis.com/projects/_/buckets/{bucket}",
        [f"inRole:{_ROLES[permission]}"],
        AvailabilityCondition(condition),
    )
    return CredentialAccessBoundary([rule])


def _text(value: str) -> str:
    """A text of the language of conditions."""
    return json.dumps(value, ensure_ascii=False)


def _service_account(storage: Mapping[str, str]) -> Any:
    """The account that the server's options name, if they name one. Raises `ValueError`."""
    named = gcs_arguments(Options(storage)).get("token")
    if named == "anon":
        raise ValueError("vended_google_token: expected an account of the server, found the option skip_signature")
    try:
        if isinstance(named, dict):
            return service_account.Credentials.from_service_account_info(named, scopes=_SCOPES)
        return named and service_account.Credentials.from_service_account_file(named, scopes=_SCOPES)
    except (OSError, ValueError, GoogleAuthError) as error:
        found = type(error).__name__  # its text may hold the key
        raise ValueError(f"vended_google_token: expected a service account among the options, found {found}") from None

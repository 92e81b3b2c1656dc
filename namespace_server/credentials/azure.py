"""Temporary credentials for a table on Azure: a shared access signature, limited to the table's directory.

It is signed with the account key or, where the server has an identity in its place, with a key delegated to that.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from adlfs import AzureBlobFileSystem
from azure.core.exceptions import AzureError
from azure.storage.blob import BlobServiceClient, LinearRetry, UserDelegationKey, generate_blob_sas
from lance_namespace.errors import ServiceUnavailableError

from lance_core.storage.services.options import Options, azure_arguments, connections
from namespace_server.credentials.temporary import Credentials

_log = logging.getLogger(__name__)

_PERMISSIONS: Final = {"read": "rl", "write": "racwdl"}
_SKEW: Final = timedelta(minutes=5)
_TIMEOUT: Final = 10
_EXPECTED: Final = "vended_azure_sas: expected the name of an account, and its key or an identity, found none"


class DirectorySignature:
    """Issues shared access signatures. The account must have a hierarchical namespace. Thread-safe.

    Makes no request, except for a delegated key: the first `issue` asks for one that serves twice the duration of a
    signature, and for the next when half of that is over. Raises `ValueError` if the server's options and environment
    hold no account, or neither its key nor an identity.
    """

    def __init__(
        self, container: str, account: str | None, storage: Mapping[str, str], permission: str, duration: timedelta
    ) -> None:
        options = Options(storage)
        # It finds the credentials of the store in the options or in the environment, as for the store itself.
        try:
            found = AzureBlobFileSystem(**azure_arguments(options, account), skip_instance_cache=True)
        except ValueError:
            raise ValueError(_EXPECTED) from None
        name = options.text("azure_storage_account_name", "account_name") or account or found.account_name
        key = options.text("azure_storage_account_key", "azure_storage_access_key", "account_key", "access_key")
        key = key or found.account_key
        if name is None or (key is None and found.sync_credential is None):
            raise ValueError(_EXPECTED)
        self._container = container
        self._account = name
        self._key = key
        self._delegation = None if key else _Delegation(found, duration, connections(options).proxies)
        self._permission = _PERMISSIONS[permission]
        self._duration = duration

    def issue(self, path: str) -> Credentials:
        """A new signature for the directory. Raises ServiceUnavailableError (17) if no key is delegated."""
        now = time.time()
        begin = datetime.fromtimestamp(now, UTC)
        end = begin + self._duration
        token = generate_blob_sas(
            self._account,
            self._container,
            path,
            account_key=self._key,
            user_delegation_key=self._delegation.key(begin) if self._delegation else None,
            permission=self._permission,
            start=begin - _SKEW,  # clocks differ
            expiry=end,
            is_directory=True,
        )
        options = {"azure_storage_account_name": self._account, "azure_storage_sas_token": token}
        return Credentials(options, now, end.timestamp())


class _Delegation:
    """The key that is delegated to the server's identity. Thread-safe."""

    def __init__(self, found: AzureBlobFileSystem, duration: timedelta, proxies: Mapping[str, str]) -> None:
        more: dict[str, Any] = {"proxies": proxies} if proxies else {}
        self._service = BlobServiceClient(
            found.account_url,
            credential=found.sync_credential,
            connection_timeout=_TIMEOUT,
            read_timeout=_TIMEOUT,
            retry_policy=LinearRetry(backoff=1, retry_total=2),
            **more,
        )
        self._duration = duration
        self._lock = threading.Lock()
        self._key: UserDelegationKey | None = None
        self._renew_at = datetime.now(UTC)

    def key(self, now: datetime) -> UserDelegationKey:
        """A key that is valid for longer than a signature. Raises ServiceUnavailableError (17)."""
        with self._lock:
            if self._key is None or now >= self._renew_at:
                try:
                    self._key = self._service.get_user_delegation_key(now - _SKEW, now + 2 * self._duration)
                except AzureError as error:
                    _log.error("no key is delegated to sign for clients: %s", error)
                    raise ServiceUnavailableError(
                        f"credentials of the table: expected a delegated key, found {type(error).__name__}"
                    ) from None
                self._renew_at = now + self._duration
            return self._key

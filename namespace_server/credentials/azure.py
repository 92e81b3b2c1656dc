"""Temporary credentials for a table on Azure: a signature of the account key, limited to the table's directory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from lance_core.storage.services.options import Options
from namespace_server.credentials.temporary import Credentials

_PERMISSIONS: Final = {"read": "rl", "write": "racwdl"}
_SKEW: Final = timedelta(minutes=5)


class DirectorySignature:
    """Issues shared access signatures. Makes no request. The account must have a hierarchical namespace.

    Raises `ValueError` if the server's options hold no account key.
    """

    def __init__(
        self, container: str, account: str | None, storage: Mapping[str, str], permission: str, duration: timedelta
    ) -> None:
        options = Options(storage)
        key = options.text("azure_storage_account_key", "azure_storage_access_key", "account_key", "access_key")
        name = options.text("azure_storage_account_name", "account_name") or account
        if key is None or name is None:
            raise ValueError("vended_azure_sas: expected account name and key among the storage options, found none")
        self._container = container
        self._account = name
        self._key = key
        self._permission = _PERMISSIONS[permission]
        self._duration = duration

    def issue(self, path: str) -> Credentials:
        """A new signature for the directory."""
        from azure.storage.blob import generate_blob_sas

        now = time.time()
        begin = datetime.fromtimestamp(now, UTC)
        end = begin + self._duration
        token = generate_blob_sas(
            self._account,
            self._container,
            path,
            account_key=self._key,
            permission=self._permission,
            start=begin - _SKEW,  # clocks differ
            expiry=end,
            is_directory=True,
        )
        options = {"azure_storage_account_name": self._account, "azure_storage_sas_token": token}
        return Credentials(options, now, end.timestamp())

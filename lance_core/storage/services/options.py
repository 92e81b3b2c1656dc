"""Translates Lance's storage options into the arguments of s3fs, adlfs and gcsfs.

The keys are those of the Rust object_store crate, with and without the prefix of the service. Of the options of its
HTTP client `connect_timeout`, `timeout` and `proxy_url` are followed, and `client_max_retries`, which is Lance's own;
the others are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lance_core.errors import StorageError

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Options:
    """Storage options, looked up by any of their names, ignoring case."""

    def __init__(self, options: Mapping[str, str] | None) -> None:
        self._options = {name.lower(): value for name, value in (options or {}).items()}

    def text(self, *names: str) -> str | None:
        """The value of the first name that is set."""
        return next((self._options[name] for name in names if self._options.get(name)), None)

    def flag(self, *names: str) -> bool:
        """A boolean option, False by default."""
        value = (self.text(*names) or "false").lower()
        if value not in {"true", "1", "yes", "on", "false", "0", "no", "off"}:
            raise StorageError(f"storage option {names[0]}: expected true or false, found {value!r}")
        return value in {"true", "1", "yes", "on"}

    def seconds(self, name: str, default: float) -> float:
        """A duration such as `500ms`, `30s` or `2m`, in seconds."""
        value = self.text(name)
        if value is None:
            return default
        found = re.fullmatch(r"([0-9]{1,9})(ms|s|m|h)", value)
        if found is None or int(found[1]) == 0:
            raise StorageError(f"storage option {name}: expected a duration such as 500ms, 30s or 2m, found {value!r}")
        return int(found[1]) * _UNITS[found[2]]

    def number(self, name: str, default: int, *, at_most: int) -> int:
        """A whole number from 0 on."""
        value = self.text(name)
        if value is None:
            return default
        if re.fullmatch("[0-9]{1,9}", value) is None or int(value) > at_most:
            raise StorageError(f"storage option {name}: expected a whole number from 0 to {at_most}, found {value!r}")
        return int(value)

    def endpoint(self, *names: str) -> str | None:
        """A URL. As in Lance's client, plain HTTP requires `allow_http`."""
        value = self.text(*names)
        if value is not None and value.startswith("http://") and not self.flag("allow_http", "aws_allow_http"):
            raise StorageError(f"storage option {names[0]} = {value}: plain HTTP needs allow_http=true")
        return value.rstrip("/") if value is not None else None


@dataclass(frozen=True, slots=True)
class Connections:
    """How HTTP clients connect to a service.

    Attributes:
        connect_timeout: Seconds for the connection.
        answer_timeout: Seconds without a byte of the answer.
        proxy: URL of the proxy; None for that of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`), if any.
    """

    connect_timeout: float = 5.0
    answer_timeout: float = 60.0
    proxy: str | None = None

    @property
    def proxies(self) -> dict[str, str]:
        """The proxy by the scheme of a URL; empty for that of the environment."""
        return {} if self.proxy is None else dict.fromkeys(("http", "https"), self.proxy)


DEFAULT_CONNECTIONS: Final = Connections()


def connections(options: Options) -> Connections:
    """The options of HTTP clients."""
    proxy = options.text("proxy_url")
    if proxy is not None and not re.match("https?://[^/]", proxy):
        raise StorageError("storage option proxy_url: expected http://host:port or https://host:port, found another")
    default = DEFAULT_CONNECTIONS
    return Connections(
        options.seconds("connect_timeout", default.connect_timeout),
        options.seconds("timeout", default.answer_timeout),
        proxy,
    )


def s3_arguments(options: Options) -> dict[str, Any]:
    """Arguments of `S3FileSystem`."""
    arguments: dict[str, Any] = {
        "key": options.text("aws_access_key_id", "access_key_id"),
        "secret": options.text("aws_secret_access_key", "secret_access_key"),
        "token": options.text("aws_session_token", "aws_token", "session_token", "token"),
        "anon": options.flag("aws_skip_signature", "skip_signature"),
        "requester_pays": options.flag("aws_request_payer", "request_payer"),
    }
    endpoint = options.endpoint("aws_endpoint", "aws_endpoint_url", "endpoint", "endpoint_url")
    region = options.text("aws_region", "region", "aws_default_region", "default_region")
    client = {"endpoint_url": endpoint, "region_name": region}
    arguments["client_kwargs"] = {name: value for name, value in client.items() if value is not None}
    hosted = options.flag("aws_virtual_hosted_style_request", "virtual_hosted_style_request")
    if endpoint is not None:
        arguments["config_kwargs"] = {"s3": {"addressing_style": "virtual" if hosted else "path"}}
    return {name: value for name, value in arguments.items() if value is not None}


def s3_write_arguments(options: Options) -> dict[str, str]:
    """Arguments of every PutObject request: server-side encryption."""
    arguments = {
        "ServerSideEncryption": options.text("aws_server_side_encryption", "server_side_encryption"),
        "SSEKMSKeyId": options.text("aws_sse_kms_key_id", "sse_kms_key_id"),
    }
    return {name: value for name, value in arguments.items() if value is not None}


def azure_arguments(options: Options, account: str | None) -> dict[str, Any]:
    """Arguments of `AzureBlobFileSystem`. `account` is the account in the URI, if there is one."""
    name = options.text("azure_storage_account_name", "account_name") or account
    key = options.text("azure_storage_account_key", "azure_storage_access_key", "account_key", "access_key")
    sas = options.text("azure_storage_sas_token", "azure_storage_sas_key", "sas_token", "sas_key")
    endpoint = options.endpoint("azure_storage_endpoint", "azure_endpoint", "endpoint")
    if endpoint is not None and (key is not None or sas is not None):
        secret = f"AccountName={name};AccountKey={key}" if key is not None else f"SharedAccessSignature={sas}"
        protocol = endpoint.partition("://")[0]
        return {"connection_string": f"DefaultEndpointsProtocol={protocol};BlobEndpoint={endpoint};{secret}"}
    scheme, _, host = (endpoint or "https://").partition("://")
    if scheme != "https" or "/" in host:
        raise StorageError(
            f"storage option azure_storage_endpoint = {endpoint}: expected https://host without a path, or an account "
            "key or SAS token"
        )
    arguments = {
        "account_name": name,
        "account_host": host or None,
        "account_key": key,
        "sas_token": sas,
        "client_id": options.text("azure_storage_client_id", "azure_client_id", "client_id"),
        "client_secret": options.text("azure_storage_client_secret", "azure_client_secret", "client_secret"),
        "tenant_id": options.text("azure_storage_tenant_id", "azure_tenant_id", "tenant_id", "authority_id"),
        "anon": options.flag("azure_skip_signature", "skip_signature"),
    }
    return {name: value for name, value in arguments.items() if value is not None}


def gcs_arguments(options: Options) -> dict[str, Any]:
    """Arguments of `GCSFileSystem`."""
    token: Any = options.text(
        "google_service_account",
        "google_service_account_path",
        "service_account",
        "service_account_path",
        "google_application_credentials",
        "application_credentials",
    )
    inline = options.text("google_service_account_key", "service_account_key")
    if inline is not None:
        token = json.loads(inline)
    if options.flag("google_skip_signature", "skip_signature"):
        token = "anon"  # noqa: S105  (gcsfs's word for no token)
    endpoint = options.endpoint("google_base_url", "endpoint")
    arguments = {"token": token, "endpoint_url": endpoint}
    return {name: value for name, value in arguments.items() if value is not None}

"""Storage options for clients of a table: some are the same for all tables, credentials are made for the table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, Literal
from urllib.parse import urlsplit

from lance_core.storage.opening import BUCKETS
from namespace_server.credentials.temporary import Issuer, TemporaryCredentials

Permission = Literal["read", "write"]

ROLE: Final = re.compile(r"arn:[a-z0-9-]+:iam::[0-9]{12}:role/[\w+=,.@/-]+")
SHORTEST: Final = timedelta(minutes=15)
LONGEST: Final = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class VendingOptions:
    """Makes the storage options for clients; by default none.

    Attributes:
        static: Options by Lance's names, the same for every table.
        role_arn: Role whose temporary credentials are handed out for tables on S3, limited to the table.
        azure_sas: Whether shared access signatures are handed out for tables on Azure, limited to the table.
        google_token: Whether tokens of the server's account are handed out for tables on Google Cloud Storage, limited
            to the table.
        sts_endpoint: The service that issues sessions or tokens; absent: that of the provider.
        permission: What temporary credentials allow.
        duration: How long they are valid. Google's service decides by itself.
        sole_writer: Whether the role refuses manifests of tables under their canonical names; see `CatalogOptions`.
    """

    static: Mapping[str, str] = field(default_factory=dict, repr=False)
    role_arn: str | None = None
    azure_sas: bool = False
    google_token: bool = False
    sts_endpoint: str | None = None
    permission: Permission = "write"
    duration: timedelta = timedelta(hours=1)
    sole_writer: bool = False


class Vendor:
    """Answers the storage options for a table. Thread-safe."""

    def __init__(
        self,
        static: Mapping[str, str] | None = None,
        temporary: TemporaryCredentials | None = None,
        reading: TemporaryCredentials | None = None,
    ) -> None:
        """`temporary` are those for who may write; `reading`, if these are others, those for who may read only."""
        self._static = dict(static or {})
        self._temporary = temporary
        self._reading = temporary if reading is None else reading

    @property
    def vends(self) -> bool:
        """Whether there is anything to hand out."""
        return bool(self._static) or self._temporary is not None

    @property
    def lasting(self) -> bool:
        """Whether the options of a table never change."""
        return self._temporary is None

    def options(self, path: str, permission: Permission = "write") -> dict[str, str]:
        """The options for the table whose files lie below `path` in the bucket; may ask a token service.

        Temporary credentials allow no more than `permission` and than the settings do. They are valid for half their
        duration at least, and go with `expires_at_millis`. Options that are the same for all tables are handed out for
        either permission. Raises ServiceUnavailableError (17).
        """
        temporary = self._temporary if permission == "write" else self._reading
        if temporary is None:
            return dict(self._static)
        issued = temporary.get(path)
        return {**self._static, **issued.options, "expires_at_millis": str(int(issued.expires_at * 1000))}


def open_vendor(root: str, storage: Mapping[str, str], options: VendingOptions) -> Vendor:
    """The vendor for the tables below a root. Makes no request.

    Args:
        root: URI or path of the root.
        storage: The server's own options of the object store, by Lance's names.
        options: What is handed out.

    Raises:
        ValueError: The options do not fit each other or the root.
    """
    if not SHORTEST <= options.duration <= LONGEST:
        raise ValueError(f"vended_seconds: expected 900 to 43200, found {options.duration.total_seconds():g}")
    if options.permission not in {"read", "write"}:
        raise ValueError(f"vended_permission: expected read or write, found {options.permission!r}")
    issuer = _issuer(root, storage, options)
    if issuer is None:
        return Vendor(options.static)
    if options.permission == "read":
        return Vendor(options.static, TemporaryCredentials(issuer))
    reading = _issuer(root, storage, replace(options, permission="read"))
    return Vendor(
        options.static, TemporaryCredentials(issuer), None if reading is None else TemporaryCredentials(reading)
    )


def _issuer(root: str, storage: Mapping[str, str], options: VendingOptions) -> Issuer | None:
    parts = urlsplit(root)
    bucket, _, host = parts.netloc.partition("@")
    service = BUCKETS.get(parts.scheme)
    if options.role_arn is not None:
        if service != "s3":
            raise ValueError("vended_role_arn: expected a root on S3, found another one")
        if ROLE.fullmatch(options.role_arn) is None:
            raise ValueError(f"vended_role_arn: expected arn:aws:iam::ACCOUNT:role/NAME, found {options.role_arn!r}")
        from namespace_server.credentials.s3 import AssumedRole  # loaded where it is used

        return AssumedRole(
            bucket,
            storage,
            options.role_arn,
            options.permission,
            options.duration,
            options.sts_endpoint,
            sole_writer=options.sole_writer,
        )
    if options.google_token:
        if service != "gcs":
            raise ValueError("vended_google_token: expected a root on Google Cloud Storage, found another one")
        with _of_extra("gcs", "vended_google_token"):
            from namespace_server.credentials.google import DownscopedToken

        return DownscopedToken(bucket, storage, options.permission, options.sts_endpoint)
    if options.sts_endpoint is not None:
        raise ValueError("vended_sts_endpoint: expected vended_role_arn or vended_google_token with it, found neither")
    if options.azure_sas:
        if service != "azure":
            raise ValueError("vended_azure_sas: expected a root on Azure, found another one")
        with _of_extra("azure", "vended_azure_sas"):
            from namespace_server.credentials.azure import DirectorySignature

        account = host.partition(".")[0] or None
        return DirectorySignature(bucket, account, storage, options.permission, options.duration)
    return None


@contextmanager
def _of_extra(extra: str, setting: str) -> Iterator[None]:
    """Within it a module of an extra is imported for a setting. Raises `ValueError` if the extra is not installed."""
    try:
        yield
    except ImportError as error:
        missing = f"{error.name} is missing; install lance-namespace-server[{extra}]"
        raise ValueError(f"{setting}: {missing}") from error

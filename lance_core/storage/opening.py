"""Opens a store by URI."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import SplitResult, unquote, urlsplit

from lance_core.errors import StorageError
from lance_core.hidden_credentials import without_credentials
from lance_core.storage.keys import check_key
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectStore
from lance_core.storage.services.options import (
    Options,
    azure_arguments,
    connections,
    gcs_arguments,
    s3_arguments,
    s3_write_arguments,
)

if TYPE_CHECKING:
    from lance_core.storage.services.bucket import Bucket

BUCKETS: Final = {"s3": "s3", "gs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
"""The service of each scheme of a bucket: the name of its module, and of the extra that it needs."""
_memory_stores: dict[str, MemoryStore] = {}
_memory_lock = threading.Lock()


def open_store(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    durability: Literal["fsync", "none"] = "fsync",
    concurrency: int | None = None,
) -> ObjectStore:
    """The store with the root `uri`. Makes no request.

    Args:
        uri: A plain path or `file:///path`; `memory://name` (one store per name and process); `s3://bucket/prefix`;
            `az://container/prefix`, `abfs://container/prefix` or
            `abfss://container@account.dfs.core.windows.net/prefix`; `gs://bucket/prefix`.
        storage_options: Options by Lance's own keys.
        durability: Whether durable writes are synced; for local files only.
        concurrency: How many requests to a bucket may be in flight at once; None leaves it to the service.

    Raises:
        StorageError: The URI or the options are not valid.
    """
    text = os.fspath(uri)
    if "://" not in text:
        return _local_store(text, durability)
    parts = urlsplit(text)
    text = without_credentials(text, is_value=True)
    if ":" in parts.netloc.rpartition("@")[0]:
        raise StorageError(
            f"{text}: expected no password in a URI, found one: give it as an option of the object store"
        )
    if parts.query or parts.fragment:
        raise StorageError(f"{text}: expected scheme://name/path, found a query or fragment")
    if parts.scheme == "file":
        if parts.netloc not in {"", "localhost"}:
            raise StorageError(f"{text}: expected file:///path, found the host {parts.netloc}")
        return _local_store(unquote(parts.path), durability)
    if parts.scheme == "memory":
        name = (parts.netloc + parts.path).strip("/")
        with _memory_lock:
            return _memory_stores.setdefault(name, MemoryStore(name))
    if parts.scheme not in BUCKETS:
        raise StorageError(f"{text}: expected a path or one of file://, memory://, {'://, '.join(BUCKETS)}://")
    return _open_bucket(text, parts, Options(storage_options), concurrency)


def _local_store(directory: str, durability: Literal["fsync", "none"]) -> ObjectStore:
    """The store of a directory. It uses system calls that Windows lacks; its import would fail there."""
    if sys.platform == "win32":
        raise StorageError(f"{directory}: on Windows a store is a bucket; directories need Linux or macOS")
    from lance_core.storage.local import LocalStore

    return LocalStore(directory, durability)


def _open_bucket(text: str, parts: SplitResult, options: Options, concurrency: int | None) -> ObjectStore:
    name, _, host = parts.netloc.partition("@")
    prefix = unquote(parts.path).strip("/")
    if prefix:
        check_key(prefix)
    if not name or (host and parts.scheme not in {"abfs", "abfss"}):
        raise StorageError(f"{text}: expected {parts.scheme}://bucket/prefix")
    try:
        from lance_core.storage.bucket_store import MOST_RETRIES, RETRIES, BucketStore

        retries = options.number("client_max_retries", RETRIES, at_most=MOST_RETRIES)
        bucket = _bucket(BUCKETS[parts.scheme], name, host.partition(".")[0] or None, options)
    except ImportError as error:
        extra = BUCKETS[parts.scheme]
        raise StorageError(f"{text}: {error.name} is missing; install lance-namespace-client[{extra}]") from error
    except ValueError as error:
        raise StorageError(f"{text}: {error}") from error
    return BucketStore(bucket, f"{parts.scheme}://{parts.netloc}", prefix, concurrency=concurrency, retries=retries)


def _bucket(service: str, name: str, account: str | None, options: Options) -> Bucket:
    match service:
        case "s3":
            from lance_core.storage.services.s3 import S3Bucket

            if name.endswith("--x-s3"):
                raise StorageError(f"s3://{name}: expected a bucket with ordered listings, found a directory bucket")
            return S3Bucket(name, s3_arguments(options), s3_write_arguments(options), connections(options))
        case "gcs":
            from lance_core.storage.services.gcs import GcsBucket

            return GcsBucket(name, gcs_arguments(options), connections(options))
        case "azure":
            from lance_core.storage.services.azure import AzureBucket

            return AzureBucket(name, azure_arguments(options, account), connections(options))
    raise ValueError(f"no object storage service {service}")

"""Azure blob storage, through adlfs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from adlfs import AzureBlobFileSystem
from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.storage.blob.aio import BlobPrefix

from lance_core.storage.services.bucket import (
    VACANT,
    Bucket,
    Failure,
    Found,
    Page,
    classify_connection,
    classify_status,
    forbid_resending,
    on_loop,
)
from lance_core.storage.services.options import DEFAULT_CONNECTIONS, Connections

_CODES = {
    "BlobAlreadyExists": Failure.MISMATCH,
    "ContainerNotFound": Failure.REFUSED,
    "ContainerBeingDeleted": Failure.REFUSED,
}


class AzureBucket(Bucket):
    """One container. `arguments` are those of adlfs, `page_size` is the largest number of objects in a listing page.

    Listings are treated as unordered: accounts with a hierarchical namespace list directory by directory.
    """

    ordered = False

    def __init__(
        self,
        name: str,
        arguments: dict[str, Any],
        connections: Connections = DEFAULT_CONNECTIONS,
        *,
        page_size: int = 5000,
    ) -> None:
        self.service = ("azure", arguments)
        self._once: dict[str, Any] = {
            "retry_total": 0,
            "connection_timeout": connections.connect_timeout,
            "read_timeout": connections.answer_timeout,
        }
        if connections.proxy is not None:
            self._once["proxies"] = connections.proxies
        self._page_size = page_size
        self.file_system = AzureBlobFileSystem(**arguments, use_listings_cache=False, skip_instance_cache=True)
        self._container = self.file_system.service_client.get_container_client(name)
        self._connected = False

    @on_loop
    async def read(self, key: str, check: Callable[[int], object]) -> bytes:
        await self._connect()
        stream = await self._container.get_blob_client(key).download_blob(
            max_concurrency=1, decompress=False, **self._once
        )
        check(stream.size)  # the first part of the body came with it, of at most 32 MiB
        data: bytes = await stream.readall()
        return data

    @on_loop
    async def read_range(self, key: str, start: int, length: int) -> bytes:
        await self._connect()
        try:
            stream = await self._container.get_blob_client(key).download_blob(
                offset=start, length=length, max_concurrency=1, decompress=False, **self._once
            )
        except HttpResponseError as error:
            if error.status_code == 416:
                return b""
            raise
        data: bytes = await stream.readall()
        return data

    @on_loop
    async def stat(self, key: str) -> Found:
        await self._connect()
        found = await self._container.get_blob_client(key).get_blob_properties(**self._once)
        return Found(key, found.size, _quoted(found.etag), found.last_modified)

    @on_loop
    async def write(self, key: str, data: bytes, condition: str | None) -> str:
        await self._connect()
        conditions: dict[str, Any] = {"overwrite": condition != VACANT}
        if condition is not None and condition != VACANT:
            conditions |= {"etag": condition, "match_condition": MatchConditions.IfNotModified}
        answer = await self._container.get_blob_client(key).upload_blob(
            data, max_concurrency=1, **conditions, **self._once
        )
        return _quoted(answer["etag"])

    @on_loop
    async def copy(self, origin: Any, source: str, key: str) -> None:
        await self._connect()
        target = self._container.get_blob_client(key)
        place = origin.url_of(source)
        answer = await target.start_copy_from_url(place, **self._once)
        status, pause = answer["copy_status"], 0.05
        while status == "pending":  # polls; within one account a copy usually succeeds at once
            await asyncio.sleep(pause)
            pause = min(2 * pause, 5.0)
            status = (await target.get_blob_properties(**self._once)).copy.status
        if status != "success":
            raise AzureError(f"copy of {source} ended as {status}")  # its URL may hold a SAS token

    def url_of(self, key: str) -> str:
        """The URL of an object, with the SAS token if that is the credential."""
        url: str = self._container.get_blob_client(key).url
        return url

    @on_loop
    async def remove(self, key: str, condition: str | None = None) -> None:
        await self._connect()
        conditions: dict[str, Any] = {}
        if condition is not None:
            conditions = {"etag": condition, "match_condition": MatchConditions.IfNotModified}
        await self._container.get_blob_client(key).delete_blob(**conditions, **self._once)

    @on_loop
    async def page(
        self,
        prefix: str,
        start_after: str | None,  # noqa: ARG002
        token: str | None,
        *,
        limit: int | None = None,
    ) -> Page:
        await self._connect()
        pages = self._container.list_blobs(
            name_starts_with=prefix, include=["metadata"], results_per_page=limit or self._page_size, **self._once
        ).by_page(token)
        found = [
            Found(blob.name, blob.size, _quoted(blob.etag), blob.last_modified)
            async for blob in await anext(pages)
            if (blob.metadata or {}).get("hdi_isfolder") != "true"
        ]
        return Page(tuple(found), pages.continuation_token or None)

    @on_loop
    async def page_of_directories(self, prefix: str, token: str | None) -> Page:
        await self._connect()
        pages = self._container.walk_blobs(
            name_starts_with=prefix, delimiter="/", results_per_page=self._page_size, **self._once
        ).by_page(token)
        found = [item.name async for item in await anext(pages) if isinstance(item, BlobPrefix)]
        return Page((), pages.continuation_token or None, tuple(found))

    def classify(self, error: Exception) -> Failure:
        if isinstance(error, HttpResponseError) and error.status_code is not None:
            return _CODES.get(str(getattr(error, "error_code", ""))) or classify_status(error.status_code)
        if isinstance(error, ClientAuthenticationError):
            return Failure.REFUSED
        if isinstance(error, AzureError) and not isinstance(error, ServiceRequestError | ServiceResponseError):
            return Failure.SILENT
        return classify_connection(error)

    @on_loop
    async def disconnect(self) -> None:
        await self.file_system.service_client.close()

    async def _connect(self) -> None:
        if not self._connected:
            transport = self.file_system.service_client._pipeline._transport  # noqa: SLF001
            await transport.open()
            forbid_resending(transport.session)
            self._connected = True


def _quoted(e_tag: str) -> str:
    return e_tag if e_tag.startswith('"') else f'"{e_tag}"'

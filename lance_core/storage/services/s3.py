"""S3 and compatible services, through s3fs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import aiohttp
from aiobotocore.httpsession import AIOHTTPSession
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    ProxyConnectionError,
    SSLError,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)
from s3fs import S3FileSystem

from lance_core.storage.services.bucket import (
    VACANT,
    Bucket,
    Failure,
    Found,
    Page,
    classify_connection,
    classify_status,
    forbid_resending,
)

_CODES = {
    "NoSuchBucket": Failure.REFUSED,
    "ConditionalRequestConflict": Failure.REPEAT,
    "RequestTimeTooSkewed": Failure.REFUSED,
}


LARGEST_COPY = 5 << 30
"""Largest object in bytes that CopyObject copies; larger objects are copied in parts."""


class _SingleSendSession(AIOHTTPSession):  # type: ignore[misc]
    async def _get_session(self, proxy_url: str | None) -> aiohttp.ClientSession:
        session: aiohttp.ClientSession = await super()._get_session(proxy_url)
        forbid_resending(session)
        return session


class S3Bucket(Bucket):
    """One bucket. `arguments` are those of s3fs; `write_arguments` are sent with every PutObject (encryption)."""

    ordered = True

    def __init__(self, name: str, arguments: dict[str, Any], write_arguments: dict[str, str] | None = None) -> None:
        config = {
            "max_pool_connections": 64,
            "connect_timeout": 5,
            "read_timeout": 60,
            "retries": {"total_max_attempts": 1, "mode": "standard"},
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
            "http_session_cls": _SingleSendSession,
            **arguments.get("config_kwargs", {}),
        }
        self.file_system = S3FileSystem(
            **{**arguments, "config_kwargs": config},
            max_concurrency=1,
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        self.service = ("s3", arguments)
        self.name = name
        self._write_arguments = write_arguments or {}

    async def read(self, key: str, start: int | None, length: int | None) -> bytes:
        client = await self._client()
        limits = {} if start is None or length is None else {"Range": f"bytes={start}-{start + length - 1}"}
        try:
            answer = await client.get_object(Bucket=self.name, Key=key, **limits)
        except ClientError as error:
            if _status(error) == 416:
                return b""
            raise
        async with answer["Body"] as body:
            data: bytes = await body.read()
        return data

    async def stat(self, key: str) -> Found:
        client = await self._client()
        answer = await client.head_object(Bucket=self.name, Key=key)
        return Found(key, answer["ContentLength"], answer["ETag"], answer["LastModified"])

    async def write(self, key: str, data: bytes, condition: str | None) -> str:
        client = await self._client()
        conditions = {}
        if condition is not None:
            conditions = {"IfNoneMatch": "*"} if condition == VACANT else {"IfMatch": condition}
        answer = await client.put_object(Bucket=self.name, Key=key, Body=data, **conditions, **self._write_arguments)
        e_tag: str = answer["ETag"]
        return e_tag

    async def copy(self, origin: Any, source: str, key: str) -> None:
        client = await self._client()
        place = {"Bucket": origin.name, "Key": source}
        try:
            await client.copy_object(Bucket=self.name, Key=key, CopySource=place, **self._write_arguments)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") != "InvalidRequest":
                raise
            found = await origin.stat(source)
            if found.size <= LARGEST_COPY:
                raise
            await self.copy_in_parts(place, found, key, LARGEST_COPY // 5)

    async def copy_in_parts(self, place: dict[str, str], found: Found, key: str, part_size: int) -> None:
        """Copy an object that is too large for one request. Parts of a failed copy are removed."""
        client = await self._client()
        upload = {"Bucket": self.name, "Key": key}
        upload["UploadId"] = (await client.create_multipart_upload(**upload, **self._write_arguments))["UploadId"]
        try:
            parts = []
            for number, first in enumerate(range(0, found.size, part_size), 1):
                last = min(first + part_size, found.size) - 1
                answer = await client.upload_part_copy(
                    **upload,
                    PartNumber=number,
                    CopySource=place,
                    CopySourceRange=f"bytes={first}-{last}",
                    CopySourceIfMatch=found.e_tag,
                )
                parts.append({"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]})
            await client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        except BaseException:
            with suppress(ClientError, BotoCoreError):
                await client.abort_multipart_upload(**upload)
            raise

    async def remove(self, key: str, condition: str | None = None) -> None:
        client = await self._client()
        conditions = {} if condition is None else {"IfMatch": condition}
        await client.delete_object(Bucket=self.name, Key=key, **conditions)

    async def page(self, prefix: str, start_after: str | None, token: str | None, *, limit: int | None = None) -> Page:
        client = await self._client()
        where: dict[str, Any] = {} if start_after is None else {"StartAfter": start_after}
        if limit is not None:
            where["MaxKeys"] = limit
        if token is not None:
            where = {"ContinuationToken": token}
        answer = await client.list_objects_v2(Bucket=self.name, Prefix=prefix, **where)
        found = (
            Found(item["Key"], item["Size"], item["ETag"], item["LastModified"]) for item in answer.get("Contents", ())
        )
        return Page(tuple(found), answer.get("NextContinuationToken"))

    async def page_of_directories(self, prefix: str, token: str | None) -> Page:
        client = await self._client()
        where = {} if token is None else {"ContinuationToken": token}
        answer = await client.list_objects_v2(Bucket=self.name, Prefix=prefix, Delimiter="/", **where)
        found = tuple(item["Prefix"] for item in answer.get("CommonPrefixes", ()))
        return Page((), answer.get("NextContinuationToken"), found)

    def classify(self, error: Exception) -> Failure:
        if isinstance(error, ClientError):
            return _CODES.get(error.response.get("Error", {}).get("Code", "")) or classify_status(_status(error))
        if isinstance(error, SSLError | ProxyConnectionError):
            return Failure.REFUSED
        if isinstance(error, BotoCoreError) and not isinstance(error, BotoConnectionError | HTTPClientError):
            return Failure.REFUSED
        return classify_connection(error)

    async def disconnect(self) -> None:
        creator = getattr(self.file_system, "_s3creator", None)
        if creator is not None:
            await creator.__aexit__(None, None, None)

    async def _client(self) -> Any:
        await self.file_system.set_session()
        return await self.file_system.get_s3(self.name)


def _status(error: ClientError) -> int:
    status: int = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status

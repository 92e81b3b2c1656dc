"""Google Cloud Storage, through gcsfs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Any

import aiohttp
from gcsfs.core import GCSFileSystem
from gcsfs.retry import HttpError, validate_response

from lance_core.storage.services.bucket import (
    VACANT,
    Bucket,
    Failure,
    Found,
    IncompleteListing,
    Page,
    classify_connection,
    classify_status,
    on_loop,
)
from lance_core.storage.services.options import DEFAULT_CONNECTIONS, Connections


class GcsBucket(Bucket):
    """One bucket. `arguments` are those of gcsfs.

    The e_tag is the generation in quotes: unlike the e_tag of the service, it is never reused. Writes are POST
    requests, which the HTTP client does not resend. Tested against a fake that follows Google's documentation, because
    the available emulators do not support preconditions.
    """

    ordered = True

    def __init__(
        self,
        name: str,
        arguments: dict[str, Any],
        connections: Connections = DEFAULT_CONNECTIONS,
    ) -> None:
        self.file_system = GCSFileSystem(
            **arguments,
            use_listings_cache=False,
            skip_instance_cache=True,
            requests_timeout=aiohttp.ClientTimeout(
                sock_connect=connections.connect_timeout, sock_read=connections.answer_timeout
            ),
            session_kwargs={"trust_env": True, "proxy": connections.proxy},
        )
        self.service = ("gcs", arguments)
        self.name = name

    @on_loop
    async def read(self, key: str, check: Callable[[int], object]) -> bytes:
        system, path = self.file_system, "b/{}/o/{}"
        await system._set_session()  # noqa: SLF001
        async with system.session.request(
            "GET",
            system._format_path(path, (self.name, key)),  # noqa: SLF001
            params=system._get_params({"alt": "media"}),  # noqa: SLF001
            headers=system._get_headers(None),  # noqa: SLF001
            timeout=system.requests_timeout,
        ) as answer:
            if answer.status >= HTTPStatus.BAD_REQUEST:
                validate_response(answer.status, await answer.read(), path, (self.name, key))
            check(answer.content_length or 0)
            data = bytearray()
            async for part in answer.content.iter_any():  # a body that is decoded on the way may be longer than stated
                data += part
                check(len(data))
        return bytes(data)

    @on_loop
    async def read_range(self, key: str, start: int, length: int) -> bytes:
        limits = {"Range": f"bytes={start}-{start + length - 1}"}
        try:
            return await self._request("GET", "b/{}/o/{}", self.name, key, headers=limits, alt="media")
        except HttpError as error:
            if error.code == 416:
                return b""
            raise

    @on_loop
    async def stat(self, key: str) -> Found:
        return _found(json.loads(await self._request("GET", "b/{}/o/{}", self.name, key)))

    @on_loop
    async def write(self, key: str, data: bytes, condition: str | None) -> str:
        conditions = {}
        if condition is not None:
            conditions = {"ifGenerationMatch": "0" if condition == VACANT else condition.strip('"')}
        answer = await self._request(
            "POST",
            f"{self.file_system._location}/upload/storage/v1/b/{self.name}/o",  # noqa: SLF001
            headers={"Content-Type": "application/octet-stream"},
            data=io.BytesIO(data),
            uploadType="media",
            name=key,
            **conditions,
        )
        return _found(json.loads(answer)).e_tag

    @on_loop
    async def copy(self, origin: Any, source: str, key: str) -> None:
        names = (origin.name, source, self.name, key)
        token: dict[str, str] = {}
        while True:  # a long copy takes several calls, each with the token of the one before
            answer = json.loads(await self._request("POST", "b/{}/o/{}/rewriteTo/b/{}/o/{}", *names, **token))
            if answer["done"]:
                return
            token = {"rewriteToken": answer["rewriteToken"]}

    @on_loop
    async def remove(self, key: str, condition: str | None = None) -> None:
        conditions = {} if condition is None else {"ifGenerationMatch": condition.strip('"')}
        await self._request("DELETE", "b/{}/o/{}", self.name, key, **conditions)

    @on_loop
    async def page(self, prefix: str, start_after: str | None, token: str | None, *, limit: int | None = None) -> Page:
        where = {"startOffset": start_after, "pageToken": token, "maxResults": None if limit is None else str(limit)}
        answer = json.loads(
            await self._request(
                "GET", "b/{}/o", self.name, prefix=prefix, **{name: value for name, value in where.items() if value}
            )
        )
        return Page(tuple(_found(item) for item in answer.get("items", ())), _next_token(answer))

    @on_loop
    async def page_of_directories(self, prefix: str, token: str | None) -> Page:
        where = {} if token is None else {"pageToken": token}
        found = await self._request("GET", "b/{}/o", self.name, prefix=prefix, delimiter="/", **where)
        answer = json.loads(found)
        return Page((), _next_token(answer), tuple(answer.get("prefixes", ())))

    def classify(self, error: Exception) -> Failure:
        if isinstance(error, FileNotFoundError):
            return Failure.MISSING
        if isinstance(error, FileExistsError):
            return Failure.MISMATCH
        if isinstance(error, HttpError):
            return classify_status(int(error.code))
        if isinstance(error, ValueError) or str(error).startswith("Forbidden"):
            return Failure.REFUSED
        return classify_connection(error)

    @on_loop
    async def disconnect(self) -> None:
        session: aiohttp.ClientSession | None = self.file_system._session  # noqa: SLF001
        if session is not None:
            await session.close()

    async def _request(self, method: str, path: str, *names: str, **options: Any) -> bytes:
        # Bypasses the retrying decorator: a resent conditional write would find its own object.
        send = GCSFileSystem._request.__wrapped__  # noqa: SLF001
        _, _, _, content = await send(self.file_system, method, path, *names, **options)
        data: bytes = content
        return data


def _found(item: dict[str, Any]) -> Found:
    modified = datetime.fromisoformat(item["updated"])
    return Found(item["name"], int(item["size"]), f'"{item["generation"]}"', modified)


def _next_token(answer: Any) -> str | None:
    """The token of the page after this one, None at the end. Raises `IncompleteListing` for another answer."""
    if not isinstance(answer, dict) or answer.get("kind") != "storage#objects":
        raise IncompleteListing("expected a page of a listing, of the kind storage#objects, found another answer")
    return answer.get("nextPageToken") or None

from http import HTTPStatus
from io import BytesIO
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    id: str,
    column: str,
    row: int,
    *,
    delimiter: str | Unset = "$",
    version: int | Unset = UNSET,
    branch: str | Unset = UNSET,
    tag: str | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
    range_: str | Unset = UNSET,
    if_range: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(x_lance_catalog_version, Unset):
        headers["x-lance-catalog-version"] = str(x_lance_catalog_version)

    if not isinstance(x_lancedb_min_read_version, Unset):
        headers["x-lancedb-min-read-version"] = str(x_lancedb_min_read_version)

    if not isinstance(range_, Unset):
        headers["Range"] = range_

    if not isinstance(if_range, Unset):
        headers["If-Range"] = if_range

    if not isinstance(if_none_match, Unset):
        headers["If-None-Match"] = if_none_match

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params["version"] = version

    params["branch"] = branch

    params["tag"] = tag

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/table/{id}/blob/{column}/{row}/bytes".format(
            id=quote(str(id), safe=""),
            column=quote(str(column), safe=""),
            row=quote(str(row), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Any | ErrorResponse | File:
    if response.status_code == 200:
        response_200 = File(payload=BytesIO(response.content))

        return response_200

    if response.status_code == 204:
        response_204 = cast(Any, None)
        return response_204

    if response.status_code == 206:
        response_206 = File(payload=BytesIO(response.content))

        return response_206

    if response.status_code == 304:
        response_304 = cast(Any, None)
        return response_304

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Any | ErrorResponse | File]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: str,
    column: str,
    row: int,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    version: int | Unset = UNSET,
    branch: str | Unset = UNSET,
    tag: str | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
    range_: str | Unset = UNSET,
    if_range: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Response[Any | ErrorResponse | File]:
    """One value of a column of blobs, or a range of its bytes. Not in the published API; clients of
    LanceDB call it.

     HEAD is answered, too, with the length of the blob.

    Args:
        id (str):
        column (str):
        row (int):
        delimiter (str | Unset):  Default: '$'.
        version (int | Unset):
        branch (str | Unset):
        tag (str | Unset):
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        range_ (str | Unset):
        if_range (str | Unset):
        if_none_match (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorResponse | File]
    """

    kwargs = _get_kwargs(
        id=id,
        column=column,
        row=row,
        delimiter=delimiter,
        version=version,
        branch=branch,
        tag=tag,
        x_lance_catalog_version=x_lance_catalog_version,
        x_lancedb_min_read_version=x_lancedb_min_read_version,
        range_=range_,
        if_range=if_range,
        if_none_match=if_none_match,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    column: str,
    row: int,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    version: int | Unset = UNSET,
    branch: str | Unset = UNSET,
    tag: str | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
    range_: str | Unset = UNSET,
    if_range: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Any | ErrorResponse | File | None:
    """One value of a column of blobs, or a range of its bytes. Not in the published API; clients of
    LanceDB call it.

     HEAD is answered, too, with the length of the blob.

    Args:
        id (str):
        column (str):
        row (int):
        delimiter (str | Unset):  Default: '$'.
        version (int | Unset):
        branch (str | Unset):
        tag (str | Unset):
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        range_ (str | Unset):
        if_range (str | Unset):
        if_none_match (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorResponse | File
    """

    return sync_detailed(
        id=id,
        column=column,
        row=row,
        client=client,
        delimiter=delimiter,
        version=version,
        branch=branch,
        tag=tag,
        x_lance_catalog_version=x_lance_catalog_version,
        x_lancedb_min_read_version=x_lancedb_min_read_version,
        range_=range_,
        if_range=if_range,
        if_none_match=if_none_match,
    ).parsed


async def asyncio_detailed(
    id: str,
    column: str,
    row: int,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    version: int | Unset = UNSET,
    branch: str | Unset = UNSET,
    tag: str | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
    range_: str | Unset = UNSET,
    if_range: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Response[Any | ErrorResponse | File]:
    """One value of a column of blobs, or a range of its bytes. Not in the published API; clients of
    LanceDB call it.

     HEAD is answered, too, with the length of the blob.

    Args:
        id (str):
        column (str):
        row (int):
        delimiter (str | Unset):  Default: '$'.
        version (int | Unset):
        branch (str | Unset):
        tag (str | Unset):
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        range_ (str | Unset):
        if_range (str | Unset):
        if_none_match (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ErrorResponse | File]
    """

    kwargs = _get_kwargs(
        id=id,
        column=column,
        row=row,
        delimiter=delimiter,
        version=version,
        branch=branch,
        tag=tag,
        x_lance_catalog_version=x_lance_catalog_version,
        x_lancedb_min_read_version=x_lancedb_min_read_version,
        range_=range_,
        if_range=if_range,
        if_none_match=if_none_match,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    column: str,
    row: int,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    version: int | Unset = UNSET,
    branch: str | Unset = UNSET,
    tag: str | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
    range_: str | Unset = UNSET,
    if_range: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Any | ErrorResponse | File | None:
    """One value of a column of blobs, or a range of its bytes. Not in the published API; clients of
    LanceDB call it.

     HEAD is answered, too, with the length of the blob.

    Args:
        id (str):
        column (str):
        row (int):
        delimiter (str | Unset):  Default: '$'.
        version (int | Unset):
        branch (str | Unset):
        tag (str | Unset):
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        range_ (str | Unset):
        if_range (str | Unset):
        if_none_match (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ErrorResponse | File
    """

    return (
        await asyncio_detailed(
            id=id,
            column=column,
            row=row,
            client=client,
            delimiter=delimiter,
            version=version,
            branch=branch,
            tag=tag,
            x_lance_catalog_version=x_lance_catalog_version,
            x_lancedb_min_read_version=x_lancedb_min_read_version,
            range_=range_,
            if_range=if_range,
            if_none_match=if_none_match,
        )
    ).parsed

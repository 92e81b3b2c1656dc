from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.fetch_table_blobs_request import FetchTableBlobsRequest
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    id: str,
    *,
    body: FetchTableBlobsRequest,
    delimiter: str | Unset = "$",
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(x_lance_catalog_version, Unset):
        headers["x-lance-catalog-version"] = str(x_lance_catalog_version)

    if not isinstance(x_lancedb_min_read_version, Unset):
        headers["x-lancedb-min-read-version"] = str(x_lancedb_min_read_version)

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/fetch_blobs".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ErrorResponse | File:
    if response.status_code == 200:
        response_200 = File(payload=BytesIO(response.content))

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | File]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: FetchTableBlobsRequest,
    delimiter: str | Unset = "$",
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
) -> Response[ErrorResponse | File]:
    """Whole values of a column of blobs, of some rows. Not in the published API; clients of LanceDB call
    it.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        body (FetchTableBlobsRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | File]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        x_lance_catalog_version=x_lance_catalog_version,
        x_lancedb_min_read_version=x_lancedb_min_read_version,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: FetchTableBlobsRequest,
    delimiter: str | Unset = "$",
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
) -> ErrorResponse | File | None:
    """Whole values of a column of blobs, of some rows. Not in the published API; clients of LanceDB call
    it.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        body (FetchTableBlobsRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | File
    """

    return sync_detailed(
        id=id,
        client=client,
        body=body,
        delimiter=delimiter,
        x_lance_catalog_version=x_lance_catalog_version,
        x_lancedb_min_read_version=x_lancedb_min_read_version,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: FetchTableBlobsRequest,
    delimiter: str | Unset = "$",
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
) -> Response[ErrorResponse | File]:
    """Whole values of a column of blobs, of some rows. Not in the published API; clients of LanceDB call
    it.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        body (FetchTableBlobsRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | File]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        x_lance_catalog_version=x_lance_catalog_version,
        x_lancedb_min_read_version=x_lancedb_min_read_version,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: FetchTableBlobsRequest,
    delimiter: str | Unset = "$",
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
) -> ErrorResponse | File | None:
    """Whole values of a column of blobs, of some rows. Not in the published API; clients of LanceDB call
    it.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        body (FetchTableBlobsRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | File
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            body=body,
            delimiter=delimiter,
            x_lance_catalog_version=x_lance_catalog_version,
            x_lancedb_min_read_version=x_lancedb_min_read_version,
        )
    ).parsed

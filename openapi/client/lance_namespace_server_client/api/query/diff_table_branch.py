from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.branch_difference import BranchDifference
from ...models.diff_table_branch_request import DiffTableBranchRequest
from ...models.error_response import ErrorResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    *,
    body: DiffTableBranchRequest,
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
        "url": "/v1/table/{id}/branches/diff".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> BranchDifference | ErrorResponse:
    if response.status_code == 200:
        response_200 = BranchDifference.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[BranchDifference | ErrorResponse]:
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
    body: DiffTableBranchRequest,
    delimiter: str | Unset = "$",
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
) -> Response[BranchDifference | ErrorResponse]:
    """What a branch changed since it began, beside main.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        body (DiffTableBranchRequest): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BranchDifference | ErrorResponse]
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
    body: DiffTableBranchRequest,
    delimiter: str | Unset = "$",
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
) -> BranchDifference | ErrorResponse | None:
    """What a branch changed since it began, beside main.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        body (DiffTableBranchRequest): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BranchDifference | ErrorResponse
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
    body: DiffTableBranchRequest,
    delimiter: str | Unset = "$",
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
) -> Response[BranchDifference | ErrorResponse]:
    """What a branch changed since it began, beside main.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        body (DiffTableBranchRequest): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BranchDifference | ErrorResponse]
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
    body: DiffTableBranchRequest,
    delimiter: str | Unset = "$",
    x_lance_catalog_version: int | Unset = UNSET,
    x_lancedb_min_read_version: int | Unset = UNSET,
) -> BranchDifference | ErrorResponse | None:
    """What a branch changed since it began, beside main.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        x_lance_catalog_version (int | Unset):
        x_lancedb_min_read_version (int | Unset):
        body (DiffTableBranchRequest): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BranchDifference | ErrorResponse
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

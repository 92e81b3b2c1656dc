from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.describe_catalog_version_response import DescribeCatalogVersionResponse
from ...models.error_response import ErrorResponse
from ...types import Response


def _get_kwargs(
    version: int,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/catalog/versions/{version}".format(
            version=quote(str(version), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DescribeCatalogVersionResponse | ErrorResponse:
    if response.status_code == 200:
        response_200 = DescribeCatalogVersionResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[DescribeCatalogVersionResponse | ErrorResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    version: int,
    *,
    client: AuthenticatedClient | Client,
) -> Response[DescribeCatalogVersionResponse | ErrorResponse]:
    """The tables of one catalog version, and the table version that each was at.

    Args:
        version (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DescribeCatalogVersionResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        version=version,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    version: int,
    *,
    client: AuthenticatedClient | Client,
) -> DescribeCatalogVersionResponse | ErrorResponse | None:
    """The tables of one catalog version, and the table version that each was at.

    Args:
        version (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DescribeCatalogVersionResponse | ErrorResponse
    """

    return sync_detailed(
        version=version,
        client=client,
    ).parsed


async def asyncio_detailed(
    version: int,
    *,
    client: AuthenticatedClient | Client,
) -> Response[DescribeCatalogVersionResponse | ErrorResponse]:
    """The tables of one catalog version, and the table version that each was at.

    Args:
        version (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DescribeCatalogVersionResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        version=version,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    version: int,
    *,
    client: AuthenticatedClient | Client,
) -> DescribeCatalogVersionResponse | ErrorResponse | None:
    """The tables of one catalog version, and the table version that each was at.

    Args:
        version (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DescribeCatalogVersionResponse | ErrorResponse
    """

    return (
        await asyncio_detailed(
            version=version,
            client=client,
        )
    ).parsed

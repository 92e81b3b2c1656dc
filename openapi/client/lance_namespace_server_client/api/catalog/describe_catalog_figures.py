from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.catalog_figures import CatalogFigures
from ...models.error_response import ErrorResponse
from ...types import Response


def _get_kwargs() -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/catalog/figures",
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CatalogFigures | ErrorResponse:
    if response.status_code == 200:
        response_200 = CatalogFigures.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CatalogFigures | ErrorResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
) -> Response[CatalogFigures | ErrorResponse]:
    """Tables, rows, bytes and versions of the newest catalog version, as far as they are known.

     Nothing is read before it is asked for. Each request looks at up to 256 tables whose newest versions
    the server does not know, for some tenths of a second, and remembers up to 32,768 tables: a small
    catalog is known at once, and of a large one more with each request. A version that is damaged or
    missing is not known. Looks take a fiftieth of the time at most: in a catalog that changes all the
    time the answer is of the catalog version of some seconds ago, which it names. Needs `see` on the
    catalog. Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CatalogFigures | ErrorResponse]
    """

    kwargs = _get_kwargs()

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
) -> CatalogFigures | ErrorResponse | None:
    """Tables, rows, bytes and versions of the newest catalog version, as far as they are known.

     Nothing is read before it is asked for. Each request looks at up to 256 tables whose newest versions
    the server does not know, for some tenths of a second, and remembers up to 32,768 tables: a small
    catalog is known at once, and of a large one more with each request. A version that is damaged or
    missing is not known. Looks take a fiftieth of the time at most: in a catalog that changes all the
    time the answer is of the catalog version of some seconds ago, which it names. Needs `see` on the
    catalog. Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CatalogFigures | ErrorResponse
    """

    return sync_detailed(
        client=client,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
) -> Response[CatalogFigures | ErrorResponse]:
    """Tables, rows, bytes and versions of the newest catalog version, as far as they are known.

     Nothing is read before it is asked for. Each request looks at up to 256 tables whose newest versions
    the server does not know, for some tenths of a second, and remembers up to 32,768 tables: a small
    catalog is known at once, and of a large one more with each request. A version that is damaged or
    missing is not known. Looks take a fiftieth of the time at most: in a catalog that changes all the
    time the answer is of the catalog version of some seconds ago, which it names. Needs `see` on the
    catalog. Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CatalogFigures | ErrorResponse]
    """

    kwargs = _get_kwargs()

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
) -> CatalogFigures | ErrorResponse | None:
    """Tables, rows, bytes and versions of the newest catalog version, as far as they are known.

     Nothing is read before it is asked for. Each request looks at up to 256 tables whose newest versions
    the server does not know, for some tenths of a second, and remembers up to 32,768 tables: a small
    catalog is known at once, and of a large one more with each request. A version that is damaged or
    missing is not known. Looks take a fiftieth of the time at most: in a catalog that changes all the
    time the answer is of the catalog version of some seconds ago, which it names. Needs `see` on the
    catalog. Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CatalogFigures | ErrorResponse
    """

    return (
        await asyncio_detailed(
            client=client,
        )
    ).parsed

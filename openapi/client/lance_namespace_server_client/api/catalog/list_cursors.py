from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.list_cursors_response import ListCursorsResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    x_lance_catalog_version: int | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(x_lance_catalog_version, Unset):
        headers["x-lance-catalog-version"] = str(x_lance_catalog_version)

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/catalog/cursors",
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorResponse | ListCursorsResponse:
    if response.status_code == 200:
        response_200 = ListCursorsResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | ListCursorsResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[ErrorResponse | ListCursorsResponse]:
    """How far consumers of events have come, by the name of their cursor.

    Args:
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListCursorsResponse]
    """

    kwargs = _get_kwargs(
        x_lance_catalog_version=x_lance_catalog_version,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    x_lance_catalog_version: int | Unset = UNSET,
) -> ErrorResponse | ListCursorsResponse | None:
    """How far consumers of events have come, by the name of their cursor.

    Args:
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListCursorsResponse
    """

    return sync_detailed(
        client=client,
        x_lance_catalog_version=x_lance_catalog_version,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[ErrorResponse | ListCursorsResponse]:
    """How far consumers of events have come, by the name of their cursor.

    Args:
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListCursorsResponse]
    """

    kwargs = _get_kwargs(
        x_lance_catalog_version=x_lance_catalog_version,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    x_lance_catalog_version: int | Unset = UNSET,
) -> ErrorResponse | ListCursorsResponse | None:
    """How far consumers of events have come, by the name of their cursor.

    Args:
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListCursorsResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            x_lance_catalog_version=x_lance_catalog_version,
        )
    ).parsed

from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.find_tables_response import FindTablesResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    text: str,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(x_lance_catalog_version, Unset):
        headers["x-lance-catalog-version"] = str(x_lance_catalog_version)

    params: dict[str, Any] = {}

    params["text"] = text

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/catalog/tables",
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorResponse | FindTablesResponse:
    if response.status_code == 200:
        response_200 = FindTablesResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | FindTablesResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    text: str,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[ErrorResponse | FindTablesResponse]:
    """Tables by words of their ids, as one types them.

     Of `text`, what separates names and spaces separate words. A table is found whose id has all of
    them, in any case and order. Tables that are called as the last word come first, then those whose
    name begins with it, then the others, each in the order of their namespaces. Not part of the
    published namespace API.

    Args:
        text (str):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | FindTablesResponse]
    """

    kwargs = _get_kwargs(
        text=text,
        limit=limit,
        x_lance_catalog_version=x_lance_catalog_version,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    text: str,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> ErrorResponse | FindTablesResponse | None:
    """Tables by words of their ids, as one types them.

     Of `text`, what separates names and spaces separate words. A table is found whose id has all of
    them, in any case and order. Tables that are called as the last word come first, then those whose
    name begins with it, then the others, each in the order of their namespaces. Not part of the
    published namespace API.

    Args:
        text (str):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | FindTablesResponse
    """

    return sync_detailed(
        client=client,
        text=text,
        limit=limit,
        x_lance_catalog_version=x_lance_catalog_version,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    text: str,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[ErrorResponse | FindTablesResponse]:
    """Tables by words of their ids, as one types them.

     Of `text`, what separates names and spaces separate words. A table is found whose id has all of
    them, in any case and order. Tables that are called as the last word come first, then those whose
    name begins with it, then the others, each in the order of their namespaces. Not part of the
    published namespace API.

    Args:
        text (str):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | FindTablesResponse]
    """

    kwargs = _get_kwargs(
        text=text,
        limit=limit,
        x_lance_catalog_version=x_lance_catalog_version,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    text: str,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> ErrorResponse | FindTablesResponse | None:
    """Tables by words of their ids, as one types them.

     Of `text`, what separates names and spaces separate words. A table is found whose id has all of
    them, in any case and order. Tables that are called as the last word come first, then those whose
    name begins with it, then the others, each in the order of their namespaces. Not part of the
    published namespace API.

    Args:
        text (str):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | FindTablesResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            text=text,
            limit=limit,
            x_lance_catalog_version=x_lance_catalog_version,
        )
    ).parsed

from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.list_grants_response import ListGrantsResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    principal: str | Unset = UNSET,
    role: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(x_lance_catalog_version, Unset):
        headers["x-lance-catalog-version"] = str(x_lance_catalog_version)

    params: dict[str, Any] = {}

    params["principal"] = principal

    params["role"] = role

    params["object"] = object_

    params["page_token"] = page_token

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/catalog/grants",
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorResponse | ListGrantsResponse:
    if response.status_code == 200:
        response_200 = ListGrantsResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | ListGrantsResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    principal: str | Unset = UNSET,
    role: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[ErrorResponse | ListGrantsResponse]:
    """Grants, by object and grantee, and roles. Callers see their own, and those on what they may grant.

    Args:
        principal (str | Unset):
        role (str | Unset):
        object_ (str | Unset):
        page_token (str | Unset):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListGrantsResponse]
    """

    kwargs = _get_kwargs(
        principal=principal,
        role=role,
        object_=object_,
        page_token=page_token,
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
    principal: str | Unset = UNSET,
    role: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> ErrorResponse | ListGrantsResponse | None:
    """Grants, by object and grantee, and roles. Callers see their own, and those on what they may grant.

    Args:
        principal (str | Unset):
        role (str | Unset):
        object_ (str | Unset):
        page_token (str | Unset):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListGrantsResponse
    """

    return sync_detailed(
        client=client,
        principal=principal,
        role=role,
        object_=object_,
        page_token=page_token,
        limit=limit,
        x_lance_catalog_version=x_lance_catalog_version,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    principal: str | Unset = UNSET,
    role: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[ErrorResponse | ListGrantsResponse]:
    """Grants, by object and grantee, and roles. Callers see their own, and those on what they may grant.

    Args:
        principal (str | Unset):
        role (str | Unset):
        object_ (str | Unset):
        page_token (str | Unset):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListGrantsResponse]
    """

    kwargs = _get_kwargs(
        principal=principal,
        role=role,
        object_=object_,
        page_token=page_token,
        limit=limit,
        x_lance_catalog_version=x_lance_catalog_version,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    principal: str | Unset = UNSET,
    role: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> ErrorResponse | ListGrantsResponse | None:
    """Grants, by object and grantee, and roles. Callers see their own, and those on what they may grant.

    Args:
        principal (str | Unset):
        role (str | Unset):
        object_ (str | Unset):
        page_token (str | Unset):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListGrantsResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            principal=principal,
            role=role,
            object_=object_,
            page_token=page_token,
            limit=limit,
            x_lance_catalog_version=x_lance_catalog_version,
        )
    ).parsed

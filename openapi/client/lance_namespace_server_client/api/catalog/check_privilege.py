from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.check_privilege_request import CheckPrivilegeRequest
from ...models.check_privilege_response import CheckPrivilegeResponse
from ...models.error_response import ErrorResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: CheckPrivilegeRequest,
    x_lance_catalog_version: int | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(x_lance_catalog_version, Unset):
        headers["x-lance-catalog-version"] = str(x_lance_catalog_version)

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/catalog/can",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CheckPrivilegeResponse | ErrorResponse:
    if response.status_code == 200:
        response_200 = CheckPrivilegeResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CheckPrivilegeResponse | ErrorResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CheckPrivilegeRequest,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[CheckPrivilegeResponse | ErrorResponse]:
    """Whether a privilege is held on an object, and by which grant.

     Every caller may ask about itself. About another one only who may grant on the object: others are
    denied, code 15.

    Args:
        x_lance_catalog_version (int | Unset):
        body (CheckPrivilegeRequest): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CheckPrivilegeResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        body=body,
        x_lance_catalog_version=x_lance_catalog_version,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: CheckPrivilegeRequest,
    x_lance_catalog_version: int | Unset = UNSET,
) -> CheckPrivilegeResponse | ErrorResponse | None:
    """Whether a privilege is held on an object, and by which grant.

     Every caller may ask about itself. About another one only who may grant on the object: others are
    denied, code 15.

    Args:
        x_lance_catalog_version (int | Unset):
        body (CheckPrivilegeRequest): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CheckPrivilegeResponse | ErrorResponse
    """

    return sync_detailed(
        client=client,
        body=body,
        x_lance_catalog_version=x_lance_catalog_version,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CheckPrivilegeRequest,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[CheckPrivilegeResponse | ErrorResponse]:
    """Whether a privilege is held on an object, and by which grant.

     Every caller may ask about itself. About another one only who may grant on the object: others are
    denied, code 15.

    Args:
        x_lance_catalog_version (int | Unset):
        body (CheckPrivilegeRequest): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CheckPrivilegeResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        body=body,
        x_lance_catalog_version=x_lance_catalog_version,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CheckPrivilegeRequest,
    x_lance_catalog_version: int | Unset = UNSET,
) -> CheckPrivilegeResponse | ErrorResponse | None:
    """Whether a privilege is held on an object, and by which grant.

     Every caller may ask about itself. About another one only who may grant on the object: others are
    denied, code 15.

    Args:
        x_lance_catalog_version (int | Unset):
        body (CheckPrivilegeRequest): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CheckPrivilegeResponse | ErrorResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            x_lance_catalog_version=x_lance_catalog_version,
        )
    ).parsed

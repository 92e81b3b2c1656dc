from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.change_grants_request import ChangeGrantsRequest
from ...models.change_grants_response import ChangeGrantsResponse
from ...models.error_response import ErrorResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: ChangeGrantsRequest,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/catalog/grants",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ChangeGrantsResponse | ErrorResponse:
    if response.status_code == 200:
        response_200 = ChangeGrantsResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ChangeGrantsResponse | ErrorResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ChangeGrantsRequest,
    idempotency_key: str | Unset = UNSET,
) -> Response[ChangeGrantsResponse | ErrorResponse]:
    """Grant and revoke privileges and roles, all or nothing, in one catalog version.

     What is revoked goes first. The operations of a batch do the same, beside changes of tables.

    Args:
        idempotency_key (str | Unset):
        body (ChangeGrantsRequest): At least one change. Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChangeGrantsResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: ChangeGrantsRequest,
    idempotency_key: str | Unset = UNSET,
) -> ChangeGrantsResponse | ErrorResponse | None:
    """Grant and revoke privileges and roles, all or nothing, in one catalog version.

     What is revoked goes first. The operations of a batch do the same, beside changes of tables.

    Args:
        idempotency_key (str | Unset):
        body (ChangeGrantsRequest): At least one change. Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChangeGrantsResponse | ErrorResponse
    """

    return sync_detailed(
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ChangeGrantsRequest,
    idempotency_key: str | Unset = UNSET,
) -> Response[ChangeGrantsResponse | ErrorResponse]:
    """Grant and revoke privileges and roles, all or nothing, in one catalog version.

     What is revoked goes first. The operations of a batch do the same, beside changes of tables.

    Args:
        idempotency_key (str | Unset):
        body (ChangeGrantsRequest): At least one change. Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChangeGrantsResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: ChangeGrantsRequest,
    idempotency_key: str | Unset = UNSET,
) -> ChangeGrantsResponse | ErrorResponse | None:
    """Grant and revoke privileges and roles, all or nothing, in one catalog version.

     What is revoked goes first. The operations of a batch do the same, beside changes of tables.

    Args:
        idempotency_key (str | Unset):
        body (ChangeGrantsRequest): At least one change. Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChangeGrantsResponse | ErrorResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed

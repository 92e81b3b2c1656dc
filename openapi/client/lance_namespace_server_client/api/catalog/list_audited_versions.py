from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.list_audited_versions_response import ListAuditedVersionsResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["page_token"] = page_token

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/catalog/audit/versions",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorResponse | ListAuditedVersionsResponse:
    if response.status_code == 200:
        response_200 = ListAuditedVersionsResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | ListAuditedVersionsResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[ErrorResponse | ListAuditedVersionsResponse]:
    """Retained versions of the catalog, newest first, with the batches that made them and where each came
    from.

     For principals alone that `audit_readers` names, in the settings of the server, or that have `grant`
    on the catalog; else code 15.

    Args:
        page_token (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListAuditedVersionsResponse]
    """

    kwargs = _get_kwargs(
        page_token=page_token,
        limit=limit,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> ErrorResponse | ListAuditedVersionsResponse | None:
    """Retained versions of the catalog, newest first, with the batches that made them and where each came
    from.

     For principals alone that `audit_readers` names, in the settings of the server, or that have `grant`
    on the catalog; else code 15.

    Args:
        page_token (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListAuditedVersionsResponse
    """

    return sync_detailed(
        client=client,
        page_token=page_token,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[ErrorResponse | ListAuditedVersionsResponse]:
    """Retained versions of the catalog, newest first, with the batches that made them and where each came
    from.

     For principals alone that `audit_readers` names, in the settings of the server, or that have `grant`
    on the catalog; else code 15.

    Args:
        page_token (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListAuditedVersionsResponse]
    """

    kwargs = _get_kwargs(
        page_token=page_token,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> ErrorResponse | ListAuditedVersionsResponse | None:
    """Retained versions of the catalog, newest first, with the batches that made them and where each came
    from.

     For principals alone that `audit_readers` names, in the settings of the server, or that have `grant`
    on the catalog; else code 15.

    Args:
        page_token (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListAuditedVersionsResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            page_token=page_token,
            limit=limit,
        )
    ).parsed

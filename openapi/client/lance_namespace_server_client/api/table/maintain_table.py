from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.maintain_table_request import MaintainTableRequest
from ...models.maintain_table_response import MaintainTableResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    *,
    body: MaintainTableRequest | Unset = UNSET,
    delimiter: str | Unset = "$",
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/maintain".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorResponse | MaintainTableResponse:
    if response.status_code == 200:
        response_200 = MaintainTableResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | MaintainTableResponse]:
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
    body: MaintainTableRequest | Unset = UNSET,
    delimiter: str | Unset = "$",
    idempotency_key: str | Unset = UNSET,
) -> Response[ErrorResponse | MaintainTableResponse]:
    """Compact the main branch of a table and extend its indices, where that is worth it; or say what is.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        idempotency_key (str | Unset):
        body (MaintainTableRequest | Unset): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | MaintainTableResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: MaintainTableRequest | Unset = UNSET,
    delimiter: str | Unset = "$",
    idempotency_key: str | Unset = UNSET,
) -> ErrorResponse | MaintainTableResponse | None:
    """Compact the main branch of a table and extend its indices, where that is worth it; or say what is.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        idempotency_key (str | Unset):
        body (MaintainTableRequest | Unset): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | MaintainTableResponse
    """

    return sync_detailed(
        id=id,
        client=client,
        body=body,
        delimiter=delimiter,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: MaintainTableRequest | Unset = UNSET,
    delimiter: str | Unset = "$",
    idempotency_key: str | Unset = UNSET,
) -> Response[ErrorResponse | MaintainTableResponse]:
    """Compact the main branch of a table and extend its indices, where that is worth it; or say what is.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        idempotency_key (str | Unset):
        body (MaintainTableRequest | Unset): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | MaintainTableResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: MaintainTableRequest | Unset = UNSET,
    delimiter: str | Unset = "$",
    idempotency_key: str | Unset = UNSET,
) -> ErrorResponse | MaintainTableResponse | None:
    """Compact the main branch of a table and extend its indices, where that is worth it; or say what is.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        idempotency_key (str | Unset):
        body (MaintainTableRequest | Unset): Not part of the published namespace API.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | MaintainTableResponse
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            body=body,
            delimiter=delimiter,
            idempotency_key=idempotency_key,
        )
    ).parsed

from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.batch_commit_tables_request import BatchCommitTablesRequest
from ...models.batch_commit_tables_response import BatchCommitTablesResponse
from ...models.error_response import ErrorResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: BatchCommitTablesRequest,
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
        "url": "/v1/table/batch-commit",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> BatchCommitTablesResponse | ErrorResponse:
    if response.status_code == 200:
        response_200 = BatchCommitTablesResponse.from_dict(response.json())

        return response_200

    if response.status_code == 409:
        response_409 = ErrorResponse.from_dict(response.json())

        return response_409

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[BatchCommitTablesResponse | ErrorResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: BatchCommitTablesRequest,
    delimiter: str | Unset = "$",
    idempotency_key: str | Unset = UNSET,
) -> Response[BatchCommitTablesResponse | ErrorResponse]:
    """Change many tables, all or none.

     The operations are applied in order, each sees the effects of those before it, and all become
    visible with one
    commit of the catalog. If the outcome cannot be known (the storage's answer was lost) the answer is
    503 with code
    17, and `detail` names the batch: repeat the same request, under the same `Idempotency-Key` if there
    was one.

    Args:
        delimiter (str | Unset):  Default: '$'.
        idempotency_key (str | Unset):
        body (BatchCommitTablesRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BatchCommitTablesResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        body=body,
        delimiter=delimiter,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: BatchCommitTablesRequest,
    delimiter: str | Unset = "$",
    idempotency_key: str | Unset = UNSET,
) -> BatchCommitTablesResponse | ErrorResponse | None:
    """Change many tables, all or none.

     The operations are applied in order, each sees the effects of those before it, and all become
    visible with one
    commit of the catalog. If the outcome cannot be known (the storage's answer was lost) the answer is
    503 with code
    17, and `detail` names the batch: repeat the same request, under the same `Idempotency-Key` if there
    was one.

    Args:
        delimiter (str | Unset):  Default: '$'.
        idempotency_key (str | Unset):
        body (BatchCommitTablesRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BatchCommitTablesResponse | ErrorResponse
    """

    return sync_detailed(
        client=client,
        body=body,
        delimiter=delimiter,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: BatchCommitTablesRequest,
    delimiter: str | Unset = "$",
    idempotency_key: str | Unset = UNSET,
) -> Response[BatchCommitTablesResponse | ErrorResponse]:
    """Change many tables, all or none.

     The operations are applied in order, each sees the effects of those before it, and all become
    visible with one
    commit of the catalog. If the outcome cannot be known (the storage's answer was lost) the answer is
    503 with code
    17, and `detail` names the batch: repeat the same request, under the same `Idempotency-Key` if there
    was one.

    Args:
        delimiter (str | Unset):  Default: '$'.
        idempotency_key (str | Unset):
        body (BatchCommitTablesRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BatchCommitTablesResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        body=body,
        delimiter=delimiter,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: BatchCommitTablesRequest,
    delimiter: str | Unset = "$",
    idempotency_key: str | Unset = UNSET,
) -> BatchCommitTablesResponse | ErrorResponse | None:
    """Change many tables, all or none.

     The operations are applied in order, each sees the effects of those before it, and all become
    visible with one
    commit of the catalog. If the outcome cannot be known (the storage's answer was lost) the answer is
    503 with code
    17, and `detail` names the batch: repeat the same request, under the same `Idempotency-Key` if there
    was one.

    Args:
        delimiter (str | Unset):  Default: '$'.
        idempotency_key (str | Unset):
        body (BatchCommitTablesRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BatchCommitTablesResponse | ErrorResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            delimiter=delimiter,
            idempotency_key=idempotency_key,
        )
    ).parsed

from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.insert_into_table_response import InsertIntoTableResponse
from ...types import UNSET, File, Response, Unset, chunks


def _get_kwargs(
    id: str,
    *,
    body: File,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    mode: str | Unset = UNSET,
    upload_id: UUID | Unset = UNSET,
    upload_part_id: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params["branch"] = branch

    params["mode"] = mode

    json_upload_id: str | Unset = UNSET
    if not isinstance(upload_id, Unset):
        json_upload_id = str(upload_id)
    params["upload_id"] = json_upload_id

    params["upload_part_id"] = upload_part_id

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/insert".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    _kwargs["content"] = body.payload
    headers["Content-Type"] = "application/vnd.apache.arrow.stream"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorResponse | InsertIntoTableResponse:
    if response.status_code == 200:
        response_200 = InsertIntoTableResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | InsertIntoTableResponse]:
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
    body: File,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    mode: str | Unset = UNSET,
    upload_id: UUID | Unset = UNSET,
    upload_part_id: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[ErrorResponse | InsertIntoTableResponse]:
    """Append rows to a table, or replace all its rows.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        mode (str | Unset):
        upload_id (UUID | Unset):
        upload_part_id (str | Unset):
        idempotency_key (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | InsertIntoTableResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        branch=branch,
        mode=mode,
        upload_id=upload_id,
        upload_part_id=upload_part_id,
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
    body: File,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    mode: str | Unset = UNSET,
    upload_id: UUID | Unset = UNSET,
    upload_part_id: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> ErrorResponse | InsertIntoTableResponse | None:
    """Append rows to a table, or replace all its rows.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        mode (str | Unset):
        upload_id (UUID | Unset):
        upload_part_id (str | Unset):
        idempotency_key (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | InsertIntoTableResponse
    """

    return sync_detailed(
        id=id,
        client=client,
        body=body,
        delimiter=delimiter,
        branch=branch,
        mode=mode,
        upload_id=upload_id,
        upload_part_id=upload_part_id,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    mode: str | Unset = UNSET,
    upload_id: UUID | Unset = UNSET,
    upload_part_id: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[ErrorResponse | InsertIntoTableResponse]:
    """Append rows to a table, or replace all its rows.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        mode (str | Unset):
        upload_id (UUID | Unset):
        upload_part_id (str | Unset):
        idempotency_key (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | InsertIntoTableResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        branch=branch,
        mode=mode,
        upload_id=upload_id,
        upload_part_id=upload_part_id,
        idempotency_key=idempotency_key,
    )

    kwargs["content"] = chunks(kwargs["content"])
    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    mode: str | Unset = UNSET,
    upload_id: UUID | Unset = UNSET,
    upload_part_id: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> ErrorResponse | InsertIntoTableResponse | None:
    """Append rows to a table, or replace all its rows.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        mode (str | Unset):
        upload_id (UUID | Unset):
        upload_part_id (str | Unset):
        idempotency_key (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | InsertIntoTableResponse
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            body=body,
            delimiter=delimiter,
            branch=branch,
            mode=mode,
            upload_id=upload_id,
            upload_part_id=upload_part_id,
            idempotency_key=idempotency_key,
        )
    ).parsed

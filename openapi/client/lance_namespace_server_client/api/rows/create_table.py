from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.create_table_response import CreateTableResponse
from ...models.error_response import ErrorResponse
from ...types import UNSET, File, Response, Unset, chunks


def _get_kwargs(
    id: str,
    *,
    body: File,
    delimiter: str | Unset = "$",
    mode: str | Unset = UNSET,
    properties: str | Unset = UNSET,
    storage_options: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params["mode"] = mode

    params["properties"] = properties

    params["storage_options"] = storage_options

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/create".format(
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
) -> CreateTableResponse | ErrorResponse:
    if response.status_code == 200:
        response_200 = CreateTableResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CreateTableResponse | ErrorResponse]:
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
    mode: str | Unset = UNSET,
    properties: str | Unset = UNSET,
    storage_options: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[CreateTableResponse | ErrorResponse]:
    """Create a table from rows; name, properties and first version appear together.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        mode (str | Unset):
        properties (str | Unset):
        storage_options (str | Unset):
        idempotency_key (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateTableResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        mode=mode,
        properties=properties,
        storage_options=storage_options,
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
    mode: str | Unset = UNSET,
    properties: str | Unset = UNSET,
    storage_options: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> CreateTableResponse | ErrorResponse | None:
    """Create a table from rows; name, properties and first version appear together.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        mode (str | Unset):
        properties (str | Unset):
        storage_options (str | Unset):
        idempotency_key (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateTableResponse | ErrorResponse
    """

    return sync_detailed(
        id=id,
        client=client,
        body=body,
        delimiter=delimiter,
        mode=mode,
        properties=properties,
        storage_options=storage_options,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    delimiter: str | Unset = "$",
    mode: str | Unset = UNSET,
    properties: str | Unset = UNSET,
    storage_options: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[CreateTableResponse | ErrorResponse]:
    """Create a table from rows; name, properties and first version appear together.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        mode (str | Unset):
        properties (str | Unset):
        storage_options (str | Unset):
        idempotency_key (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateTableResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        mode=mode,
        properties=properties,
        storage_options=storage_options,
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
    mode: str | Unset = UNSET,
    properties: str | Unset = UNSET,
    storage_options: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> CreateTableResponse | ErrorResponse | None:
    """Create a table from rows; name, properties and first version appear together.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        mode (str | Unset):
        properties (str | Unset):
        storage_options (str | Unset):
        idempotency_key (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateTableResponse | ErrorResponse
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            body=body,
            delimiter=delimiter,
            mode=mode,
            properties=properties,
            storage_options=storage_options,
            idempotency_key=idempotency_key,
        )
    ).parsed

from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.drop_table_index_response import DropTableIndexResponse
from ...models.error_response import ErrorResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    index_name: str,
    *,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params["branch"] = branch

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/index/{index_name}/drop".format(
            id=quote(str(id), safe=""),
            index_name=quote(str(index_name), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DropTableIndexResponse | ErrorResponse:
    if response.status_code == 200:
        response_200 = DropTableIndexResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[DropTableIndexResponse | ErrorResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: str,
    index_name: str,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[DropTableIndexResponse | ErrorResponse]:
    """Remove an index. A body is not needed.

    Args:
        id (str):
        index_name (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DropTableIndexResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        index_name=index_name,
        delimiter=delimiter,
        branch=branch,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    index_name: str,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> DropTableIndexResponse | ErrorResponse | None:
    """Remove an index. A body is not needed.

    Args:
        id (str):
        index_name (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DropTableIndexResponse | ErrorResponse
    """

    return sync_detailed(
        id=id,
        index_name=index_name,
        client=client,
        delimiter=delimiter,
        branch=branch,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    id: str,
    index_name: str,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[DropTableIndexResponse | ErrorResponse]:
    """Remove an index. A body is not needed.

    Args:
        id (str):
        index_name (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DropTableIndexResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        index_name=index_name,
        delimiter=delimiter,
        branch=branch,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    index_name: str,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> DropTableIndexResponse | ErrorResponse | None:
    """Remove an index. A body is not needed.

    Args:
        id (str):
        index_name (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        idempotency_key (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DropTableIndexResponse | ErrorResponse
    """

    return (
        await asyncio_detailed(
            id=id,
            index_name=index_name,
            client=client,
            delimiter=delimiter,
            branch=branch,
            idempotency_key=idempotency_key,
        )
    ).parsed

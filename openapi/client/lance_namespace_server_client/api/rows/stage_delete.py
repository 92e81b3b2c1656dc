from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.delete_from_table_request import DeleteFromTableRequest
from ...models.error_response import ErrorResponse
from ...models.stage_delete_response import StageDeleteResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    *,
    body: DeleteFromTableRequest,
    delimiter: str | Unset = "$",
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/stage_delete".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorResponse | StageDeleteResponse:
    if response.status_code == 200:
        response_200 = StageDeleteResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | StageDeleteResponse]:
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
    body: DeleteFromTableRequest,
    delimiter: str | Unset = "$",
) -> Response[ErrorResponse | StageDeleteResponse]:
    """Write a deletion for a batch that commits it, together with other changes. Not in the published API.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        body (DeleteFromTableRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | StageDeleteResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: DeleteFromTableRequest,
    delimiter: str | Unset = "$",
) -> ErrorResponse | StageDeleteResponse | None:
    """Write a deletion for a batch that commits it, together with other changes. Not in the published API.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        body (DeleteFromTableRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | StageDeleteResponse
    """

    return sync_detailed(
        id=id,
        client=client,
        body=body,
        delimiter=delimiter,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: DeleteFromTableRequest,
    delimiter: str | Unset = "$",
) -> Response[ErrorResponse | StageDeleteResponse]:
    """Write a deletion for a batch that commits it, together with other changes. Not in the published API.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        body (DeleteFromTableRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | StageDeleteResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: DeleteFromTableRequest,
    delimiter: str | Unset = "$",
) -> ErrorResponse | StageDeleteResponse | None:
    """Write a deletion for a batch that commits it, together with other changes. Not in the published API.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        body (DeleteFromTableRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | StageDeleteResponse
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            body=body,
            delimiter=delimiter,
        )
    ).parsed

from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx

from ...client import AuthenticatedClient, Client
from ...models.complete_multipart_write_request import CompleteMultipartWriteRequest
from ...models.error_response import ErrorResponse
from ...models.insert_into_table_response import InsertIntoTableResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    *,
    body: CompleteMultipartWriteRequest | Unset = UNSET,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    upload_id: UUID,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params["branch"] = branch

    json_upload_id = str(upload_id)
    params["upload_id"] = json_upload_id

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/multipart_write/complete".format(
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
    body: CompleteMultipartWriteRequest | Unset = UNSET,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    upload_id: UUID,
) -> Response[ErrorResponse | InsertIntoTableResponse]:
    """Commit the rows of all parts of an upload as one version. Not in the published API.

     It is done once, however often it is asked for. With `parts` it is refused unless these are all
    parts. Rows whose commit conflicts (code 14) have to be uploaded anew.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        upload_id (UUID):
        body (CompleteMultipartWriteRequest | Unset):

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
        upload_id=upload_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: CompleteMultipartWriteRequest | Unset = UNSET,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    upload_id: UUID,
) -> ErrorResponse | InsertIntoTableResponse | None:
    """Commit the rows of all parts of an upload as one version. Not in the published API.

     It is done once, however often it is asked for. With `parts` it is refused unless these are all
    parts. Rows whose commit conflicts (code 14) have to be uploaded anew.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        upload_id (UUID):
        body (CompleteMultipartWriteRequest | Unset):

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
        upload_id=upload_id,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: CompleteMultipartWriteRequest | Unset = UNSET,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    upload_id: UUID,
) -> Response[ErrorResponse | InsertIntoTableResponse]:
    """Commit the rows of all parts of an upload as one version. Not in the published API.

     It is done once, however often it is asked for. With `parts` it is refused unless these are all
    parts. Rows whose commit conflicts (code 14) have to be uploaded anew.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        upload_id (UUID):
        body (CompleteMultipartWriteRequest | Unset):

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
        upload_id=upload_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: CompleteMultipartWriteRequest | Unset = UNSET,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    upload_id: UUID,
) -> ErrorResponse | InsertIntoTableResponse | None:
    """Commit the rows of all parts of an upload as one version. Not in the published API.

     It is done once, however often it is asked for. With `parts` it is refused unless these are all
    parts. Rows whose commit conflicts (code 14) have to be uploaded anew.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        upload_id (UUID):
        body (CompleteMultipartWriteRequest | Unset):

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
            upload_id=upload_id,
        )
    ).parsed

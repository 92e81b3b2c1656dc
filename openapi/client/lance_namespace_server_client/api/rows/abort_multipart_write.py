from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx

from ...client import AuthenticatedClient, Client
from ...models.abort_multipart_write_response import AbortMultipartWriteResponse
from ...models.error_response import ErrorResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    *,
    delimiter: str | Unset = "$",
    upload_id: UUID,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    json_upload_id = str(upload_id)
    params["upload_id"] = json_upload_id

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/multipart_write/abort".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AbortMultipartWriteResponse | ErrorResponse:
    if response.status_code == 200:
        response_200 = AbortMultipartWriteResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AbortMultipartWriteResponse | ErrorResponse]:
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
    delimiter: str | Unset = "$",
    upload_id: UUID,
) -> Response[AbortMultipartWriteResponse | ErrorResponse]:
    """Give up an upload, of which nothing is committed then. A body is not needed. Not in the published
    API.

     Refused for an upload that is completed, or is being completed. Files of its parts go with the next
    garbage collection that finds them old enough.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        upload_id (UUID):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AbortMultipartWriteResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        delimiter=delimiter,
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
    delimiter: str | Unset = "$",
    upload_id: UUID,
) -> AbortMultipartWriteResponse | ErrorResponse | None:
    """Give up an upload, of which nothing is committed then. A body is not needed. Not in the published
    API.

     Refused for an upload that is completed, or is being completed. Files of its parts go with the next
    garbage collection that finds them old enough.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        upload_id (UUID):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AbortMultipartWriteResponse | ErrorResponse
    """

    return sync_detailed(
        id=id,
        client=client,
        delimiter=delimiter,
        upload_id=upload_id,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    upload_id: UUID,
) -> Response[AbortMultipartWriteResponse | ErrorResponse]:
    """Give up an upload, of which nothing is committed then. A body is not needed. Not in the published
    API.

     Refused for an upload that is completed, or is being completed. Files of its parts go with the next
    garbage collection that finds them old enough.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        upload_id (UUID):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AbortMultipartWriteResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        delimiter=delimiter,
        upload_id=upload_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    upload_id: UUID,
) -> AbortMultipartWriteResponse | ErrorResponse | None:
    """Give up an upload, of which nothing is committed then. A body is not needed. Not in the published
    API.

     Refused for an upload that is completed, or is being completed. Files of its parts go with the next
    garbage collection that finds them old enough.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        upload_id (UUID):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AbortMultipartWriteResponse | ErrorResponse
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            delimiter=delimiter,
            upload_id=upload_id,
        )
    ).parsed

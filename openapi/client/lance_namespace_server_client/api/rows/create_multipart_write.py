from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.create_multipart_write_response import CreateMultipartWriteResponse
from ...models.error_response import ErrorResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    *,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params["branch"] = branch

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/multipart_write/create".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CreateMultipartWriteResponse | ErrorResponse:
    if response.status_code == 200:
        response_200 = CreateMultipartWriteResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CreateMultipartWriteResponse | ErrorResponse]:
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
    branch: str | Unset = UNSET,
) -> Response[CreateMultipartWriteResponse | ErrorResponse]:
    """Begin an upload of rows in several parts that are committed as one version. Not in the published
    API.

     Each part is an InsertIntoTable with the `upload_id`; parts may be sent at one time, to several
    servers of a catalog. The upload is its principal's, and has to be completed within 20 hours. Fields
    of a body are optional.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateMultipartWriteResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        delimiter=delimiter,
        branch=branch,
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
    branch: str | Unset = UNSET,
) -> CreateMultipartWriteResponse | ErrorResponse | None:
    """Begin an upload of rows in several parts that are committed as one version. Not in the published
    API.

     Each part is an InsertIntoTable with the `upload_id`; parts may be sent at one time, to several
    servers of a catalog. The upload is its principal's, and has to be completed within 20 hours. Fields
    of a body are optional.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateMultipartWriteResponse | ErrorResponse
    """

    return sync_detailed(
        id=id,
        client=client,
        delimiter=delimiter,
        branch=branch,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
) -> Response[CreateMultipartWriteResponse | ErrorResponse]:
    """Begin an upload of rows in several parts that are committed as one version. Not in the published
    API.

     Each part is an InsertIntoTable with the `upload_id`; parts may be sent at one time, to several
    servers of a catalog. The upload is its principal's, and has to be completed within 20 hours. Fields
    of a body are optional.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateMultipartWriteResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        delimiter=delimiter,
        branch=branch,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
) -> CreateMultipartWriteResponse | ErrorResponse | None:
    """Begin an upload of rows in several parts that are committed as one version. Not in the published
    API.

     Each part is an InsertIntoTable with the `upload_id`; parts may be sent at one time, to several
    servers of a catalog. The upload is its principal's, and has to be completed within 20 hours. Fields
    of a body are optional.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateMultipartWriteResponse | ErrorResponse
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            delimiter=delimiter,
            branch=branch,
        )
    ).parsed

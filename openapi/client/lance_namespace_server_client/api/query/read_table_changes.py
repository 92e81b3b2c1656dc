from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.read_table_changes_request import ReadTableChangesRequest
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    id: str,
    *,
    body: ReadTableChangesRequest,
    delimiter: str | Unset = "$",
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/changes".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ErrorResponse | File:
    if response.status_code == 200:
        response_200 = File(payload=BytesIO(response.content))

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | File]:
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
    body: ReadTableChangesRequest,
    delimiter: str | Unset = "$",
) -> Response[ErrorResponse | File]:
    """The rows of a table that changed after one catalog version, up to another.

     Not part of the published namespace API. Each row as it was inserted, deleted, and before and after
    an update, version after version; applied in this order to the rows at the first catalog version
    they give those at the last. Beside the columns that the table has at the last one there are
    `_row_id`, `_change_type` (`insert`, `delete`, `update_preimage`, `update_postimage`),
    `_commit_version` and `_commit_timestamp` of the table version, and `_catalog_version`. Only tables
    with stable row ids; others are refused with code 13. 410, code 11: versions are not kept any more,
    or another table had this name. `x-lance-catalog-version` of the answer is the last catalog version.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        body (ReadTableChangesRequest): Not part of the published namespace API. One of `since`
            and `cursor` is needed.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | File]
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
    body: ReadTableChangesRequest,
    delimiter: str | Unset = "$",
) -> ErrorResponse | File | None:
    """The rows of a table that changed after one catalog version, up to another.

     Not part of the published namespace API. Each row as it was inserted, deleted, and before and after
    an update, version after version; applied in this order to the rows at the first catalog version
    they give those at the last. Beside the columns that the table has at the last one there are
    `_row_id`, `_change_type` (`insert`, `delete`, `update_preimage`, `update_postimage`),
    `_commit_version` and `_commit_timestamp` of the table version, and `_catalog_version`. Only tables
    with stable row ids; others are refused with code 13. 410, code 11: versions are not kept any more,
    or another table had this name. `x-lance-catalog-version` of the answer is the last catalog version.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        body (ReadTableChangesRequest): Not part of the published namespace API. One of `since`
            and `cursor` is needed.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | File
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
    body: ReadTableChangesRequest,
    delimiter: str | Unset = "$",
) -> Response[ErrorResponse | File]:
    """The rows of a table that changed after one catalog version, up to another.

     Not part of the published namespace API. Each row as it was inserted, deleted, and before and after
    an update, version after version; applied in this order to the rows at the first catalog version
    they give those at the last. Beside the columns that the table has at the last one there are
    `_row_id`, `_change_type` (`insert`, `delete`, `update_preimage`, `update_postimage`),
    `_commit_version` and `_commit_timestamp` of the table version, and `_catalog_version`. Only tables
    with stable row ids; others are refused with code 13. 410, code 11: versions are not kept any more,
    or another table had this name. `x-lance-catalog-version` of the answer is the last catalog version.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        body (ReadTableChangesRequest): Not part of the published namespace API. One of `since`
            and `cursor` is needed.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | File]
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
    body: ReadTableChangesRequest,
    delimiter: str | Unset = "$",
) -> ErrorResponse | File | None:
    """The rows of a table that changed after one catalog version, up to another.

     Not part of the published namespace API. Each row as it was inserted, deleted, and before and after
    an update, version after version; applied in this order to the rows at the first catalog version
    they give those at the last. Beside the columns that the table has at the last one there are
    `_row_id`, `_change_type` (`insert`, `delete`, `update_preimage`, `update_postimage`),
    `_commit_version` and `_commit_timestamp` of the table version, and `_catalog_version`. Only tables
    with stable row ids; others are refused with code 13. 410, code 11: versions are not kept any more,
    or another table had this name. `x-lance-catalog-version` of the answer is the last catalog version.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        body (ReadTableChangesRequest): Not part of the published namespace API. One of `since`
            and `cursor` is needed.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | File
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            body=body,
            delimiter=delimiter,
        )
    ).parsed

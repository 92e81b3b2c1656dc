from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.describe_table_request import DescribeTableRequest
from ...models.describe_table_response import DescribeTableResponse
from ...models.error_response import ErrorResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    *,
    body: DescribeTableRequest,
    delimiter: str | Unset = "$",
    with_table_uri: bool | Unset = UNSET,
    load_detailed_metadata: bool | Unset = UNSET,
    check_declared: bool | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(x_lance_catalog_version, Unset):
        headers["x-lance-catalog-version"] = str(x_lance_catalog_version)

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params["with_table_uri"] = with_table_uri

    params["load_detailed_metadata"] = load_detailed_metadata

    params["check_declared"] = check_declared

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/describe".format(
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
) -> DescribeTableResponse | ErrorResponse:
    if response.status_code == 200:
        response_200 = DescribeTableResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[DescribeTableResponse | ErrorResponse]:
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
    body: DescribeTableRequest,
    delimiter: str | Unset = "$",
    with_table_uri: bool | Unset = UNSET,
    load_detailed_metadata: bool | Unset = UNSET,
    check_declared: bool | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[DescribeTableResponse | ErrorResponse]:
    """Where a table is, and who keeps its versions.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        with_table_uri (bool | Unset):
        load_detailed_metadata (bool | Unset):
        check_declared (bool | Unset):
        x_lance_catalog_version (int | Unset):
        body (DescribeTableRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DescribeTableResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        with_table_uri=with_table_uri,
        load_detailed_metadata=load_detailed_metadata,
        check_declared=check_declared,
        x_lance_catalog_version=x_lance_catalog_version,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: DescribeTableRequest,
    delimiter: str | Unset = "$",
    with_table_uri: bool | Unset = UNSET,
    load_detailed_metadata: bool | Unset = UNSET,
    check_declared: bool | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> DescribeTableResponse | ErrorResponse | None:
    """Where a table is, and who keeps its versions.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        with_table_uri (bool | Unset):
        load_detailed_metadata (bool | Unset):
        check_declared (bool | Unset):
        x_lance_catalog_version (int | Unset):
        body (DescribeTableRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DescribeTableResponse | ErrorResponse
    """

    return sync_detailed(
        id=id,
        client=client,
        body=body,
        delimiter=delimiter,
        with_table_uri=with_table_uri,
        load_detailed_metadata=load_detailed_metadata,
        check_declared=check_declared,
        x_lance_catalog_version=x_lance_catalog_version,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: DescribeTableRequest,
    delimiter: str | Unset = "$",
    with_table_uri: bool | Unset = UNSET,
    load_detailed_metadata: bool | Unset = UNSET,
    check_declared: bool | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[DescribeTableResponse | ErrorResponse]:
    """Where a table is, and who keeps its versions.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        with_table_uri (bool | Unset):
        load_detailed_metadata (bool | Unset):
        check_declared (bool | Unset):
        x_lance_catalog_version (int | Unset):
        body (DescribeTableRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DescribeTableResponse | ErrorResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        with_table_uri=with_table_uri,
        load_detailed_metadata=load_detailed_metadata,
        check_declared=check_declared,
        x_lance_catalog_version=x_lance_catalog_version,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: DescribeTableRequest,
    delimiter: str | Unset = "$",
    with_table_uri: bool | Unset = UNSET,
    load_detailed_metadata: bool | Unset = UNSET,
    check_declared: bool | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> DescribeTableResponse | ErrorResponse | None:
    """Where a table is, and who keeps its versions.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        with_table_uri (bool | Unset):
        load_detailed_metadata (bool | Unset):
        check_declared (bool | Unset):
        x_lance_catalog_version (int | Unset):
        body (DescribeTableRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DescribeTableResponse | ErrorResponse
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            body=body,
            delimiter=delimiter,
            with_table_uri=with_table_uri,
            load_detailed_metadata=load_detailed_metadata,
            check_declared=check_declared,
            x_lance_catalog_version=x_lance_catalog_version,
        )
    ).parsed

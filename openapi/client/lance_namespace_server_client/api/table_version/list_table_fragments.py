from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.list_table_fragments_response import ListTableFragmentsResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    id: str,
    *,
    delimiter: str | Unset = "$",
    version: int | Unset = UNSET,
    branch: str | Unset = UNSET,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(x_lance_catalog_version, Unset):
        headers["x-lance-catalog-version"] = str(x_lance_catalog_version)

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params["version"] = version

    params["branch"] = branch

    params["page_token"] = page_token

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/table/{id}/fragments".format(
            id=quote(str(id), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorResponse | ListTableFragmentsResponse:
    if response.status_code == 200:
        response_200 = ListTableFragmentsResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | ListTableFragmentsResponse]:
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
    version: int | Unset = UNSET,
    branch: str | Unset = UNSET,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[ErrorResponse | ListTableFragmentsResponse]:
    """The fragments of a version with their rows and files, by their ids. Not in the published API.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        version (int | Unset):
        branch (str | Unset):
        page_token (str | Unset):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListTableFragmentsResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        delimiter=delimiter,
        version=version,
        branch=branch,
        page_token=page_token,
        limit=limit,
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
    delimiter: str | Unset = "$",
    version: int | Unset = UNSET,
    branch: str | Unset = UNSET,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> ErrorResponse | ListTableFragmentsResponse | None:
    """The fragments of a version with their rows and files, by their ids. Not in the published API.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        version (int | Unset):
        branch (str | Unset):
        page_token (str | Unset):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListTableFragmentsResponse
    """

    return sync_detailed(
        id=id,
        client=client,
        delimiter=delimiter,
        version=version,
        branch=branch,
        page_token=page_token,
        limit=limit,
        x_lance_catalog_version=x_lance_catalog_version,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    version: int | Unset = UNSET,
    branch: str | Unset = UNSET,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> Response[ErrorResponse | ListTableFragmentsResponse]:
    """The fragments of a version with their rows and files, by their ids. Not in the published API.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        version (int | Unset):
        branch (str | Unset):
        page_token (str | Unset):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListTableFragmentsResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        delimiter=delimiter,
        version=version,
        branch=branch,
        page_token=page_token,
        limit=limit,
        x_lance_catalog_version=x_lance_catalog_version,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    delimiter: str | Unset = "$",
    version: int | Unset = UNSET,
    branch: str | Unset = UNSET,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    x_lance_catalog_version: int | Unset = UNSET,
) -> ErrorResponse | ListTableFragmentsResponse | None:
    """The fragments of a version with their rows and files, by their ids. Not in the published API.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        version (int | Unset):
        branch (str | Unset):
        page_token (str | Unset):
        limit (int | Unset):
        x_lance_catalog_version (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListTableFragmentsResponse
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            delimiter=delimiter,
            version=version,
            branch=branch,
            page_token=page_token,
            limit=limit,
            x_lance_catalog_version=x_lance_catalog_version,
        )
    ).parsed

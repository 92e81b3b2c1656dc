from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.list_catalog_events_response import ListCatalogEventsResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    since: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    wait: int | Unset = UNSET,
    last_event_id: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(last_event_id, Unset):
        headers["Last-Event-ID"] = last_event_id

    params: dict[str, Any] = {}

    params["since"] = since

    params["limit"] = limit

    params["wait"] = wait

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/catalog/events",
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorResponse | ListCatalogEventsResponse:
    if response.status_code == 200:
        response_200 = ListCatalogEventsResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | ListCatalogEventsResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    since: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    wait: int | Unset = UNSET,
    last_event_id: str | Unset = UNSET,
) -> Response[ErrorResponse | ListCatalogEventsResponse]:
    """The catalog versions after one, oldest first, each as a CloudEvent.

     Each version once and in order, from the history of the catalog, whichever server is asked. With
    `Accept: text/event-stream` the events are sent as they come, each with its catalog version as `id`,
    until the server ends; `limit` and `wait` are refused then. 410, code 11: some of the versions are
    not kept any more.

    Args:
        since (int | Unset):
        limit (int | Unset):
        wait (int | Unset):
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListCatalogEventsResponse]
    """

    kwargs = _get_kwargs(
        since=since,
        limit=limit,
        wait=wait,
        last_event_id=last_event_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    since: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    wait: int | Unset = UNSET,
    last_event_id: str | Unset = UNSET,
) -> ErrorResponse | ListCatalogEventsResponse | None:
    """The catalog versions after one, oldest first, each as a CloudEvent.

     Each version once and in order, from the history of the catalog, whichever server is asked. With
    `Accept: text/event-stream` the events are sent as they come, each with its catalog version as `id`,
    until the server ends; `limit` and `wait` are refused then. 410, code 11: some of the versions are
    not kept any more.

    Args:
        since (int | Unset):
        limit (int | Unset):
        wait (int | Unset):
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListCatalogEventsResponse
    """

    return sync_detailed(
        client=client,
        since=since,
        limit=limit,
        wait=wait,
        last_event_id=last_event_id,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    since: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    wait: int | Unset = UNSET,
    last_event_id: str | Unset = UNSET,
) -> Response[ErrorResponse | ListCatalogEventsResponse]:
    """The catalog versions after one, oldest first, each as a CloudEvent.

     Each version once and in order, from the history of the catalog, whichever server is asked. With
    `Accept: text/event-stream` the events are sent as they come, each with its catalog version as `id`,
    until the server ends; `limit` and `wait` are refused then. 410, code 11: some of the versions are
    not kept any more.

    Args:
        since (int | Unset):
        limit (int | Unset):
        wait (int | Unset):
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListCatalogEventsResponse]
    """

    kwargs = _get_kwargs(
        since=since,
        limit=limit,
        wait=wait,
        last_event_id=last_event_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    since: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    wait: int | Unset = UNSET,
    last_event_id: str | Unset = UNSET,
) -> ErrorResponse | ListCatalogEventsResponse | None:
    """The catalog versions after one, oldest first, each as a CloudEvent.

     Each version once and in order, from the history of the catalog, whichever server is asked. With
    `Accept: text/event-stream` the events are sent as they come, each with its catalog version as `id`,
    until the server ends; `limit` and `wait` are refused then. 410, code 11: some of the versions are
    not kept any more.

    Args:
        since (int | Unset):
        limit (int | Unset):
        wait (int | Unset):
        last_event_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListCatalogEventsResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            since=since,
            limit=limit,
            wait=wait,
            last_event_id=last_event_id,
        )
    ).parsed

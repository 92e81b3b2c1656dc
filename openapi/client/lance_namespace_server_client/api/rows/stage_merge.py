from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.stage_merge_response import StageMergeResponse
from ...types import UNSET, File, Response, Unset, chunks


def _get_kwargs(
    id: str,
    *,
    body: File,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    on: list[str],
    when_matched_update_all: bool | Unset = UNSET,
    when_matched_update_all_filt: str | Unset = UNSET,
    when_not_matched_insert_all: bool | Unset = UNSET,
    when_not_matched_by_source_delete: bool | Unset = UNSET,
    when_not_matched_by_source_delete_filt: str | Unset = UNSET,
    use_index: bool | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["delimiter"] = delimiter

    params["branch"] = branch

    json_on = on

    params["on"] = json_on

    params["when_matched_update_all"] = when_matched_update_all

    params["when_matched_update_all_filt"] = when_matched_update_all_filt

    params["when_not_matched_insert_all"] = when_not_matched_insert_all

    params["when_not_matched_by_source_delete"] = when_not_matched_by_source_delete

    params["when_not_matched_by_source_delete_filt"] = when_not_matched_by_source_delete_filt

    params["use_index"] = use_index

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/table/{id}/stage_merge".format(
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
) -> ErrorResponse | StageMergeResponse:
    if response.status_code == 200:
        response_200 = StageMergeResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | StageMergeResponse]:
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
    branch: str | Unset = UNSET,
    on: list[str],
    when_matched_update_all: bool | Unset = UNSET,
    when_matched_update_all_filt: str | Unset = UNSET,
    when_not_matched_insert_all: bool | Unset = UNSET,
    when_not_matched_by_source_delete: bool | Unset = UNSET,
    when_not_matched_by_source_delete_filt: str | Unset = UNSET,
    use_index: bool | Unset = UNSET,
) -> Response[ErrorResponse | StageMergeResponse]:
    """Write a merge of rows by key for a batch that commits it, together with other changes. Not in the
    published API.

     As MergeInsertIntoTable. The batch is rejected if other commits have changed the rows that it was
    computed on, or added rows with the same keys.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        on (list[str]):
        when_matched_update_all (bool | Unset):
        when_matched_update_all_filt (str | Unset):
        when_not_matched_insert_all (bool | Unset):
        when_not_matched_by_source_delete (bool | Unset):
        when_not_matched_by_source_delete_filt (str | Unset):
        use_index (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | StageMergeResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        branch=branch,
        on=on,
        when_matched_update_all=when_matched_update_all,
        when_matched_update_all_filt=when_matched_update_all_filt,
        when_not_matched_insert_all=when_not_matched_insert_all,
        when_not_matched_by_source_delete=when_not_matched_by_source_delete,
        when_not_matched_by_source_delete_filt=when_not_matched_by_source_delete_filt,
        use_index=use_index,
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
    branch: str | Unset = UNSET,
    on: list[str],
    when_matched_update_all: bool | Unset = UNSET,
    when_matched_update_all_filt: str | Unset = UNSET,
    when_not_matched_insert_all: bool | Unset = UNSET,
    when_not_matched_by_source_delete: bool | Unset = UNSET,
    when_not_matched_by_source_delete_filt: str | Unset = UNSET,
    use_index: bool | Unset = UNSET,
) -> ErrorResponse | StageMergeResponse | None:
    """Write a merge of rows by key for a batch that commits it, together with other changes. Not in the
    published API.

     As MergeInsertIntoTable. The batch is rejected if other commits have changed the rows that it was
    computed on, or added rows with the same keys.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        on (list[str]):
        when_matched_update_all (bool | Unset):
        when_matched_update_all_filt (str | Unset):
        when_not_matched_insert_all (bool | Unset):
        when_not_matched_by_source_delete (bool | Unset):
        when_not_matched_by_source_delete_filt (str | Unset):
        use_index (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | StageMergeResponse
    """

    return sync_detailed(
        id=id,
        client=client,
        body=body,
        delimiter=delimiter,
        branch=branch,
        on=on,
        when_matched_update_all=when_matched_update_all,
        when_matched_update_all_filt=when_matched_update_all_filt,
        when_not_matched_insert_all=when_not_matched_insert_all,
        when_not_matched_by_source_delete=when_not_matched_by_source_delete,
        when_not_matched_by_source_delete_filt=when_not_matched_by_source_delete_filt,
        use_index=use_index,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    delimiter: str | Unset = "$",
    branch: str | Unset = UNSET,
    on: list[str],
    when_matched_update_all: bool | Unset = UNSET,
    when_matched_update_all_filt: str | Unset = UNSET,
    when_not_matched_insert_all: bool | Unset = UNSET,
    when_not_matched_by_source_delete: bool | Unset = UNSET,
    when_not_matched_by_source_delete_filt: str | Unset = UNSET,
    use_index: bool | Unset = UNSET,
) -> Response[ErrorResponse | StageMergeResponse]:
    """Write a merge of rows by key for a batch that commits it, together with other changes. Not in the
    published API.

     As MergeInsertIntoTable. The batch is rejected if other commits have changed the rows that it was
    computed on, or added rows with the same keys.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        on (list[str]):
        when_matched_update_all (bool | Unset):
        when_matched_update_all_filt (str | Unset):
        when_not_matched_insert_all (bool | Unset):
        when_not_matched_by_source_delete (bool | Unset):
        when_not_matched_by_source_delete_filt (str | Unset):
        use_index (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | StageMergeResponse]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        delimiter=delimiter,
        branch=branch,
        on=on,
        when_matched_update_all=when_matched_update_all,
        when_matched_update_all_filt=when_matched_update_all_filt,
        when_not_matched_insert_all=when_not_matched_insert_all,
        when_not_matched_by_source_delete=when_not_matched_by_source_delete,
        when_not_matched_by_source_delete_filt=when_not_matched_by_source_delete_filt,
        use_index=use_index,
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
    branch: str | Unset = UNSET,
    on: list[str],
    when_matched_update_all: bool | Unset = UNSET,
    when_matched_update_all_filt: str | Unset = UNSET,
    when_not_matched_insert_all: bool | Unset = UNSET,
    when_not_matched_by_source_delete: bool | Unset = UNSET,
    when_not_matched_by_source_delete_filt: str | Unset = UNSET,
    use_index: bool | Unset = UNSET,
) -> ErrorResponse | StageMergeResponse | None:
    """Write a merge of rows by key for a batch that commits it, together with other changes. Not in the
    published API.

     As MergeInsertIntoTable. The batch is rejected if other commits have changed the rows that it was
    computed on, or added rows with the same keys.

    Args:
        id (str):
        delimiter (str | Unset):  Default: '$'.
        branch (str | Unset):
        on (list[str]):
        when_matched_update_all (bool | Unset):
        when_matched_update_all_filt (str | Unset):
        when_not_matched_insert_all (bool | Unset):
        when_not_matched_by_source_delete (bool | Unset):
        when_not_matched_by_source_delete_filt (str | Unset):
        use_index (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | StageMergeResponse
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            body=body,
            delimiter=delimiter,
            branch=branch,
            on=on,
            when_matched_update_all=when_matched_update_all,
            when_matched_update_all_filt=when_matched_update_all_filt,
            when_not_matched_insert_all=when_not_matched_insert_all,
            when_not_matched_by_source_delete=when_not_matched_by_source_delete,
            when_not_matched_by_source_delete_filt=when_not_matched_by_source_delete_filt,
            use_index=use_index,
        )
    ).parsed

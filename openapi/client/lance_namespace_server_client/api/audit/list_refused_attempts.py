from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.error_response import ErrorResponse
from ...models.list_refused_attempts_response import ListRefusedAttemptsResponse
from ...models.refusal_decision import RefusalDecision
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    principal: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    delimiter: str | Unset = "$",
    decision: RefusalDecision | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["page_token"] = page_token

    params["limit"] = limit

    params["principal"] = principal

    params["object"] = object_

    params["delimiter"] = delimiter

    json_decision: str | Unset = UNSET
    if not isinstance(decision, Unset):
        json_decision = decision.value

    params["decision"] = json_decision

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/catalog/audit/refused",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErrorResponse | ListRefusedAttemptsResponse:
    if response.status_code == 200:
        response_200 = ListRefusedAttemptsResponse.from_dict(response.json())

        return response_200

    response_default = ErrorResponse.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ErrorResponse | ListRefusedAttemptsResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    principal: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    delimiter: str | Unset = "$",
    decision: RefusalDecision | Unset = UNSET,
) -> Response[ErrorResponse | ListRefusedAttemptsResponse]:
    """Requests that were refused, or whose outcome is unknown, newest first.

     For principals alone that `audit_readers` names, in the settings of the server, or that have `grant`
    on the
    catalog; else code 15. Those that all servers have recorded which share the directory of this one.
    The answer is
    of no catalog version.

    Args:
        page_token (str | Unset):
        limit (int | Unset):
        principal (str | Unset):
        object_ (str | Unset):
        delimiter (str | Unset):  Default: '$'.
        decision (RefusalDecision | Unset): `denied`: the caller may not do it. `rejected`: a
            change that is wrong, or in conflict. `failed`: the server could
            not make the change, and nothing was done. `unknown`: the change may be made or not.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListRefusedAttemptsResponse]
    """

    kwargs = _get_kwargs(
        page_token=page_token,
        limit=limit,
        principal=principal,
        object_=object_,
        delimiter=delimiter,
        decision=decision,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    principal: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    delimiter: str | Unset = "$",
    decision: RefusalDecision | Unset = UNSET,
) -> ErrorResponse | ListRefusedAttemptsResponse | None:
    """Requests that were refused, or whose outcome is unknown, newest first.

     For principals alone that `audit_readers` names, in the settings of the server, or that have `grant`
    on the
    catalog; else code 15. Those that all servers have recorded which share the directory of this one.
    The answer is
    of no catalog version.

    Args:
        page_token (str | Unset):
        limit (int | Unset):
        principal (str | Unset):
        object_ (str | Unset):
        delimiter (str | Unset):  Default: '$'.
        decision (RefusalDecision | Unset): `denied`: the caller may not do it. `rejected`: a
            change that is wrong, or in conflict. `failed`: the server could
            not make the change, and nothing was done. `unknown`: the change may be made or not.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListRefusedAttemptsResponse
    """

    return sync_detailed(
        client=client,
        page_token=page_token,
        limit=limit,
        principal=principal,
        object_=object_,
        delimiter=delimiter,
        decision=decision,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    principal: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    delimiter: str | Unset = "$",
    decision: RefusalDecision | Unset = UNSET,
) -> Response[ErrorResponse | ListRefusedAttemptsResponse]:
    """Requests that were refused, or whose outcome is unknown, newest first.

     For principals alone that `audit_readers` names, in the settings of the server, or that have `grant`
    on the
    catalog; else code 15. Those that all servers have recorded which share the directory of this one.
    The answer is
    of no catalog version.

    Args:
        page_token (str | Unset):
        limit (int | Unset):
        principal (str | Unset):
        object_ (str | Unset):
        delimiter (str | Unset):  Default: '$'.
        decision (RefusalDecision | Unset): `denied`: the caller may not do it. `rejected`: a
            change that is wrong, or in conflict. `failed`: the server could
            not make the change, and nothing was done. `unknown`: the change may be made or not.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErrorResponse | ListRefusedAttemptsResponse]
    """

    kwargs = _get_kwargs(
        page_token=page_token,
        limit=limit,
        principal=principal,
        object_=object_,
        delimiter=delimiter,
        decision=decision,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    page_token: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    principal: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    delimiter: str | Unset = "$",
    decision: RefusalDecision | Unset = UNSET,
) -> ErrorResponse | ListRefusedAttemptsResponse | None:
    """Requests that were refused, or whose outcome is unknown, newest first.

     For principals alone that `audit_readers` names, in the settings of the server, or that have `grant`
    on the
    catalog; else code 15. Those that all servers have recorded which share the directory of this one.
    The answer is
    of no catalog version.

    Args:
        page_token (str | Unset):
        limit (int | Unset):
        principal (str | Unset):
        object_ (str | Unset):
        delimiter (str | Unset):  Default: '$'.
        decision (RefusalDecision | Unset): `denied`: the caller may not do it. `rejected`: a
            change that is wrong, or in conflict. `failed`: the server could
            not make the change, and nothing was done. `unknown`: the change may be made or not.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErrorResponse | ListRefusedAttemptsResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            page_token=page_token,
            limit=limit,
            principal=principal,
            object_=object_,
            delimiter=delimiter,
            decision=decision,
        )
    ).parsed

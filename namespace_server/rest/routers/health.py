"""The probes. They need no credentials, and reveal nothing that would."""

from __future__ import annotations

import logging
from typing import Literal

from fastapi import APIRouter, Response
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError
from pydantic import BaseModel

from lance_core.errors import system_reason
from namespace_server.rest.dependencies import Service
from namespace_server.rest.request.headers import CATALOG_VERSION
from namespace_server.rest.service import NotWritable

_log = logging.getLogger(__name__)

router = APIRouter()

_VERSION_HEADER = CATALOG_VERSION.decode()


class Live(BaseModel):
    """The process answers."""

    status: Literal["live"] = "live"


class Ready(BaseModel):
    """The catalog can be read and written, and is at `catalog_version`."""

    status: Literal["ready"] = "ready"
    catalog_version: int


@router.api_route("/health/live", methods=["GET", "HEAD"])
async def live(service: Service, response: Response) -> Live:
    """Whether the process answers."""
    if not service.authenticator.required:
        response.headers[_VERSION_HEADER] = str(service.catalog_version)
    return Live()


@router.api_route("/health/ready", methods=["GET", "HEAD"])
async def ready(service: Service, response: Response) -> Ready:
    """Whether the catalog can be read and written; `ServiceUnavailableError` (17) if not.

    A damaged file is named by its key below the root; the root itself is named in the log only.
    """
    try:
        version = await service.ready()
    except NotWritable as error:
        _log.warning("not ready: %s", error.__cause__)
        reason = system_reason(error.__cause__)
        why = "the log of the server says why" if reason is None else reason
        raise ServiceUnavailableError(f"the root cannot be written: {why}") from error
    except TimeoutError as error:
        raise ServiceUnavailableError("the catalog cannot be read: the storage did not answer in time") from error
    except LanceNamespaceError as error:
        _log.warning("not ready: %s", error)
        raise ServiceUnavailableError(f"the catalog cannot be read: {error}") from error
    except Exception as error:
        _log.exception("not ready")
        raise ServiceUnavailableError(f"the catalog cannot be read: {type(error).__name__}") from error
    response.headers[_VERSION_HEADER] = str(version)
    return Ready(catalog_version=version)

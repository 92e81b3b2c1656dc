"""The probes. They need no credentials, and say nothing that would."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError
from pydantic import BaseModel

from namespace_server.rest.exchange import CATALOG_VERSION
from namespace_server.rest.service import CatalogService

router = APIRouter(prefix="/health")


class Live(BaseModel):
    """The process answers."""

    status: Literal["live"] = "live"


class Ready(BaseModel):
    """The catalog can be read, and is at `catalog_version`."""

    status: Literal["ready"] = "ready"
    catalog_version: int


def _service(request: Request) -> CatalogService:
    service: CatalogService = request.app.state.service
    return service


Service = Annotated[CatalogService, Depends(_service)]


@router.get("/live")
async def live(service: Service, response: Response) -> Live:
    """Whether the process answers."""
    response.headers[CATALOG_VERSION.decode()] = str(service.catalog_version)
    return Live()


@router.get("/ready")
async def ready(service: Service, response: Response) -> Ready:
    """Whether the catalog can be read; `ServiceUnavailableError` (17) if not.

    Texts of namespace errors are public: a damaged file is named by its key below the root.
    """
    try:
        version = await service.ready()
    except LanceNamespaceError as error:
        raise ServiceUnavailableError(f"the catalog cannot be read: {error}") from error
    except Exception as error:
        raise ServiceUnavailableError(f"the catalog cannot be read: {type(error).__name__}") from error
    response.headers[CATALOG_VERSION.decode()] = str(version)
    return Ready(catalog_version=version)

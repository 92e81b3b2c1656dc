"""The probes and the metrics.

Probes need no credentials, and reveal nothing that would. Metrics need a key where other reads do.
"""

from __future__ import annotations

import asyncio
import logging
from urllib.parse import parse_qs

import orjson
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError, UnsupportedOperationError
from starlette.responses import Response

from lance_core.errors import StorageError, system_reason
from namespace_server.rest.errors import RouteNotFound
from namespace_server.rest.exchange import Exchange
from namespace_server.rest.responses import Success
from namespace_server.rest.routing import get
from namespace_server.rest.service import NotWritable

_log = logging.getLogger(__name__)


async def _live(exchange: Exchange) -> Response:
    """Whether the process answers."""
    service = exchange.service
    version = None if service.authenticator.required else service.catalog_version
    return Success(b'{"status":"live"}', version)


async def _ready(exchange: Exchange) -> Response:
    """Whether the catalog can be read and written; `ServiceUnavailableError` (17) if not.

    In read-only mode the server is ready for reads, and says so. A damaged file is named by its key below the root;
    the root itself is named in the log only.
    """
    try:
        version = await exchange.service.ready()
    except NotWritable as error:
        _log.warning("not ready: %s", error.__cause__)
        why = _reason(error.__cause__)
        raise ServiceUnavailableError(f"the root cannot be written: {why}") from error
    except TimeoutError as error:
        raise ServiceUnavailableError("the catalog cannot be read: the storage did not answer in time") from error
    except LanceNamespaceError as error:
        _log.warning("not ready: %s", error)
        raise ServiceUnavailableError(f"the catalog cannot be read: {error}") from error
    except Exception as error:
        # What the store says explains itself: probes come every few seconds.
        _log.warning("not ready: %s", error, exc_info=None if isinstance(error, StorageError) else error)
        raise ServiceUnavailableError(f"the catalog cannot be read: {type(error).__name__}") from error
    mode = "read-only" if exchange.service.read_only.is_on() else "read-write"
    return Success(orjson.dumps({"status": "ready", "mode": mode, "catalog_version": version}), version)


def _reason(error: BaseException | None) -> str:
    """Why a root cannot be written, without its place."""
    if isinstance(error, UnsupportedOperationError):
        return str(error)
    return system_reason(error) or "the log of the server says why"


async def _scrape(exchange: Exchange) -> Response:
    """Metrics, as text, for Prometheus: all, or as servers of it understand it the time series of each `name[]`."""
    metrics = exchange.service.metrics
    exchange.service.require(exchange.subject, exchange.scope["operation"])
    if metrics is None:
        raise RouteNotFound("GET /metrics: this server measures nothing")
    names = parse_qs(exchange.scope["query_string"].decode("latin-1")).get("name[]", [])
    text = await asyncio.to_thread(metrics.exposition, names)
    return Response(text, headers={"content-type": metrics.content_type})


PROBES = (
    get("health_live", "/health/live", _live),
    get("health_ready", "/health/ready", _ready),
)
ROUTES = (*PROBES, get("metrics", "/metrics", _scrape))

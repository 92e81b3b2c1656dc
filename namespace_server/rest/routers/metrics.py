"""The metrics of the server, for Prometheus. They need a key where other reads do."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from namespace_server.observability.metrics.measures import CONTENT_TYPE
from namespace_server.rest.errors import RouteNotFound
from namespace_server.rest.exchange import Exchange
from namespace_server.rest.routing import Handler, get


class Scrape:
    """All metrics, as text."""

    def handler(self, _operation: str, path: str) -> Handler:
        """The handler of the route."""

        async def answer(exchange: Exchange) -> Response:
            metrics = exchange.service.metrics
            if metrics is None:
                raise RouteNotFound(f"GET {path}: this server measures nothing")
            return Response(await asyncio.to_thread(metrics.exposition), headers={"content-type": CONTENT_TYPE})

        return answer


ROUTES = (get("metrics", "/metrics", Scrape()),)

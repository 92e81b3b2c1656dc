"""Applications that a server serves beside its routes."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from namespace_server.app import create_app
from namespace_server.observability.access_log import AccessLog
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.middleware import local_hosts
from tests.running import serving


class Shown:
    """Answers with its path, and knows its lifespan and its server."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].endswith("/fault"):
            raise ValueError("a fault")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})

    @asynccontextmanager
    async def lifespan(self, server: Any) -> AsyncIterator[None]:
        self.told.append(server)
        yield
        self.told.append("ended")


def test_an_application_is_served_below_its_path_behind_the_checks_of_the_server(echo_catalog: Any) -> None:
    log, shown = io.StringIO(), Shown()
    app = create_app(
        echo_catalog,
        Authenticator({}),
        hosts=local_hosts("127.0.0.1"),
        access_log=AccessLog("json", stream=log),
        metrics=ServerMetrics(),
    )
    app.mount("shown", shown)
    with serving(app) as url, httpx.Client(base_url=url) as http:
        for path in ("/shown", "/shown/a%2Fb", "/shown/a/"):
            assert http.get(path).text == path.rstrip("/")
        assert http.get("/shownx").status_code == http.get("/a/shown").status_code == 404
        assert http.get("/v1/table").status_code == 200
        assert http.get("/shown", headers={"host": "elsewhere.example"}).status_code == 403
        assert http.post("/shown", headers={"origin": "http://elsewhere.example"}).status_code == 403
        assert http.get("/shown", headers={"x-long": "x" * 70_000}).status_code == 431
        fault = http.get("/shown/fault")
        assert (fault.status_code, fault.json()["code"]) == (500, 18)
        counted = http.get("/metrics").text
        assert shown.told == [app]
    assert shown.told == [app, "ended"]
    assert 'lance_namespace_request_seconds_count{operation="shown",status="2xx"} 3.0' in counted
    assert 'lance_namespace_request_seconds_count{operation="shown",status="5xx"} 1.0' in counted
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line["route"] for line in lines[:2]] == ["/shown", "/shown/a%2Fb"]

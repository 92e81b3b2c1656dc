"""The OpenAPI document, the page that shows it, and the links to both. All assets come from an installed package."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import fastapi_offline
import orjson
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from namespace_server.rest.exchange import Exchange
from namespace_server.rest.routing import Handler, get

VERSION = version("lance-namespace-server")
ASSETS = Mount("/docs/assets", StaticFiles(directory=Path(fastapi_offline.__file__).parent / "static"))
"""The scripts and styles of the page."""


_LINKS = {"name": "lance-namespace-server", "version": VERSION, "documentation": "/docs", "api": "/openapi.json"}


def _same_for_all(content: bytes, media_type: str) -> Handler:
    """The handler of a response that is the same for all requests."""

    async def answer(_exchange: Exchange) -> Response:
        return Response(content, media_type=media_type, headers=_GUARDS)

    return answer


async def _root(exchange: Exchange) -> Response:
    """`GET /`: browsers are redirected to the documentation, other clients get links."""
    if b"text/html" in exchange.headers.get(b"accept", b""):
        return Response(status_code=307, headers={"location": "docs", **_GUARDS})
    return Response(orjson.dumps(_LINKS), media_type="application/json", headers=_GUARDS)


# Addresses are relative to that of the page: a proxy may serve all this below a path of its own.
_SWAGGER = get_swagger_ui_html(
    openapi_url="openapi.json",
    title="Lance namespace catalog",
    swagger_js_url="docs/assets/swagger-ui-bundle.js",
    swagger_css_url="docs/assets/swagger-ui.css",
    swagger_favicon_url="docs/assets/favicon.png",
)

_INLINE = " ".join(
    f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
    for script in re.findall(rb"<script>(.*?)</script>", bytes(_SWAGGER.body), re.DOTALL)
)
_GUARDS = {
    "content-security-policy": f"default-src 'self'; script-src 'self' {_INLINE}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
"""No page of another origin may show these pages in a frame, and no script runs in them but their own."""

ROUTES = (
    get("root", "/", _root),
    get(
        "openapi_document",
        "/openapi.json",
        _same_for_all(files("namespace_server.rest").joinpath("openapi.json").read_bytes(), "application/json"),
    ),
    get("documentation", "/docs", _same_for_all(bytes(_SWAGGER.body), "text/html")),
)

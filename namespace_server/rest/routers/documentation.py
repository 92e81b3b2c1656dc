"""The OpenAPI document, and the page that shows it. All assets come from an installed package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import fastapi_offline
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from namespace_server.rest.exchange import Exchange
from namespace_server.rest.routing import Handler, get

ASSETS = Mount("/docs/assets", StaticFiles(directory=Path(fastapi_offline.__file__).parent / "static"))
"""The scripts and styles of the page."""


class DocumentationPage:
    """A response that is the same for all requests."""

    def __init__(self, content: bytes, media_type: str) -> None:
        self._content = content
        self._media_type = media_type

    def handler(self, _operation: str, _path: str) -> Handler:
        """The handler of the page."""

        async def answer(_exchange: Exchange) -> Response:
            return Response(self._content, media_type=self._media_type)

        return answer


_SWAGGER = get_swagger_ui_html(
    openapi_url="/openapi.json",
    title="Lance namespace catalog",
    swagger_js_url="/docs/assets/swagger-ui-bundle.js",
    swagger_css_url="/docs/assets/swagger-ui.css",
    swagger_favicon_url="/docs/assets/favicon.png",
)

ROUTES = (
    get(
        "openapi_document",
        "/openapi.json",
        DocumentationPage(files("namespace_server.rest").joinpath("openapi.json").read_bytes(), "application/json"),
        public=True,
    ),
    get("documentation", "/docs", DocumentationPage(bytes(_SWAGGER.body), "text/html"), public=True),
)

"""The OpenAPI document, and the page that shows it. All assets come from an installed package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import fastapi_offline
from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

_ASSETS = Path(fastapi_offline.__file__).parent / "static"

router = APIRouter(routes=[Mount("/docs/assets", StaticFiles(directory=_ASSETS))])


@router.api_route("/openapi.json", methods=["GET", "HEAD"])
def openapi_document() -> Response:
    """The document that this server serves."""
    return Response(_DOCUMENT, media_type="application/json")


@router.api_route("/docs", methods=["GET", "HEAD"])
def documentation() -> HTMLResponse:
    """Swagger UI over the document."""
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="Lance namespace catalog",
        swagger_js_url="/docs/assets/swagger-ui-bundle.js",
        swagger_css_url="/docs/assets/swagger-ui.css",
        swagger_favicon_url="/docs/assets/favicon.png",
    )


_DOCUMENT = files("namespace_server.rest").joinpath("openapi.json").read_bytes()

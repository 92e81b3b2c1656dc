"""A namespace for pylance that keeps the commits of a client instead of sending them."""

from __future__ import annotations

from typing import Any

from lance_namespace import LanceNamespace


class BufferingNamespace(LanceNamespace):
    """Reads go to `inner`; the requests of `create_table_version` are kept in `staged` and answered as done."""

    def __init__(self, inner: LanceNamespace) -> None:
        self._inner = inner
        self.staged: list[dict[str, Any]] = []

    def namespace_id(self) -> str:
        """A readable name."""
        return f"buffering({self._inner.namespace_id()})"

    def describe_table(self, request: Any) -> Any:
        """Ask the server."""
        return self._inner.describe_table(request)

    def list_table_versions(self, request: Any) -> Any:
        """Ask the server."""
        return self._inner.list_table_versions(request)

    def describe_table_version(self, request: Any) -> Any:
        """Ask the server."""
        return self._inner.describe_table_version(request)

    def create_table_version(self, request: Any) -> Any:
        """Keep the request."""
        asked = {name: value for name, value in request.model_dump().items() if value is not None}
        self.staged.append(asked)
        version = {name: asked[name] for name in ("version", "manifest_path", "manifest_size") if name in asked}
        return {"version": version}

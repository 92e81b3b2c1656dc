"""Stock clients that open the location of a table themselves. They need pylance, and access to the storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from namespace_tck.exchanges import CheckSkipped


class StockClient:
    """pylance with the server as its namespace. Every method raises `CheckSkipped` where that does not work here."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._properties = {"uri": url} | {f"header.{name}": value for name, value in headers.items()}
        self._reason: str | None = None
        self._is_proven = False

    def create(self, table: Sequence[str], data: Any) -> None:
        """Create a table, as `lance.write_dataset` does."""
        self._write(table, data, "create")

    def append(self, table: Sequence[str], data: Any) -> None:
        """Append rows to a table."""
        self._write(table, data, "append")

    def open(self, table: Sequence[str], **given: Any) -> Any:
        """The dataset of a table, opened through the namespace."""
        lance, namespace = self._load()
        return self._guard(lambda: lance.dataset(namespace_client=namespace, table_id=list(table), **given))

    def open_location(self, location: str, storage_options: Mapping[str, str] | None) -> Any:
        """The dataset at a location, opened without the namespace."""
        lance, _ = self._load()
        return self._guard(lambda: lance.dataset(location, storage_options=dict(storage_options or {})))

    def stage(self, table: Sequence[str], data: Any) -> dict[str, Any]:
        """Append rows without a commit. The answer is the request of `CreateTableVersion` that would commit them."""
        lance, namespace = self._load()
        from namespace_tck.staging import BufferingNamespace

        buffering = BufferingNamespace(namespace)
        self._guard(lambda: lance.write_dataset(data, namespace_client=buffering, table_id=list(table), mode="append"))
        if not buffering.staged:
            raise CheckSkipped("the stock client commits on storage: the server does not manage versions")
        return buffering.staged[-1]

    def _write(self, table: Sequence[str], data: Any, mode: str) -> None:
        lance, namespace = self._load()
        self._guard(lambda: lance.write_dataset(data, namespace_client=namespace, table_id=list(table), mode=mode))

    def _guard(self, work: Any) -> Any:
        """Do the work. Before the first success an error of pylance means that the storage cannot be reached from here.

        A path of another machine is a dataset that does not exist to pylance: `ValueError`.
        """
        if self._reason is not None:
            raise CheckSkipped(self._reason)
        try:
            done = work()
        except (OSError, ValueError) as error:
            if self._is_proven:
                raise
            self._reason = f"the location of a table cannot be opened from here: {str(error)[:200]}"
            raise CheckSkipped(self._reason) from error
        self._is_proven = True
        return done

    def _load(self) -> tuple[Any, Any]:
        try:
            import lance
            from lance.namespace import RestNamespace
        except ImportError as error:
            raise CheckSkipped("pylance is not installed here") from error
        return lance, RestNamespace(**self._properties)

"""Datasets of pylance at a version that the catalog named: for reading, picklable, with options that are renewed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lance.namespace import RestNamespace

from lance_core.data import commit_time
from table_data.batch_operations import TableId, VersionIdentity
from table_data.errors import InvalidCall, VersionGone
from table_data.pylance_errors import explained
from table_data.staging.handles import ReadOnlyTable, session_of

_EXPIRES: Final = "expires_at_millis"
"""The storage option that states when the others end."""
_MILLISECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """A version of a table, or of one of its branches, at one catalog version. It can be pickled, secrets included.

    Attributes:
        id: Path of the table.
        uri: URI of the table or of the branch.
        version: Number of the version.
        catalog_version: The catalog version that it is of.
        identity: Which version it is that has this number.
        storage_options: Options of Lance for its object store.
        server: URL of the catalog server that has new options when these end, None if there is none.
        headers: Headers of the requests to it.
        ca: PEM file of the authorities that may have signed its certificate; None for those of the system.
    """

    id: TableId
    uri: str
    version: int
    catalog_version: int
    identity: VersionIdentity
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    server: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca: str | None = None

    def open(self, namespace: Any = None) -> PinnedDataset:
        """Open it. Options that end are renewed by `namespace`, a `LanceNamespace`, or else by the server.

        Raises `VersionGone` if the version was removed, or another one took its place.
        """
        name = ".".join(self.id)
        with explained(name):
            dataset = PinnedDataset(
                self.uri,
                version=self.version,
                storage_options=dict(self.storage_options) or None,
                session=session_of(self.uri, self.version, self.identity.sha256),
                **self._renewal(namespace),
            )
            committed = commit_time(dataset)
        expected = self.identity.committed_ms
        if committed is not None and committed // _MILLISECOND != expected:
            raise VersionGone(
                f"{name}: version {self.version} was replaced by another one: it was committed at "
                f"{committed // _MILLISECOND} ms, expected {expected} ms"
            )
        dataset.pinned = self
        return dataset

    def _renewal(self, namespace: Any) -> dict[str, Any]:
        if _EXPIRES not in self.storage_options or (namespace is None and self.server is None):
            return {}
        if namespace is None:
            headers = {f"header.{name}": value for name, value in self.headers.items()}
            headers["header.x-lance-catalog-version"] = str(self.catalog_version)
            trusted = {} if self.ca is None else {"tls.ssl_ca_cert": self.ca}
            namespace = RestNamespace(uri=self.server, **headers, **trusted)
        return {"namespace_client": namespace, "table_id": list(self.id)}


class PinnedDataset(ReadOnlyTable):
    """A dataset of pylance at a version that the catalog named. Its methods that commit raise `InvalidCall`.

    So do those that ask for, or go to, the newest version in storage, which is of another catalog version. So readers
    that take a dataset and open its newest version, as `polars.scan_lance` does, fail with the right call as message.

    Attributes:
        pinned: What it is of.
    """

    pinned: DatasetSource

    @property
    def latest_version(self) -> int:
        """Raises `InvalidCall`."""
        raise InvalidCall(self._stays("latest_version"))

    def checkout_latest(self) -> None:
        """Raises `InvalidCall`."""
        raise InvalidCall(self._stays("checkout_latest"))

    def _stays(self, method: str) -> str:
        name, pinned = ".".join(self.pinned.id), self.pinned
        return (
            f"{method}: {name} stays at version {pinned.version}, of catalog version {pinned.catalog_version}. Name it "
            "to a reader that looks for the newest: polars.scan_lance(dataset, version=dataset.version)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return self.pinned.open, ()

    def __repr__(self) -> str:
        name, pinned = ".".join(self.pinned.id), self.pinned
        return f"<{name} at version {pinned.version}, of catalog version {pinned.catalog_version}: {pinned.uri}>"

"""`Access`: the catalog as statements use it."""

from __future__ import annotations

from dataclasses import dataclass

from namespace_client.http import CatalogServer
from spark_catalog.sql.catalog_requests import CatalogRequests
from spark_catalog.sql.tables import Versions


@dataclass(frozen=True, slots=True)
class Access:
    """Connections to the catalog, and facts about its tables.

    Attributes:
        server: Tables and their versions.
        requests: Namespaces, lists, and changes of names, tags, branches and versions.
        versions: Manifests of published versions, and storage options of tables.
    """

    server: CatalogServer
    requests: CatalogRequests
    versions: Versions

"""The dialect of lancedb's remote clients: `lancedb.connect("db://name", host_override=...)`, `connect_catalog(url)`.

Their routes of tables end in a slash, their `User-Agent` begins with `LanceDB-`. Namespace clients have neither; the
header that names the database is no sign, since `namespace_client()` of a connection sends it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lance_namespace.errors import LanceNamespaceError
from starlette.types import Scope

from namespace_server.outcomes import Outcome
from namespace_server.rest.dialects import listing, queries, tables, unserved
from namespace_server.rest.dialects.statuses import lancedb_status
from namespace_server.rest.dialects.translation import Translated, Translation
from namespace_server.rest.routing import LANCEDB, Route, Work

_TABLES: Final = b"/v1/table/"
_CLIENT: Final = b"LanceDB-"
FEATURES: Final = (b"phalanx-version", b"0.5.0")
"""The version of the protocol. It says which requests clients make: 0.2 searches for several vectors, 0.3 trees of text
queries, 0.4 parallel writes, 0.5 blobs. It announces what works, and nothing else."""
TRANSLATIONS: Final[Mapping[str, Translation]] = {
    **tables.TRANSLATIONS,
    **queries.TRANSLATIONS,
    **listing.TRANSLATIONS,
    **unserved.TRANSLATIONS,
}
"""By the names of operations."""


class LancedbDialect:
    """The dialect of lancedb's remote clients."""

    name = LANCEDB

    def is_spoken(self, scope: Scope) -> bool:
        """Whether a request is one of these clients."""
        path: bytes = scope["raw_path"]
        if path.endswith(b"/") and path.startswith(_TABLES):
            return True
        agent: bytes = scope["header_map"].get(b"user-agent", b"")
        return agent.startswith(_CLIENT)

    def work(self, route: Route) -> Work:
        """The work of a route for these clients."""
        return Translated(route.work, TRANSLATIONS[route.operation], (FEATURES,))

    def status(self, scope: Scope, error: LanceNamespaceError, outcome: Outcome) -> int:
        """The status that these clients understand."""
        return lancedb_status(error, outcome, scope.get("operation", ""))

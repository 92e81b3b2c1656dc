"""Operations that clients ask for and this server does not serve: 406 with code 0, by name.

Some it has for requests in another dialect only, as `rest.dialects` says.

They are those of the published namespace API and those of lancedb 0.40. With a 404, a client would take a missing
operation for a missing table: lancedb says that the table was not found.
"""

from __future__ import annotations

from namespace_server.access.requirements import REFUSED, REQUIREMENTS
from namespace_server.rest.routing import ALL_DIALECTS, Route, refuse

_OF_TABLES: tuple[tuple[str, str], ...] = (
    ("set_lsm_write_spec", "set_lsm_write_spec"),
    ("unset_lsm_write_spec", "unset_lsm_write_spec"),
    ("get_lsm_write_spec", "get_lsm_write_spec"),
    ("get_lsm_stats", "get_lsm_stats"),
    ("flush_lsm", "flush_lsm"),
    ("compact_lsm", "compact_lsm"),
    ("prewarm_table_index", "index/{index_name}/prewarm"),
    ("prewarm_table_pages", "page_cache/prewarm"),
    ("list_table_errors", "errors"),
)
_OF_OBJECTS = {
    "view": ("create", "describe", "drop"),
    "materialized_view": ("describe", "drop"),
    "function": ("create", "describe", "drop"),
    "secret": ("create", "alter", "describe", "drop"),
}
_JOBS = ("list", "describe", "cancel", "pause", "resume", "query_events")


def _refused(method: str, operation: str, path: str) -> Route:
    return Route(operation, method, path, refuse, REQUIREMENTS.get(operation, REFUSED), dialects=ALL_DIALECTS)


def _of_lancedb() -> tuple[Route, ...]:
    return (
        *(_refused("POST", name, f"/v1/table/{{id}}/{path}") for name, path in _OF_TABLES),
        *(
            _refused("POST", f"{what}_{kind}", f"/v1/{kind}/{{id}}/{what}")
            for kind, operations in _OF_OBJECTS.items()
            for what in operations
        ),
        *(_refused("GET", f"list_{kind}s", f"/v1/namespace/{{id}}/{kind}/list") for kind in _OF_OBJECTS),
        *(_refused("POST", f"{what}_jobs", f"/v1/jobs/{what}") for what in _JOBS),
    )


OF_THE_PUBLISHED_API = (
    _refused("POST", "alter_table_backfill_columns", "/v1/table/{id}/backfill_column"),
    _refused("POST", "create_materialized_view", "/v1/materialized_view/{id}/create"),
    _refused("POST", "refresh_materialized_view", "/v1/materialized_view/{id}/refresh"),
)
"""Those of the published API."""
ROUTES = (*OF_THE_PUBLISHED_API, *_of_lancedb())

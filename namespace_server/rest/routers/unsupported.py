"""Operations of the published namespace API that this server does not serve: 406 with code 0, by name.

A client that gets 404 cannot tell an operation that is missing from a table that is.
"""

from __future__ import annotations

from namespace_server.rest.handlers import Refusal
from namespace_server.rest.routing import post

ROUTES = (
    post("alter_table_backfill_columns", "/v1/table/{id}/backfill_column", Refusal()),
    post("create_materialized_view", "/v1/materialized_view/{id}/create", Refusal()),
    post("refresh_materialized_view", "/v1/materialized_view/{id}/refresh", Refusal()),
)

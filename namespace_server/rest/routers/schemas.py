"""Changes of the metadata and the columns of a table, and going back to an earlier version of it."""

from __future__ import annotations

from starlette.responses import Response

from namespace_server.answer import Answer
from namespace_server.data.request_checks import change_type
from namespace_server.outcomes import before_commit
from namespace_server.rest.exchange import Exchange
from namespace_server.rest.handlers import TableChange
from namespace_server.rest.responses import success
from namespace_server.rest.routing import Handler, post


class SchemaMetadataChange:
    """Replaces the schema metadata. Body and answer are the keys and values alone."""

    def handler(self, operation: str, _path: str) -> Handler:
        """The handler of the operation."""
        kind = change_type(operation)

        async def answer(exchange: Exchange) -> Response:
            service, caller = exchange.service, exchange.caller
            with before_commit():
                change = await exchange.schema_metadata(kind)
            with service.bodies.hold(change.size):
                committed = await service.data.change(operation, change.request, exchange.receive, caller)
            return success(service, Answer(committed.body["metadata"], committed.catalog_version))

        return answer


ROUTES = (
    post("update_table_schema_metadata", "/v1/table/{id}/schema_metadata/update", SchemaMetadataChange()),
    post(
        "update_field_metadata",
        "/v1/table/{id}/update_field_metadata",
        TableChange(("version", "fields")),
    ),
    post("restore_table", "/v1/table/{id}/restore", TableChange(("transaction_id",))),
    post(
        "alter_table_add_columns",
        "/v1/table/{id}/add_columns",
        TableChange(("version",)),
    ),
    post(
        "alter_table_alter_columns",
        "/v1/table/{id}/alter_columns",
        TableChange(("version",)),
    ),
    post(
        "alter_table_drop_columns",
        "/v1/table/{id}/drop_columns",
        TableChange(("transaction_id", "version")),
    ),
)

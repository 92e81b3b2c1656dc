"""Run by Alembic: migrates over the connection that `namespace_server.store.schema.migrate` has opened."""

from __future__ import annotations

from alembic import context

from namespace_server.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()

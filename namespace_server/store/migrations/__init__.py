"""The history of the schema, by Alembic."""

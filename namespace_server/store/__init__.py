"""External manifest stores in SQL databases: schema, queries, migrations. Only `store` imports SQLAlchemy."""

"""External manifest stores in SQL databases: models, queries, migrations. Only `store` imports SQLAlchemy."""

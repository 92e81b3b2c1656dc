"""What the server keeps in a database: the rows of external manifest stores. SQLAlchemy is imported nowhere else."""

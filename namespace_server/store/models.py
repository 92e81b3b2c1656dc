"""The tables of the database, as they are after the newest migration."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, MetaData, String, Table, Text, text

VERSION_TABLE = "lance_namespace_revision"
"""Alembic's version table. Not its default name: the database may hold other applications' tables."""

metadata = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "ix": "ix_%(table_name)s_%(column_0_name)s"},
)

external_manifests = Table(
    "external_manifests",
    metadata,
    Column("base_uri", Text, primary_key=True),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("path", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("uuid", String(36), nullable=False),
    Column("staged", Boolean(create_constraint=False), nullable=False),
)
"""One row per committed version: see `lance_core.commit.handlers.ManifestRow`."""

Index(
    "ix_external_manifests_staged",
    external_manifests.c.base_uri,
    sqlite_where=text("staged"),
    postgresql_where=text("staged"),
)

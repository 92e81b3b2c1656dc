"""Fixtures: sessions with the SQL catalog. Each has a catalog, and so transactions, of its own."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from spark_catalog.sql.settings import catalog_options

NewSession = Callable[..., SparkSession]


@pytest.fixture
def new_session(spark: SparkSession, server_url: str) -> NewSession:
    """Make sessions with the catalog `lance`. Options are those of `catalog_options`."""

    def make(url: str = server_url, **options: str) -> SparkSession:
        session = spark.newSession()
        for name, value in catalog_options(url, **options).items():
            session.conf.set(name, value)
        return session

    return make


@pytest.fixture
def sql(new_session: NewSession) -> SparkSession:
    """A session with the catalog `lance`."""
    return new_session()


@pytest.fixture
def ns(sql: SparkSession) -> str:
    """A new namespace, with the name of the catalog."""
    name = f"lance.n{secrets.token_hex(4)}"
    sql.sql(f"CREATE NAMESPACE {name}")
    return name

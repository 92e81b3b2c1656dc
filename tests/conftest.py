"""Fixtures for all rooms."""

import pytest

pytest.register_assert_rewrite("tests.storage.contract", "tests.commit.handlers.manifest_contract")

from tests.databases import cluster, database, new_database  # noqa: E402
from tests.emulators import azurite, fake_gcs, moto_server, unconditional_s3  # noqa: E402  (asserts are rewritten on import)

__all__ = ["azurite", "cluster", "database", "fake_gcs", "moto_server", "new_database", "unconditional_s3"]

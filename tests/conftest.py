"""Fixtures for all packages, and the markers that tests get from what they use and where they are."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.storage.contract", "tests.commit.handlers.manifest_contract")

from tests.databases import cluster, database, new_database  # noqa: E402
from tests.emulators import azurite, fake_gcs, moto_server, unconditional_s3  # noqa: E402  (asserts are rewritten on import)

__all__ = ["azurite", "cluster", "database", "fake_gcs", "moto_server", "new_database", "unconditional_s3"]

TESTS = Path(__file__).parent
SERVICES = {"azurite", "cluster", "moto_server", "unconditional_s3"}
"""Fixtures that start an emulator or a database server."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        used = set(getattr(item, "fixturenames", ()))
        if used & SERVICES or ("new_database" in parameters and parameters["new_database"] == "postgresql"):
            item.add_marker("services")
        if item.path.is_relative_to(TESTS / "spark"):
            item.add_marker("spark")

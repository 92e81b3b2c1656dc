"""Fixtures for all rooms."""

import pytest

pytest.register_assert_rewrite("tests.storage.contract", "tests.commit.handlers.manifest_contract")

from tests.emulators import azurite, fake_gcs, moto_server  # noqa: E402  (asserts are rewritten on import)

__all__ = ["azurite", "fake_gcs", "moto_server"]

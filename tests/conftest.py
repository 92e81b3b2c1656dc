"""Fixtures for all packages, and the markers that tests get from what they use and where they are."""

import gc
import logging
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import certifi
import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.storage.contract", "tests.commit.handlers.manifest_contract")

from tests.databases import cluster, database, new_database  # noqa: E402
from tests.distribution import pytest_xdist_make_scheduler, start_order  # noqa: E402
from tests.durations import pytest_runtest_logreport, pytest_terminal_summary  # noqa: E402
from tests.emulators import azurite, fake_gcs, moto_server, unconditional_s3  # noqa: E402  (asserts are rewritten on import)
from tests.tokens.providers import provider  # noqa: E402

__all__ = [
    "azurite",
    "cluster",
    "database",
    "fake_gcs",
    "moto_server",
    "new_database",
    "provider",
    "pytest_runtest_logreport",
    "pytest_terminal_summary",
    "pytest_xdist_make_scheduler",
    "unconditional_s3",
]

TESTS = Path(__file__).parent
os.environ.setdefault("LANCE_NAMESPACE_GC_INTERVAL", "0")  # flips of a collection would be met by any test
os.environ.setdefault("LANCE_NAMESPACE_PRELOAD_WORKERS", "false")  # most of the many servers are asked for no rows
SERVICES = {
    "lancedb_before",
    "lancedb_node",
    "azurite",
    "cluster",
    "fake_gcs",
    "guarded_s3",
    "moto_server",
    "provider",
    "unconditional_s3",
}
"""Fixtures that start an emulator or a database server, or install a client."""
SLOW = {"buckets", "clients", "data", "fuzz", "tck", "histories", "hostile", "machine", "server"}
"""Directories whose tests take their time: many processes, many tables, many generated or damaged inputs."""
# The machine may be busy: how long an example takes is no failure.
settings.register_profile("any load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")
THIRD = 3
"""`make test` has every third case of a test of combinations; of several parameters, with each of their values."""
PARAMETERS = {("new_database", "postgresql"): "services", ("scene", "http"): "slow", ("shop", "url"): "long"}
"""Parameters of fixtures that ask for another fixture: the database server, a server in a process of its own."""


_new_context, _CERTIFICATES = ssl.create_default_context, certifi.where()
_context = _new_context(cafile=_CERTIFICATES)


def _context_of_all(*arguments: Any, **options: Any) -> ssl.SSLContext:
    """httpx reads all certificates for each client, for 26 ms: thousands of clients of tests share what it reads."""
    return _context if (arguments, options) == ((), {"cafile": _CERTIFICATES}) else _new_context(*arguments, **options)


ssl.create_default_context = _context_of_all


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """The log after a test as it was before: a command that runs in this process sends it to its own standard error."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if item.get_closest_marker("combinations") and sum(item.callspec.indices.values()) % THIRD:
            item.add_marker("long")
        for (fixture, parameter), marker in PARAMETERS.items():
            if parameters.get(fixture) == parameter:
                item.add_marker(marker)
        used = set(getattr(item, "fixturenames", ()))
        if used & SERVICES:
            item.add_marker("services")
        directory = item.path.relative_to(TESTS).parts[0]
        if directory == "spark":
            item.add_marker("spark")
        if directory in SLOW:
            item.add_marker("slow")
    if hasattr(config, "workerinput"):
        items.sort(key=start_order)

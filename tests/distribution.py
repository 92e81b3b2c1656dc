"""How `pytest -n` distributes the tests: by module, those that share a Spark session in one process and first.

A process runs a module as a whole, because its tests share fixtures. Emulators and databases are started by each
process for itself. Modules that take long come before others.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

_OWN_SESSIONS = ("tests/spark/clusters/", "tests/spark/test_failing_tasks.py", "tests/spark/test_social_graph.py")
"""Modules of Spark whose tests start all sessions in processes of their own."""


def _shares_a_session(nodeid: str) -> bool:
    return nodeid.startswith("tests/spark/") and not nodeid.startswith(_OWN_SESSIONS)


class ModuleScheduling(LoadScopeScheduling):
    """Assigns whole modules, in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return "tests/spark" if _shares_a_session(nodeid) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ModuleScheduling:
    config.option.loadscopereorder = False
    return ModuleScheduling(config, log)


def start_order(item: pytest.Item) -> int:
    """A module that begins late and takes long is waited for, while other processes have nothing left to do."""
    if _shares_a_session(item.nodeid):
        return 0
    return 1 if item.get_closest_marker("spark") else 2 if item.get_closest_marker("slow") else 3

"""How `pytest -n` distributes the tests: by module, all of Spark in one process and first, then those that take long.

A process runs a module as a whole, because its tests share fixtures. Emulators and databases are started by each
process for itself.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling


class ModuleScheduling(LoadScopeScheduling):
    """Assigns whole modules, in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return "tests/spark" if module.startswith("tests/spark/") else module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ModuleScheduling:
    config.option.loadscopereorder = False
    return ModuleScheduling(config, log)


def start_order(item: pytest.Item) -> int:
    """A module that begins late and takes long is waited for, while other processes have nothing left to do."""
    return 0 if item.get_closest_marker("spark") else 1 if item.get_closest_marker("slow") else 2

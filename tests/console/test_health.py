"""How a server is, as Home tells it: by the metrics of a real one."""

from __future__ import annotations

import re

from tests.console.conftest import Site


def test_home_counts_what_is_there(site: Site) -> None:
    catalog = site.owner
    names = catalog.namespaces(())
    namespaces, tables = len(names), sum(len(catalog.tables(name)) for name in names)
    shown = site.visitor("ann").text("")
    told = re.search(r"([\d,]+) namespaces ([\d,]+) tables", shown)
    assert told, shown
    assert (namespaces, tables) == tuple(int(count) for count in told.groups())
    batches = re.search(r"committed (\d+), rejected (\d+), unknown 0, failed 0", shown)
    assert batches, shown
    assert int(batches[1]) >= 4
    assert re.search(r"< [\d.]+ ms flip, median", shown)

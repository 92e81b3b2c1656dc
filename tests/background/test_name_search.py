"""The index of names is there before the first search."""

from __future__ import annotations

import threading
from unittest.mock import patch

from namespace_server.background.name_search import NameSearch
from namespace_server.background.scheduler import JobResult
from namespace_server.directory.model.persistent.name_index import NameIndex
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.tables import Ground


def test_the_first_search_after_a_start_finds_an_index(ground: Ground) -> None:
    ground.make_table("g", "orders")
    again = DirectoryNamespace(root=str(ground.root))
    job = NameSearch(again.catalog.table)
    assert job.run(threading.Event()) is JobResult.IDLE  # nothing is read before a request is
    again.newest()
    assert job.run(threading.Event()) is JobResult.DONE
    assert job.run(threading.Event()) is JobResult.IDLE
    with patch.object(NameIndex, "of", side_effect=AssertionError("made by the search")):
        assert again.newest().find_tables(["ord"], 9) == [("g", "orders")]
    again.close()

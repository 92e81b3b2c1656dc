"""A writer by path that commits faster than a batch is planned holds up neither batches nor reads (P5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from lance_namespace.errors import ServiceUnavailableError

from lance_core.storage.local import LocalStore
from namespace_server.directory.committing.commit_loop import CommitLimits
from namespace_server.directory.model.errors import CatalogBusy
from namespace_server.outcomes import outcome_of
from tests.directory.tables import Ground, rows
from tests.directory.taken_names import TABLE
from tests.storage.faults import Fault, FaultStore


class Pace:
    """Another server of the root, at each of whose tries a row is committed by path, before or behind its look."""

    def __init__(self, ground: Ground) -> None:
        self.store = FaultStore(LocalStore(ground.root, "none"))
        self.server = ground.again(self.store)
        self.ground = ground
        self.ids: list[int] = []

    def commit(self) -> None:
        self.ids.append(100 + len(self.ids))
        self.ground.unmanaged_append(TABLE, rows(self.ids[-1], self.ids[-1] + 1))

    def during(self, call: Callable[[], Any], *, at: tuple[str, str] = ("put", "__manifest/data/")) -> Any:
        self.commit()

        def commit_too(verb: str, path: str) -> None:
            if verb == at[0] and path.startswith(at[1]):
                self.commit()

        stop = self.store.before(commit_too)
        try:
            return call()
        finally:
            stop()


@pytest.fixture
def pace(ground: Ground) -> Pace:
    ground.make_table(*TABLE)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    return Pace(ground)


def flips(ground: Ground, before: int) -> int:
    return ground.again().catalog.snapshot().version - before


def test_a_batch_is_committed_and_nothing_is_lost(pace: Pace) -> None:
    transaction = pace.ground.transaction(TABLE, rows(50, 51))
    before = pace.ground.catalog.snapshot().version
    pace.during(lambda: pace.server.batch(transaction))

    assert flips(pace.ground, before) <= 10, "what was found is adopted once for two tries"
    for _ in range(3):
        pace.server.catalog.sweep()
    assert pace.ground.again().ids(TABLE) == sorted([0, 1, 2, 50, *pace.ids])


def test_what_was_found_is_not_read_again_and_again(pace: Pace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each try takes longer than the one before it, and finds more."""
    monkeypatch.setattr(pace.server.catalog.committer._loop, "_limits", CommitLimits(tries=40))
    transaction = pace.ground.transaction(TABLE, rows(50, 51))
    reads = 0

    def count(verb: str, path: str) -> None:
        nonlocal reads
        reads += verb == "get" and path.startswith(f"{pace.ground.location(TABLE)}/_versions/")

    pace.store.before(count)
    pace.during(lambda: pace.server.batch(transaction))
    assert len(pace.ids) > 20
    assert reads < 6 * len(pace.ids)


def test_a_read_adopts_what_it_found_and_waits_for_no_more(pace: Pace) -> None:
    before = pace.ground.catalog.snapshot().version
    read = partial(pace.server.read, "list_table_versions", id=TABLE, limit=1, descending=True)
    answer = pace.during(read, at=("get", "__manifest/_versions/"))
    assert 2 < answer["versions"][0]["version"] <= len(pace.ids)
    assert flips(pace.ground, before) == 1


def test_an_assertion_does_not_hold_and_says_why(pace: Pace) -> None:
    """Storage is ahead of the catalog in each look (P9)."""
    pace.ground.make_table("g", "other")
    batch = [
        {"assert_table_version": {"id": TABLE, "version": 1}},
        pace.ground.transaction(["g", "other"], rows(50, 51)),
    ]
    with pytest.raises(ServiceUnavailableError, match="nothing was done: storage has versions above the asserted head"):
        pace.during(lambda: pace.server.batch(*batch))
    assert pace.ground.again().head(["g", "other"]) == 1


def test_an_adoption_of_unknown_outcome_is_told_as_that(pace: Pace) -> None:
    """Of the batch nothing was sent: it is not unknown. Nor did other writers win so many tries."""
    transaction = pace.ground.transaction(TABLE, rows(50, 51))
    pace.store.fail(Fault.DELAYED, when=lambda write: write.path.startswith("__manifest/_versions/"), times=1000)
    message = (
        "nothing was done: at try 3 storage did not tell whether it adopted what others commit to g\\$person by path"
    )
    with pytest.raises(CatalogBusy, match=message) as caught:
        pace.during(lambda: pace.server.batch(transaction))
    assert caught.value.tries == 3
    assert outcome_of(caught.value) == "nothing_done"
    assert caught.value.detail in str(caught.value)

    pace.store.deliver()  # it is adopted after all
    server = pace.ground.again()
    server.batch(transaction)
    server.catalog.sweep()
    assert server.ids(TABLE) == sorted([0, 1, 2, 50, *pace.ids])


def test_where_the_tries_end_the_answer_names_the_table() -> None:
    error = CatalogBusy("b", 20, {(tuple(TABLE), None)})
    assert "to g$person they commit around the catalog" in str(error)

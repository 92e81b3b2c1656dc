"""Limits of time count from the store's dates, whatever the clocks of writers say (rule G30)."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from lance_core.format.naming import manifest_name
from lance_core.storage.port import ObjectStore
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.model.collector_rows import IntentEntry, PinEntry
from namespace_server.directory.model.entries import DATED, DROPPED, PURGED, Changes, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning import planning_context
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.tables import Ground

T = ["g", "t"]
HOUR, YEARS = timedelta(hours=1), timedelta(days=20 * 365)
SKEWS = [-YEARS, timedelta(days=-8), -3 * HOUR, timedelta(0), 3 * HOUR, YEARS]


@pytest.fixture
def one(ground: Ground) -> Ground:
    ground.make_table(*T)
    ground.catalog.sweep()
    return ground


@contextmanager
def clock_off_by(skew: timedelta, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Writers of this process have another clock; the store has not."""
    moved = SimpleNamespace(time_ns=lambda: time.time_ns() + int(skew.total_seconds() * 1e9))
    with monkeypatch.context() as patched:
        patched.setattr(planning_context, "time", moved)
        yield


def collect_after(ground: Ground, passed: timedelta) -> None:
    """A run so much later, by the store's clock."""

    def later(_store: ObjectStore, _run: str) -> datetime:
        return (datetime.now(UTC) + passed).replace(microsecond=0)

    Collector(ground.catalog, settle=timedelta(0), clock=later).collect()


def names(ground: Ground) -> list[str]:
    snapshot = ground.catalog.snapshot()
    return [*(pin.name for pin in snapshot.pins()), *("intent" for _ in snapshot.intents())]


def pin(ground: Ground) -> None:
    ground.call("pin_catalog_version", name="p", seconds=7_200)


def register(ground: Ground) -> None:
    request = {"intent_id": str(uuid.UUID(int=7)), "seconds": 7_200, "tables": [{"id": T}]}
    ground.call("register_intent", **request)


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("make", [pin, register])
def test_a_lease_lasts_as_long_as_was_asked_for(
    one: Ground, make: Callable[[Ground], None], skew: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clock_off_by(skew, monkeypatch):
        make(one)
    collect(one)
    [left] = names(one)
    collect_after(one, 1.9 * HOUR)
    assert names(one) == [left]
    collect_after(one, 2.1 * HOUR)
    assert names(one) == []


@pytest.mark.parametrize("skew", SKEWS)
def test_a_dropped_table_can_come_back_as_long_as_its_window(
    one: Ground, skew: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = one.location(T)

    def state() -> str | None:
        tombstone = one.catalog.snapshot().tombstone_at(location)
        return None if tombstone is None else tombstone.state

    with clock_off_by(skew, monkeypatch):
        one.call("drop_table", id=T)
    for days in (0, 6.9):
        collect_after(one, timedelta(days=days))
        assert state() == DROPPED
    one.call("undrop_table", id=T)
    with clock_off_by(skew, monkeypatch):
        one.call("drop_table", id=T)
    collect_after(one, timedelta(days=7.1))
    assert state() == PURGED
    assert not any((one.root / location).rglob("*.lance"))


def drop(ground: Ground) -> None:
    ground.call("drop_table", id=T)


def left(ground: Ground) -> list[object]:
    """The pins, the intents, and the dropped tables that can come back."""
    dropped = (record for record in ground.catalog.snapshot().records() if record.state == DROPPED)
    return [*names(ground), *dropped]


@pytest.mark.parametrize("is_followed", [False, True])
@pytest.mark.parametrize("make", [pin, register, drop])
def test_a_date_that_goes_back_is_no_beginning(one: Ground, make: Callable[[Ground], None], is_followed: bool) -> None:
    """The clock of the store jumped back for one version: it is not dated before the version below it."""
    let_pass(one, timedelta(days=8))
    make(one)
    version = one.catalog.snapshot().version
    written = one.root / "__manifest/_versions" / manifest_name(version)
    os.utime(written, (0, 0))
    if is_followed:
        one.make_namespace("later")
    for passed in (timedelta(0), 1.9 * HOUR):
        collect_after(one, passed)
        assert left(one)
    collect_after(one, timedelta(days=7.1))
    assert not left(one)


def test_a_renewal_counts_from_itself_and_shortens_nothing(one: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    register(one)
    collect(one)
    with clock_off_by(timedelta(days=-8), monkeypatch):
        one.call("register_intent", intent_id=str(uuid.UUID(int=7)), seconds=3_600, tables=[{"id": T}])
    collect_after(one, 1.9 * HOUR)
    assert names(one) == ["intent"]
    collect_after(one, 2.1 * HOUR)
    assert names(one) == []


def test_a_lease_outlives_the_catalog_version_that_set_it(one: Ground) -> None:
    """The horizon flip that lets its date go has written the end."""
    one.call("pin_catalog_version", name="p", seconds=30 * 86_400)
    collect(one)
    [found] = one.catalog.snapshot().pins()
    assert found.set_in == 0
    for number in range(110):
        one.call("create_namespace", id=["g", f"n{number}"])
    let_pass(one)
    collect(one)
    collect(one)
    assert one.catalog.snapshot().collector.oldest > found.version
    assert one.catalog.snapshot().pins() == [found]


def test_what_is_set_after_a_run_looked_is_dated_by_the_next_one(one: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Collector(one.catalog, settle=timedelta(0))
    horizon_flipd = run._commit

    def meanwhile(plan: Callable[[CatalogSnapshot], Changes], **more: object) -> CatalogSnapshot:
        with clock_off_by(-YEARS, monkeypatch):
            pin(one)
            one.call("drop_table", id=T)
        return horizon_flipd(plan, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "_commit", meanwhile)
    run.collect()
    [pinned] = one.catalog.snapshot().pins()
    assert pinned.set_in
    collect(one)
    assert names(one) == ["p"]
    [pinned] = one.catalog.snapshot().pins()
    assert not pinned.set_in
    one.call("undrop_table", id=T)


def test_rows_of_earlier_releases_count_from_the_first_horizon_flip_that_meets_them(one: Ground) -> None:
    """They do not tell the catalog version that set them, or the clock of its writer."""
    then = int(datetime(2006, 1, 1, tzinfo=UTC).timestamp() * 1_000)
    chains = ()
    one.call("drop_table", id=T)

    def as_before(snapshot: CatalogSnapshot) -> Changes:
        dropped = [
            replace(each, timestamp_ms=then, catalog_version=each.catalog_version)
            for each in snapshot.records()
            if each.state == DROPPED
        ]
        leases = [PinEntry("p", 1, then + 7_200_000, timestamp_ms=then), PinEntry("for ever", 1, timestamp_ms=then)]
        intent = IntentEntry(str(uuid.UUID(int=7)), chains, then + 7_200_000, timestamp_ms=then)
        return changes_of([*dropped, *leases, intent])

    one.catalog.committer.commit_changes(as_before)
    for passed in (timedelta(0), 1.9 * HOUR):
        collect_after(one, passed)
        assert names(one) == ["for ever", "p", "intent"]
    [tombstone] = [each for each in one.catalog.snapshot().records() if each.state == DROPPED]
    assert DATED.items() <= tombstone.properties.items()
    collect_after(one, 2.1 * HOUR)
    assert names(one) == ["for ever"]
    one.call("undrop_table", id=T)

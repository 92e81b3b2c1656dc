"""Settings with floors, and the time of a run."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lance_core.storage.local import LocalStore
from lance_core.versions import find_latest, read_manifest
from namespace_server.directory.gc.horizon import GcStopped, move_horizon, store_time
from namespace_server.directory.gc.settings import GcSettings
from namespace_server.directory.manifest_table.schema import MANAGED_FLAG, WRITER_FLAGS_KEY
from namespace_server.directory.model.collector_rows import CollectorEntry
from namespace_server.directory.model.entries import changes_of
from namespace_server.durations import format_duration, parse_duration
from tests.directory.gc.collecting import collect, forget_history
from tests.directory.tables import Ground
from tests.storage.faults import FaultStore

HOUR = timedelta(hours=1)
RUN = "00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    "text", ["0s", "59s", "1m", "90m", "36h", "14d", "3w", "500ms", "1.5s", "0.000001s", "1.5d", " 2 h ", "999999999d"]
)
def test_a_duration_comes_back_from_its_text(text: str) -> None:
    assert parse_duration(format_duration(parse_duration(text))) == parse_duration(text)


def test_one_grammar_of_durations() -> None:
    """Of settings and of requests: both write whole days and parts of seconds."""
    assert parse_duration("500ms") == timedelta(milliseconds=500)
    assert parse_duration("1.5d") == timedelta(hours=36)
    assert format_duration(timedelta(hours=36)) == "36h"
    assert format_duration(timedelta(seconds=61, milliseconds=250)) == "61.25s"
    for text in ("", "5", "s", "-1s", "1y", "1,5s", "5 m s", "9999999999d", "\u0661s"):
        with pytest.raises(ValueError, match="expected"):
            parse_duration(text)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("gc.uncommitted.grace", "23h", "at least 1d"),
        ("gc.catalog.age", "59m", "at least 1h"),
        ("gc.catalog.count", "99", "at least 100"),
        ("gc.dropped.window", "0s", "at least 1h"),
        ("gc.orphans.every", "23h", "at least 1d"),
        ("gc.catalog.count", "-1", "expected a number"),
        ("gc.catalog.count", "\u0662\u0660\u0660", "expected a number"),
        ("gc.catalog.age", "soon", "expected a number and one of"),
        ("gc.unknown", "1d", "no such setting"),
    ],
)
def test_a_setting_is_refused_by_its_name(name: str, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"{name}.*{problem}"):
        GcSettings().with_texts({name: text})


def test_settings_come_back_from_their_texts() -> None:
    days = [timedelta(days=count) for count in (3, 30, 40, 5)]
    settings = GcSettings(days[0], 5 * HOUR, 200, days[1], days[2], 7, days[3])
    assert GcSettings().with_texts(settings.as_texts()) == settings


def test_settings_stay_in_the_catalog(ground: Ground) -> None:
    collect(ground, {"gc.dropped.window": "30d"})
    collect(ground.again(), {"gc.catalog.count": "500"})
    assert collect(ground.again(), {"gc.dropped.window": "40d"}).settings["gc.dropped.window"] == "40d"
    report = collect(ground.again())
    assert report.settings["gc.dropped.window"] == "40d"
    assert report.settings["gc.catalog.count"] == "500"
    with pytest.raises(ValueError, match=r"gc\.catalog\.age"):
        collect(ground, {"gc.catalog.age": "1m"})


def test_a_setting_of_a_later_release_stays_and_is_not_read(ground: Ground) -> None:
    entry = CollectorEntry(settings={"gc.later": "2d", "gc.catalog.count": "500"})
    ground.catalog.committer.commit_changes(lambda _: changes_of([entry]))
    assert collect(ground).settings["gc.catalog.count"] == "500"
    assert ground.catalog.snapshot().collector.settings == entry.settings


def test_the_time_of_a_run_is_that_of_the_store(tmp_path: Path) -> None:
    store, now = LocalStore(tmp_path, "none"), datetime.now(UTC)
    found = store_time(store, RUN)
    assert abs(found - now) <= timedelta(seconds=2)
    assert found.microsecond == 0
    with pytest.raises(GcStopped, match="less than an hour between them"):
        store_time(store, RUN, now + 2 * HOUR)
    with pytest.raises(GcStopped, match="less than an hour between them"):
        store_time(store, RUN, now - 2 * HOUR)


@pytest.mark.parametrize("late", [HOUR / 2, HOUR])
def test_a_store_that_is_up_to_an_hour_behind_decides_all_the_same(tmp_path: Path, late: timedelta) -> None:
    store, now = FaultStore(LocalStore(tmp_path, "none")), datetime.now(UTC).replace(microsecond=0)
    behind = now - late

    def date_back(verb: str, path: str) -> None:
        if verb == "head":
            os.utime(tmp_path / path, (behind.timestamp(), behind.timestamp()))

    store.before(date_back)
    assert store_time(store, RUN, now) == behind


def test_the_first_horizon_flip_shuts_out_releases_without_the_rules(ground: Ground) -> None:
    ground.make_namespace("a")
    collect(ground)
    ground.make_namespace("b")
    newest = read_manifest(ground.store, find_latest(ground.store, "__manifest"))
    assert int(newest.manifest.table_metadata[WRITER_FLAGS_KEY]) == MANAGED_FLAG | 1 << 33


def test_the_horizon_never_goes_back(ground: Ground) -> None:
    collect(ground, {"gc.uncommitted.grace": "1d"})
    before = ground.catalog.snapshot().collector
    collect(ground, {"gc.uncommitted.grace": "9d"})
    assert ground.catalog.snapshot().collector.horizon == before.horizon


def test_the_oldest_kept_version_neither_goes_back_nor_beyond_the_newest(ground: Ground) -> None:
    """A run that was held wants another one than the runs since have set."""
    forget_history(ground)
    snapshot = ground.catalog.snapshot()
    assert snapshot.collector.oldest == snapshot.version > 1
    for wanted in (1, snapshot.version + 1):
        changes = move_horizon(snapshot, horizon=1, oldest=wanted, run=RUN, now_ms=2_000, settings={})
        assert snapshot.apply(changes).collector.oldest == snapshot.version


def test_the_least_grace_time_of_all_horizon_flips_is_remembered(ground: Ground) -> None:
    """A version that was committed by path is adopted by it (G5)."""
    for days, least in ((9, 9), (2, 2), (9, 2)):
        collect(ground, {"gc.uncommitted.grace": f"{days}d"})
        assert ground.catalog.snapshot().collector.grace == least * 86_400

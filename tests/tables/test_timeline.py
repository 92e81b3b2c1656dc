"""The newest version at or before a timestamp: the one of stock pylance, and how little is read to find it."""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import lance
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import ReferenceNotFound
from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.memory import MemoryStore
from lance_core.storage.wrappers.counting import CountingStore
from lance_core.tables.dataset import Dataset
from lance_core.tables.time_travel import find_as_of
from lance_core.versions import list_versions

START = datetime(2026, 1, 1, tzinfo=UTC)


def history(*nanoseconds: int, scheme: NamingScheme = NamingScheme.V2) -> CountingStore:
    """A table whose versions were committed so many nanoseconds after `START`."""
    store = MemoryStore()
    begin = int(START.timestamp()) * 1_000_000_000
    for version, time in enumerate(nanoseconds, 1):
        seconds, nanos = divmod(begin + time, 1_000_000_000)
        manifest = pb.Manifest(version=version)
        manifest.timestamp.seconds, manifest.timestamp.nanos = seconds, nanos
        store.put(manifest_path("", version, scheme), encode_manifest_file(manifest, None))
    return CountingStore(store)


def version_at(store: CountingStore, microseconds: int) -> int | None:
    try:
        return find_as_of(store, "", START + timedelta(microseconds=microseconds))[0].version
    except ReferenceNotFound:
        return None


def test_timestamps_find_the_versions_that_pylance_finds(table: Path) -> None:
    for branch in (None, "dev", "dev/nested"):
        dataset = Dataset.open(str(table), (branch, None))
        stock = dataset.to_pylance()
        shown = {entry["version"]: entry["timestamp"] for entry in stock.versions()}
        for version, moment in shown.items():
            assert dataset.checkout(moment).version == version  # naive: local time, as pylance shows it
            assert dataset.checkout(moment.astimezone()).version == version
            assert dataset.checkout(moment.astimezone(timezone(timedelta(hours=-7)))).version == version
            later = moment + timedelta(microseconds=1)
            theirs = lance.dataset(dataset.uri, asof=later).version
            assert Dataset.open(str(table), (branch, later)).version == theirs == version
    latest = Dataset.open(str(table), datetime(2200, 1, 1, tzinfo=UTC))
    assert latest.version == lance.dataset(str(table), asof=datetime(2200, 1, 1)).version == 4  # noqa: DTZ001


def test_a_timestamp_is_resolved_on_the_given_branch(table: Path) -> None:
    dev = Dataset.open(str(table), ("dev", None))
    before = next(entry["timestamp"] for entry in lance.dataset(str(table)).versions() if entry["version"] == 2)
    with pytest.raises(ReferenceNotFound, match=rf"tree/dev: expected a version at or before {before.year}"):
        dev.checkout(before)
    assert dev.checkout(("main", before)).version == 2
    assert dev.checkout(datetime.now(UTC)) is dev


def test_the_timestamp_of_a_version_finds_it() -> None:
    store = history(1_234_567, 1_234_799, 1_235_200)
    assert version_at(store, 1233) is None
    assert version_at(store, 1234) == 2  # both were committed in this microsecond
    assert version_at(store, 1235) == 3


def test_the_timestamp_shown_by_pylance_finds_its_version() -> None:
    """It computes with floats, and shows some versions the microsecond before their own."""
    convert = sys.modules["lance.dataset"]._convert_version_timestamp  # type: ignore[attr-defined]
    store = history(*(3_037 * number for number in range(300)))
    begin = int(START.timestamp()) * 1_000_000_000
    early = 0
    for version in range(1, 301):
        exact = begin + 3_037 * (version - 1)
        shown = convert({"timestamp": exact})["timestamp"]
        early += shown.astimezone(UTC) - START < timedelta(microseconds=(exact - begin) // 1000)
        assert find_as_of(store, "", shown)[0].version == version
    assert early


def test_a_timestamp_before_the_first_version_is_reported() -> None:
    with pytest.raises(ReferenceNotFound, match="found no version at all"):
        find_as_of(MemoryStore(), "", START)
    with pytest.raises(ReferenceNotFound, match=r"2025-12-31T23:59:59\+00:00, found none before 2026-01-01"):
        find_as_of(history(500, 1500, 2500), "", START - timedelta(seconds=1))


@pytest.mark.parametrize("scheme", list(NamingScheme))
def test_few_manifests_are_read(scheme: NamingScheme) -> None:
    count = 1000
    store = history(*(number * 1000 + 500 for number in range(count)), scheme=scheme)
    for wanted in (0, 1, 2, 499, 500, 997, 998):
        with store.measure() as cost:
            assert version_at(store, wanted) == wanted + 1
        assert cost.by_verb["list"] == 1
        assert cost.by_verb["get"] <= 1 + 10 + 10  # the head, the search, those beyond
    with store.measure() as cost:
        assert version_at(store, count) == count
    assert dict(cost.by_verb) == {"list": 1, "get": 1}


@given(st.lists(st.integers(0, 60), min_size=1, max_size=60), st.integers(-1, 61))
def test_increasing_times_are_searched_exactly(steps: list[int], moment: int) -> None:
    times = sorted(steps)
    expected = max((version for version, time in enumerate(times, 1) if time <= moment), default=None)
    assert version_at(history(*(time * 1000 + 500 for time in times)), moment) == expected


@given(st.lists(st.integers(0, 60), min_size=1, max_size=60), st.integers(-1, 61))
def test_the_result_is_never_later_than_the_timestamp(times: list[int], moment: int) -> None:
    found = version_at(history(*(time * 1000 + 500 for time in times)), moment)
    if found is not None:
        assert times[found - 1] <= moment
    if times[-1] <= moment:
        assert found == len(times)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_timestamps_out_of_order_are_detected(seed: int) -> None:
    """They take turns; one is ten minutes behind."""
    dice = random.Random(seed)
    times = [number - (600 if dice.random() < 0.5 else 0) for number in range(2000)]
    assert any(earlier > later for earlier, later in pairwise(times))
    store = history(*(time * 1000 + 500 for time in times))
    for moment in (dice.randrange(2000) for _ in range(5)):
        assert version_at(store, moment) == max(
            (version for version, time in enumerate(times, 1) if time <= moment), default=None
        )


def test_versions_removed_meanwhile_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    store = history(*(number * 1000 + 500 for number in range(20)))
    listed = list_versions(store, "")
    monkeypatch.setattr("lance_core.tables.time_travel.list_versions", lambda *_: list(listed))
    for version in (20, 19, 10, 6, 5):
        store.delete(manifest_path("", version))
    assert [version_at(store, moment) for moment in (99, 18, 9, 8, 5, 4, 3)] == [18, 18, 9, 9, 4, 4, 4]
    for location in listed:
        store.delete(location.path)
    assert version_at(store, 5) is None

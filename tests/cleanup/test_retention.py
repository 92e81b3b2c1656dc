"""Retention rules on plain values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.cleanup.retention import DatedVersion, Retention, judge_versions

NOW = datetime(2026, 11, 21, tzinfo=UTC)
NEVER = timedelta(0)


def versions(*ages_in_days: float) -> list[DatedVersion]:
    """Versions 1, 2, … written so many days ago."""
    return [DatedVersion(number, NOW - timedelta(days=age)) for number, age in enumerate(ages_in_days, 1)]


def test_age_counts_from_when_a_version_was_superseded() -> None:
    """Version 1 is a month old, and was the newest until an hour ago."""
    found = judge_versions(versions(30, 1 / 24), Retention(older_than=timedelta(days=14)), NOW, {})
    assert found.expired == ()
    assert found.kept == {
        1: "superseded at 2026-11-20T23:00:00Z, less than 14 days, 0:00:00 ago",
        2: "the newest version",
    }


def test_versions_expire_by_age() -> None:
    found = judge_versions(versions(30, 20, 10, 1), Retention(older_than=timedelta(days=14)), NOW, {})
    assert found.expired == (1,)


def test_versions_expire_by_count() -> None:
    found = judge_versions(versions(4, 3, 2, 1), Retention(keep=2), NOW, {})
    assert (found.expired, found.kept[3]) == ((1, 2), "one of the newest 2")


def test_a_version_is_kept_if_either_rule_keeps_it() -> None:
    retention = Retention(older_than=timedelta(days=2.5), keep=2)
    assert judge_versions(versions(9, 8, 2, 1, 0), retention, NOW, {}).expired == (1,)
    assert judge_versions(versions(9, 8, 7, 6, 5), retention, NOW, {}).expired == (1, 2, 3)


def test_without_rules_all_versions_are_kept() -> None:
    found = judge_versions(versions(30, 20), Retention(), NOW, {})
    assert found.kept == {1: "no retention was given", 2: "the newest version"}


def test_a_superseded_version_is_kept_for_an_hour() -> None:
    fresh = [DatedVersion(number, NOW - timedelta(minutes=70 - 20 * number)) for number in (1, 2, 3)]
    assert judge_versions(fresh, Retention(keep=1), NOW, {}).expired == ()
    assert judge_versions(fresh, Retention(keep=1, min_age=NEVER), NOW, {}).expired == (1, 2)


def test_pinned_versions_are_kept() -> None:
    found = judge_versions(versions(9, 8, 7), Retention(keep=1), NOW, {1: "tag t"})
    assert (found.expired, found.kept[1]) == ((2,), "tag t")


@pytest.mark.parametrize(
    ("wrong", "said"), [({"keep": 0}, "expected at least 1"), ({"older_than": timedelta(-1)}, "expected a duration")]
)
def test_invalid_retention_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Retention(**wrong)  # type: ignore[arg-type]


@given(
    ages=st.lists(st.floats(0, 100), min_size=1, max_size=12).map(lambda ages: sorted(ages, reverse=True)),
    older=st.none() | st.floats(0, 100),
    keep=st.none() | st.integers(1, 12),
    pinned=st.sets(st.integers(1, 12)),
)
def test_invariants_of_any_retention(
    ages: list[float], older: float | None, keep: int | None, pinned: set[int]
) -> None:
    retention = Retention(None if older is None else timedelta(days=older), keep, NEVER)
    found = judge_versions(versions(*ages), retention, NOW, dict.fromkeys(pinned, "pinned"))
    newest = len(ages)
    assert sorted([*found.expired, *found.kept]) == list(range(1, newest + 1))
    assert newest in found.kept
    assert not pinned & set(found.expired)
    for version in found.expired:
        assert keep is None or version <= newest - keep
        assert older is None or ages[version] >= older - 1e-6

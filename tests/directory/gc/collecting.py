"""A catalog that is collected: time passes by the dates of its files."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from namespace_server.directory.gc.report import GcReport
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.model.collector_rows import IntentEntry
from namespace_server.directory.model.entries import TOMBSTONES, Changes, VersionEntry, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.tables import Ground

WEEK = timedelta(days=7, hours=1)


def let_pass(ground: Ground, duration: timedelta = WEEK) -> None:
    """Make everything below the root older by `duration`: files and directories by date, tombstones by their time.

    Intents began earlier by as much, and were renewed.
    """
    seconds = duration.total_seconds()

    def age(snapshot: CatalogSnapshot) -> Changes:
        dead = (record for record in snapshot.records() if record.state in TOMBSTONES)
        older = [replace(each, timestamp_ms=each.timestamp_ms - int(seconds * 1_000)) for each in dead]
        return changes_of([*older, *(_older(intent, int(seconds)) for intent in snapshot.intents())])

    ground.catalog.committer.commit_changes(age)
    for path in ground.root.rglob("*"):
        written = path.stat().st_mtime - seconds
        os.utime(path, (written, written))


def _older(intent: IntentEntry, seconds: int) -> IntentEntry:
    """An intent that began earlier, and was renewed just now."""
    chains = tuple(chain._replace(since=chain.since - seconds) for chain in intent.chains)
    until_ms = max(intent.until_ms, _now_ms() + intent.seconds * 1_000)
    return replace(intent, chains=chains, until_ms=until_ms, set_in=0)


def collect(ground: Ground, settings: Mapping[str, str] | None = None) -> GcReport:
    """One run, without a pause."""
    return Collector(ground.catalog, settle=timedelta(0)).collect(settings)


def forget_history(ground: Ground) -> None:
    """Let the newest catalog version be the only one that is kept."""

    def plan(snapshot: CatalogSnapshot) -> Changes:
        return changes_of([replace(snapshot.collector, oldest=snapshot.version + 1, timestamp_ms=_now_ms())])

    ground.catalog.committer.commit_changes(plan)


def days_pass(ground: Ground, days: float) -> None:
    """Files and rows of versions become older."""
    ground.catalog.sweep()
    let_pass(ground, timedelta(days=days))
    date_rows_back(ground, days)


def date_rows_back(ground: Ground, days: float) -> None:
    def age(snapshot: CatalogSnapshot) -> Changes:
        found: list[VersionEntry] = []
        for table_id in snapshot.all_tables():
            for branch in snapshot.chains(table_id):
                found += snapshot.versions(table_id, branch)
        passed = int(days * 86_400_000)
        return changes_of([replace(row, timestamp_ms=row.timestamp_ms - passed) for row in found])

    ground.catalog.committer.commit_changes(age)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

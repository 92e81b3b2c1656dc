"""Single tables: opening them and committing to them, beside pylance's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median, quantiles

import lance

from benchmarks.support.engine_tables import Prepared, SampleTable
from benchmarks.support.report import Report, Table, milliseconds, ratio
from benchmarks.support.staging import flush_files
from lance_core.commit.loop import commit_transaction
from lance_core.commit.staged import stage_commit
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import Update, encode_transaction

WARM_UP = 5
_SIZES = (("1 fragment", 1), ("500 fragments", 500), ("10,000 fragments", 10_000))
BEHIND = 120

Contender = Callable[[Prepared], object]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one contender."""

    p50: float
    p99: float


def run(directory: Path) -> Report:
    """Measure every kind of call on tables of every size."""
    commits = _table("Commit an append")
    for name, fragments in _SIZES:
        sample = SampleTable(directory / f"head-{fragments}", fragments)
        _measure(commits, name, sample, _COMMITS, rounds=100 if fragments <= 500 else 30)
    updates = _table("Commit an update: one fragment leaves, one comes")
    for name, fragments in _SIZES[1:]:
        sample = SampleTable(directory / f"update-{fragments}", fragments)
        _measure(updates, name, sample, _UPDATES, rounds=100 if fragments <= 500 else 30)
    behind = _table(f"Commit an append, {BEHIND} versions behind the head")
    for name, fragments in _SIZES:
        sample = SampleTable(directory / f"behind-{fragments}", fragments, appends=BEHIND)
        rounds = 40 if fragments <= 500 else 5
        _measure(behind, f"{name}, and one more per version", sample, _COMMITS, rounds=rounds, behind=BEHIND)
    behind.notes.append("Each version between is another append, which ours has to be judged against.")
    opened = _table("Open the newest version", fsync=False)
    for name, fragments in _SIZES:
        _measure(opened, name, SampleTable(directory / f"open-{fragments}", fragments), _OPENINGS, rounds=100)
    staged = _table("Stage an append, then publish it")
    for name, fragments in (("1 fragment", 1), ("500 fragments", 500)):
        sample = SampleTable(directory / f"stage-{fragments}", fragments)
        _measure(staged, f"{name}; pylance: a detached commit, then a commit", sample, _STAGINGS, rounds=100)
        sample = SampleTable(directory / f"stage-or-commit-{fragments}", fragments)
        _measure(
            staged,
            f"{name}; pylance: a commit alone",
            sample,
            (_stage, _stage_durably, _commit_with_pylance),
            rounds=100,
        )
    staged.notes.append(
        "pylance cannot publish what it staged. What comes nearest is a detached commit, which can be read before it "
        "counts, and then the commit of the same append."
    )
    return Report("engine", "Tables by themselves", _METHOD, [commits, updates, behind, opened, staged])


_METHOD = (
    "Appends of one prepared fragment, whose data file is written before the clock starts, and openings, by URI, "
    "without anything kept from one call to the next. Every commit finds its own copy of the same table; ours, ours "
    "with fsync and pylance take turns. pylance never syncs: the ratio is that of ours without fsync, its median over "
    "pylance's; below 1 ours is the faster one."
)


def _table(title: str, *, fsync: bool = True) -> Table:
    with_fsync = ("with fsync", "p99 ms") if fsync else ()
    return Table(title, ("table", "ours p50 ms", "p99 ms", *with_fsync, "pylance p50 ms", "p99 ms", "ours to pylance"))


def _measure(
    table: Table,
    name: str,
    sample: SampleTable,
    contenders: Sequence[Contender],
    *,
    rounds: int,
    behind: int = 0,
) -> None:
    """Let the contenders take turns, the first and the last of which are ours and pylance's."""
    directories = (sample.directory.with_name(f"{sample.directory.name}-{number}") for number in count())
    turns = [[sample.copy(next(directories), behind) for _ in contenders] for _ in range(WARM_UP + rounds)]
    flush_files()
    seconds: list[list[float]] = [[] for _ in contenders]
    for number, copies in enumerate(turns):
        for turn in range(len(contenders)):
            who = (number + turn) % len(contenders)
            began = time.perf_counter()
            contenders[who](copies[who])
            taken = time.perf_counter() - began
            if number >= WARM_UP:
                seconds[who].append(taken)
    if contenders is not _OPENINGS:
        _verify(copies, sample, updated=contenders is _UPDATES)
    times = [Times(median(taken), quantiles(taken, n=100, method="inclusive")[98]) for taken in seconds]
    cells = [milliseconds(value) for found in times for value in (found.p50, found.p99)]
    table.add(name, *cells, ratio(times[0].p50, times[-1].p50))


def _verify(copies: Sequence[Prepared], sample: SampleTable, *, updated: bool) -> None:
    for copy in copies:
        dataset = lance.dataset(copy.uri)
        found = (dataset.version, dataset.count_rows())
        expected = (sample.head + 1, sample.fragments + (0 if updated else 1))
        if found != expected:
            raise RuntimeError(f"{copy.uri}: expected version and rows {expected}, found {found}")


def _commit(copy: Prepared) -> object:
    return commit_transaction(open_store(copy.uri, durability="none"), "", copy.transaction)


def _commit_durably(copy: Prepared) -> object:
    return commit_transaction(open_store(copy.uri), "", copy.transaction)


def _commit_with_pylance(copy: Prepared) -> object:
    return lance.LanceDataset.commit(copy.uri, copy.operation, read_version=copy.read_version)


def _update(copy: Prepared) -> object:
    return commit_transaction(open_store(copy.uri, durability="none"), "", _update_of(copy))


def _update_durably(copy: Prepared) -> object:
    return commit_transaction(open_store(copy.uri), "", _update_of(copy))


def _update_of(copy: Prepared) -> pb.Transaction:
    operation = Update(removed_ids=(copy.newest_fragment,), new=tuple(copy.transaction.append.fragments))
    return encode_transaction(operation, read_version=copy.read_version)


def _update_with_pylance(copy: Prepared) -> object:
    operation = lance.LanceOperation.Update(
        removed_fragment_ids=[copy.newest_fragment],
        updated_fragments=[],
        new_fragments=copy.operation.fragments,
        fields_modified=[],
    )
    return lance.LanceDataset.commit(copy.uri, operation, read_version=copy.read_version)


def _open(copy: Prepared) -> object:
    return Dataset.open(copy.uri)


def _open_with_pylance(copy: Prepared) -> object:
    return lance.dataset(copy.uri)


def _stage(copy: Prepared) -> object:
    return stage_commit(open_store(copy.uri, durability="none"), "", copy.transaction).publish()


def _stage_durably(copy: Prepared) -> object:
    return stage_commit(open_store(copy.uri), "", copy.transaction).publish()


def _detach_and_commit_with_pylance(copy: Prepared) -> object:
    lance.LanceDataset.commit(copy.uri, copy.operation, read_version=copy.read_version, detached=True)
    return _commit_with_pylance(copy)


_COMMITS = (_commit, _commit_durably, _commit_with_pylance)
_UPDATES = (_update, _update_durably, _update_with_pylance)
_OPENINGS = (_open, _open_with_pylance)
_STAGINGS = (_stage, _stage_durably, _detach_and_commit_with_pylance)

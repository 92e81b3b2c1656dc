"""Writers that race for one key: exactly one may win, and the others must see its bytes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from lance_core.errors import AlreadyExists, PreconditionFailed, StorageError, StorageUnknown
from lance_core.storage.port import ObjectStore
from namespace_server.directory.root_check.report import RootFinding, told_by
from namespace_server.directory.root_check.workspace import Workspace

RACERS: Final = 16
_ROUNDS: Final = 4
_SIZE: Final = 1 << 10
"""Bytes of an object."""


class RacerOutcome(Enum):
    """The store's answer to a writer."""

    WON = "written"
    LOST = "another writer was first"
    REFUSED = "the store refuses such writes"
    SILENT = "no answer"


@dataclass(frozen=True, slots=True)
class Racer:
    """A writer after a race.

    Attributes:
        data: The bytes that it wrote, or wanted to write.
        outcome: The store's answer.
        seen: The object that it read under the key after it had lost; None for none, and for other writers.
        error: The store's text where it refused.
    """

    data: bytes
    outcome: RacerOutcome
    seen: bytes | None = None
    error: str = ""


Writes = list[Callable[[], object]]


def check_exclusion(store: ObjectStore, work: Workspace) -> list[RootFinding]:
    """Commits: of the writers of a vacant key one wins, by a conditional write and, in a directory, by a link."""

    def puts(key: str, datas: Sequence[bytes]) -> Writes:
        return [partial(store.put_if_absent, key, data) for data in datas]

    def links(key: str, datas: Sequence[bytes]) -> Writes:
        staged = [work.key(f"staged/{number}") for number in range(len(datas))]
        for path, data in zip(staged, datas, strict=True):
            store.put(path, data)
        return [partial(store.publish, path, key, data) for path, data in zip(staged, datas, strict=True)]

    codes = ("no-exclusive-write", "not-exclusive")
    found = _contest(store, work, "writers of a vacant key", puts, *codes)
    if not found and store.content_e_tags:
        found = _contest(store, work, "links to a vacant name", links, *codes)
    return found


def check_replacement(store: ObjectStore, work: Workspace) -> list[RootFinding]:
    """References: of the writers that replace an object by its e_tag one wins."""

    def replacements(key: str, datas: Sequence[bytes]) -> Writes:
        store.put(key, os.urandom(_SIZE))
        e_tag = store.head(key).e_tag or ""
        return [partial(store.replace, key, data, if_match=e_tag) for data in datas]

    sample = work.key("e_tag")
    store.put(sample, b"a sample")
    if not store.head(sample).e_tag:
        return [RootFinding("no-replace", "expected that objects have e_tags, found none")]
    return _contest(store, work, "replacements by one e_tag", replacements, "no-replace", "replace-not-exclusive")


def _contest(
    store: ObjectStore,
    work: Workspace,
    what: str,
    prepare: Callable[[str, Sequence[bytes]], Writes],
    refused: str,
    broken: str,
) -> list[RootFinding]:
    """Races of the writes that `prepare` makes for a key and the bytes of each writer, until one has findings."""
    for _ in range(_ROUNDS):
        key, datas = work.slot(), [os.urandom(_SIZE) for _ in range(RACERS)]
        racers = _race(store, key, datas, prepare(key, datas))
        found = list(_judge(what, racers, store.find(key), refused, broken))
        if found:
            return found
    return []


def _race(store: ObjectStore, key: str, datas: Sequence[bytes], writes: Writes) -> list[Racer]:
    """Make the writes at once, each in its own thread. A writer that lost looks at the key."""
    start = threading.Barrier(len(writes))

    def run(data: bytes, write: Callable[[], object]) -> Racer:
        start.wait()
        try:
            write()
        except (AlreadyExists, PreconditionFailed):
            return Racer(data, RacerOutcome.LOST, store.find(key))
        except StorageUnknown as error:
            return Racer(data, RacerOutcome.SILENT, error=told_by(error))
        except StorageError as error:
            return Racer(data, RacerOutcome.REFUSED, error=told_by(error))
        return Racer(data, RacerOutcome.WON)

    with ThreadPoolExecutor(len(writes)) as pool:
        return list(pool.map(run, datas, writes))


def _judge(what: str, racers: Sequence[Racer], final: bytes | None, refused: str, broken: str) -> Iterator[RootFinding]:
    """The findings on a race after which the key holds `final`, under the codes `refused` and `broken`."""
    expected = f"{len(racers)} {what} at one time: expected that one succeeds"
    for racer in racers:
        if racer.outcome is RacerOutcome.REFUSED:
            yield RootFinding(refused, f"{expected}, found that the store refuses it: {racer.error}")
            return
    wrong = what_is_wrong(racers, final)
    if wrong is not None:
        yield RootFinding(broken, f"{expected}, found that {wrong}")
        return
    silent = [racer for racer in racers if racer.outcome is RacerOutcome.SILENT]
    if silent:
        yield RootFinding("no-answer", f"{expected}, found {len(silent)} without an answer: {silent[0].error}")


def what_is_wrong(racers: Sequence[Racer], final: bytes | None) -> str | None:
    """Why a race cannot have had one winner, with `final` in the key afterwards; None if it can. Pure."""
    winners = [racer.data for racer in racers if racer.outcome is RacerOutcome.WON]
    losers = [racer for racer in racers if racer.outcome is RacerOutcome.LOST]
    possible = winners or [racer.data for racer in racers if racer.outcome is RacerOutcome.SILENT]
    if len(winners) > 1:
        return f"{len(winners)} got the answer that they did"
    if any(racer.seen == racer.data or racer.data == final for racer in losers):
        return "the key holds the bytes of a writer that lost by its answer: something sends requests again"
    if not possible:
        return "each got the answer that another did"
    if final not in possible:
        return "the key does not hold the bytes of the one that did by its answer"
    if any(racer.seen is None for racer in losers):
        return "a writer that lost by its answer then found nothing under the key"
    if any(racer.seen != final for racer in losers):
        return "a writer that lost read other bytes than those of the winner"
    return None

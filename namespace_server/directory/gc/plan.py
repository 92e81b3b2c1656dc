"""Plans: the objects that a run will remove, stored before the first removal, so that any process can go on (rule G27).

    _staging/gc/<run>/plan-<n>   what goes: key, size, date and reason of each object, compressed; never changed
    _staging/gc/<run>/done-<n>   empty: everything of the plan of that number is gone, or was found to be another object
    _staging/gc/<run>/expiring/  copies of manifests that are being deleted (see `delete`)

What stands in a plan was garbage after the horizon had moved, and stays garbage: it may be deleted at any later time.
The files of a run whose plans are done go a day later.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from lance_core.cleanup.kinds import UUID_PATTERN
from lance_core.errors import AlreadyExists, CorruptFile, NotFound, PreconditionFailed, StorageError, StorageUnknown
from lance_core.storage.port import ObjectMeta, ObjectStore
from namespace_server.directory.manifests.conditional_removal import remove_if
from namespace_server.directory.model.root_layout import EXPIRING, GC_RUNS, gc_run_key

_FORMAT: Final = 1
_ENTRIES: Final = 10_000
"""The most objects in one plan."""
_AT_ONCE: Final = 128
_SECOND: Final = timedelta(seconds=1)
_NAME: Final = re.compile(rf"({GC_RUNS}/{UUID_PATTERN})/(?:(plan|done|clock)(?:-([0-9]+))?|{EXPIRING}/.+)", re.ASCII)
_COMPRESSED: Final = b"\x1f\x8b"


class Removal(NamedTuple):
    """One object that goes, as it was when it was found to be garbage."""

    path: str
    size: int
    written: datetime
    reason: str


@dataclass(slots=True)
class Deleted:
    """The outcome of deleting the objects of plans.

    Attributes:
        files: The number of removed objects by reason.
        sizes: Their bytes by reason.
        kept: The keys of those that are other objects by now.
        refused: Why the store did not remove others, by key, as where the run lacks the permission.
    """

    files: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    kept: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def store_plans(store: ObjectStore, run: str, removals: Iterable[Removal]) -> list[str]:
    """Store the plans of a run; returns their keys in order. Raises `StorageError`: then nothing may be removed."""
    left = iter(removals)
    keys: list[str] = []
    while part := list(islice(left, _ENTRIES)):
        key = gc_run_key(run, f"plan-{len(keys)}")
        entries = [[item.path, item.size, item.written.timestamp(), item.reason] for item in part]
        store.put_if_absent(key, gzip.compress(orjson.dumps({"format": _FORMAT, "removals": entries}), 1))
        keys.append(key)
    return keys


@dataclass(slots=True)
class StoredRuns:
    """The files that runs have stored, as one listing found them.

    Attributes:
        unfinished: The keys of the plans, of all runs, that are not done, those of a run in order.
    """

    unfinished: list[str]
    _files: dict[str, list[ObjectMeta]]

    def finished_before(self, date: datetime) -> list[str]:
        """The keys of the files of runs that are done, and wrote the last one before `date`, plans first."""
        going = {run_of(path) for path in self.unfinished}
        found = [
            meta.path
            for run, metas in self._files.items()
            if run not in going and max(meta.last_modified for meta in metas) < date
            for meta in metas
        ]
        return sorted(found, key=lambda path: ("/plan-" not in path, path))


def list_runs(store: ObjectStore) -> StoredRuns:
    """The objects that runs have stored. One listing. Raises `StorageError`."""
    plans: dict[tuple[str, int], str] = {}
    files: dict[str, list[ObjectMeta]] = {}
    for meta in store.list(GC_RUNS):
        named = _NAME.fullmatch(meta.path)
        if named is None:
            continue
        files.setdefault(named[1], []).append(meta)
        if named[2] == "plan":
            plans.setdefault((named[1], int(named[3])), meta.path)
        elif named[2] == "done":
            plans[named[1], int(named[3])] = ""
    return StoredRuns([path for _, path in sorted(plans.items()) if path], files)


def run_of(plan: str) -> str:
    """The key below which the files of a plan's run lie."""
    return plan.rpartition("/")[0]


def plans_up_to(plan: str) -> list[str]:
    """The keys of a run's plans from the first to this one."""
    run, _, number = plan.rpartition("-")
    return [f"{run}-{each}" for each in range(int(number) + 1)]


def read_plan(store: ObjectStore, key: str) -> list[Removal]:
    """The objects of a stored plan. Raises `CorruptFile` for one that is damaged, `StorageError`."""
    data = store.get(key)
    try:
        values: Any = orjson.loads(gzip.decompress(data) if data.startswith(_COMPRESSED) else data)
        if values["format"] != _FORMAT:
            raise CorruptFile(f"{store.object_uri(key)}: expected format {_FORMAT}, found {values['format']}")
        return [
            Removal(path, size, datetime.fromtimestamp(written, UTC), reason)
            for path, size, written, reason in values["removals"]
        ]
    except (KeyError, TypeError, ValueError, OSError, EOFError, zlib.error) as error:
        raise CorruptFile(f"{store.object_uri(key)}: expected a plan of garbage collection") from error


def finish_plan(store: ObjectStore, key: str) -> None:
    """Note that nothing of a plan is left to be done. Raises `StorageError`."""
    try:
        store.put_if_absent(key.replace("/plan-", "/done-"), b"", durable=False)
    except AlreadyExists:
        return


def remove_all(
    store: ObjectStore, removals: Sequence[Removal], outcome: Deleted, *, names_come_back: bool = False
) -> frozenset[str]:
    """Remove the objects that are still as they were planned; others are kept. Returns the keys of those that it found.

    What the store refuses to remove stays, as where the permission is lacking, and is added to `outcome`. Raises
    `StorageError` if the store does not answer. With `names_come_back` another object may take a name at any moment,
    and is not removed (`remove_if`). Names of data, deletion, index and transaction files, and of catalog versions
    below the oldest, are never used twice.
    """
    found_there: set[str] = set()

    def remove(item: Removal) -> bool:
        try:
            found = store.head(item.path)
        except NotFound:
            if not names_come_back:
                store.delete(item.path)  # over an external manifest store its row may be left
            return True
        found_there.add(item.path)
        if found.size != item.size or abs(found.last_modified - item.written) >= _SECOND:
            return False
        try:
            return _is_removed(store, found, names_come_back=names_come_back)
        except StorageUnknown:
            raise
        except StorageError as error:
            outcome.refused[item.path] = str(error)
            return False

    for item, gone in zip(removals, _in_parts(store, remove, removals), strict=True):
        if gone:
            outcome.files[item.reason] += 1
            outcome.sizes[item.reason] += item.size
        elif item.path not in outcome.refused:
            outcome.kept.append(item.path)
    return frozenset(found_there)


def _is_removed(store: ObjectStore, found: ObjectMeta, *, names_come_back: bool) -> bool:
    """Remove an object; whether it was still the one that was found, as far as that matters."""
    if not names_come_back:
        store.delete(found.path)
        return True
    try:
        remove_if(store, found.path, found.e_tag)
    except PreconditionFailed:
        return False
    return True


def _in_parts(store: ObjectStore, call: Callable[[Removal], bool], items: Sequence[Removal]) -> Iterator[bool]:
    for first in range(0, len(items), _AT_ONCE):
        yield from store.map(call, items[first : first + _AT_ONCE])

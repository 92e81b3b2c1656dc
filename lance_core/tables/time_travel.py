"""Time travel by timestamp: finds the version that was the newest at a given time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from lance_core.errors import ReferenceNotFound
from lance_core.format.manifest import ManifestFile
from lance_core.storage.port import ObjectStore
from lance_core.versions import ManifestLocation, list_versions, read_unless_removed

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def find_as_of(store: ObjectStore, base: str, time: datetime) -> tuple[ManifestLocation, ManifestFile]:
    """The newest version below `base` that was committed at or before `time`.

    A timestamp without a time zone is local time. Commits have nanoseconds and a `datetime` has microseconds, so a
    commit counts as made at the start of its microsecond: the time that a version shows, here or in stock pylance,
    finds that version. (The `asof` of stock pylance finds the version before, because it compares by `<`.)

    Costs a listing and a binary search, because this engine writes ascending timestamps. Other writers do not guarantee
    that, so the search also reads as many versions again, at growing distances above the result. If their timestamps
    are not ascending, all versions above are read, and the largest number at or before `time` is returned, as in
    stock pylance. Disorder between the versions read is not detected.

    Raises `ReferenceNotFound` if there is no version, or none so early.
    """
    timeline = _Timeline(store, list_versions(store, base))
    found = timeline.find(_microseconds(time))
    if found is None:
        raise ReferenceNotFound(
            f"{store.object_uri(base)}: expected a version at or before {time.isoformat()}, found {timeline.extent}"
        )
    return found


def _microseconds(timestamp: datetime) -> int:
    return (timestamp.astimezone(UTC) - _EPOCH) // _MICROSECOND


def _shown(nanoseconds: int) -> int:
    """The microsecond of a commit as this engine or stock pylance shows it, whichever is earlier.

    Stock pylance computes with floats, whose spacing at today's dates is 256 ns, and may show the microsecond before.
    """
    second, rest = divmod(float(nanoseconds), 1e9)
    return min(nanoseconds // 1000, int(second) * 1_000_000 + int(rest // 1e3))


class _Timeline:
    """Versions, ascending, and the times of those that were read. Versions removed meanwhile are left out."""

    def __init__(self, store: ObjectStore, locations: list[ManifestLocation]) -> None:
        self._store = store
        self._locations = locations
        self._files: dict[int, ManifestFile] = {}

    @property
    def extent(self) -> str:
        """The versions found, in words, for an error message."""
        times = [_shown(file.timestamp_ns) for file in self._files.values()]
        return f"none before {(_EPOCH + min(times) * _MICROSECOND).isoformat()}" if times else "no version at all"

    def find(self, timestamp: int) -> tuple[ManifestLocation, ManifestFile] | None:
        """The newest version at or before a time in microseconds since the epoch."""
        while self._locations and not self._read([len(self._locations) - 1]):
            pass
        if not self._locations:
            return None
        low, high = -1, len(self._locations)
        if self._time(high - 1) <= timestamp:
            low = high - 1
        else:
            high -= 1
        while high - low > 1:
            middle = (low + high) // 2
            if not self._read([middle]):
                high -= 1
            elif self._time(middle) <= timestamp:
                low = middle
            else:
                high = middle
        if not self._is_ascending(high, timestamp):
            low = self._search_all(low, timestamp)
        return None if low < 0 else self._version(low)

    def _is_ascending(self, high: int, timestamp: int) -> bool:
        """Whether all times read are in order, including a sample of versions at growing distances above `high`."""
        beyond = len(self._locations) - high
        self._read([high + 2**power - 1 for power in range(beyond.bit_length())] if beyond else ())
        read = [index for index, location in enumerate(self._locations) if location.version in self._files]
        times = [self._time(index) for index in read]
        ascending = all(earlier <= later for earlier, later in pairwise(times))
        return ascending and all(self._time(index) > timestamp for index in read if index >= high)

    def _search_all(self, low: int, timestamp: int) -> int:
        self._read(range(low + 1, len(self._locations)))
        return max(
            (index for index in range(len(self._locations)) if index <= low or self._time(index) <= timestamp),
            default=-1,
        )

    def _read(self, indices: Sequence[int]) -> bool:
        """Read versions in parallel; drop those removed meanwhile. True if none was removed."""
        wanted = [self._locations[i] for i in indices if self._locations[i].version not in self._files]
        gone = {
            location.version
            for location, file in zip(wanted, self._store.map(self._load, wanted), strict=True)
            if file is None
        }
        if gone:
            self._locations = [location for location in self._locations if location.version not in gone]
        return not gone

    def _load(self, location: ManifestLocation) -> ManifestFile | None:
        file = read_unless_removed(self._store, location)
        if file is not None:
            self._files[location.version] = file
        return file

    def _time(self, index: int) -> int:
        return _shown(self._files[self._locations[index].version].timestamp_ns)

    def _version(self, index: int) -> tuple[ManifestLocation, ManifestFile]:
        location = self._locations[index]
        return location, self._files[location.version]

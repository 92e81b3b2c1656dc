"""Which version of a table was the newest at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from lance_core.errors import NotFound, ReferenceNotFound
from lance_core.format.manifest import ManifestFile
from lance_core.storage.port import ObjectStore
from lance_core.versions import ManifestLocation, list_versions, read_manifest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def find_as_of(store: ObjectStore, base: str, moment: datetime) -> tuple[ManifestLocation, ManifestFile]:
    """The newest version below `base` that was committed at or before `moment`.

    A moment without a time zone is local time. Commits are timed in nanoseconds and a `datetime` holds microseconds, so
    a version belongs to the whole microsecond in which it was committed: the time that a version shows leads to it,
    as does the one that stock pylance shows. (In its `asof` that leads to the version before, for it compares by `<`.)

    Costs a listing and a binary search: times increase with the numbers in all that we write. Other writers do not see
    to that, so as many versions again, ever further beyond the one found, are looked at for a sign that their clocks
    disagreed. Then everything above is read, and the greatest number at or before `moment` wins, as in stock pylance. A
    disagreement that leaves no such sign may hide a later version that claims to be as early.

    Raises `ReferenceNotFound` when there is no version, or none so early.
    """
    timeline = _Timeline(store, list_versions(store, base))
    found = timeline.find(_microseconds(moment))
    if found is None:
        raise ReferenceNotFound(
            f"{store.object_uri(base)}: expected a version at or before {moment.isoformat()}, found {timeline.extent}"
        )
    return found


def _microseconds(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // _MICROSECOND


def _shown(nanoseconds: int) -> int:
    """The microsecond in which a version was committed, or the one that stock pylance shows, if that is earlier.

    It computes with floats, which are 256 ns apart by now, so that the microsecond before may come out.
    """
    second, rest = divmod(float(nanoseconds), 1e9)
    return min(nanoseconds // 1000, int(second) * 1_000_000 + int(rest // 1e3))


class _Timeline:
    """Versions, ascending, and the times of those that were read. Versions that are gone by then are left out."""

    def __init__(self, store: ObjectStore, locations: list[ManifestLocation]) -> None:
        self._store = store
        self._locations = locations
        self._files: dict[int, ManifestFile] = {}

    @property
    def extent(self) -> str:
        """What there is, in words."""
        times = [_shown(file.timestamp_ns) for file in self._files.values()]
        return f"none before {(_EPOCH + min(times) * _MICROSECOND).isoformat()}" if times else "no version at all"

    def find(self, moment: int) -> tuple[ManifestLocation, ManifestFile] | None:
        """The newest version at or before a time in microseconds since the epoch."""
        while self._locations and not self._read([len(self._locations) - 1]):
            pass
        if not self._locations:
            return None
        low, high = -1, len(self._locations)
        if self._time(high - 1) <= moment:
            low = high - 1
        else:
            high -= 1
        while high - low > 1:
            middle = (low + high) // 2
            if not self._read([middle]):
                high -= 1
            elif self._time(middle) <= moment:
                low = middle
            else:
                high = middle
        if not self._is_steady(high, moment):
            low = self._look_everywhere(low, moment)
        return None if low < 0 else self._version(low)

    def _is_steady(self, high: int, moment: int) -> bool:
        """Whether no time that was read is out of order, those of versions ever further beyond included."""
        beyond = len(self._locations) - high
        self._read([high + 2**power - 1 for power in range(beyond.bit_length())] if beyond else ())
        read = [index for index, location in enumerate(self._locations) if location.version in self._files]
        times = [self._time(index) for index in read]
        ascending = all(earlier <= later for earlier, later in pairwise(times))
        return ascending and all(self._time(index) > moment for index in read if index >= high)

    def _look_everywhere(self, low: int, moment: int) -> int:
        self._read(range(low + 1, len(self._locations)))
        return max(
            (index for index in range(len(self._locations)) if index <= low or self._time(index) <= moment), default=-1
        )

    def _read(self, indices: Sequence[int]) -> bool:
        """Read versions in parallel; forget those that are gone. True when none was."""
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
        try:
            file = read_manifest(self._store, location, lazily=True)
        except NotFound:
            return None
        self._files[location.version] = file
        return file

    def _time(self, index: int) -> int:
        return _shown(self._files[self._locations[index].version].timestamp_ns)

    def _version(self, index: int) -> tuple[ManifestLocation, ManifestFile]:
        location = self._locations[index]
        return location, self._files[location.version]

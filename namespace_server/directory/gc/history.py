"""The catalog's own history: which of its versions are kept, and files that none of them needs (rules G3 and G6).

A version of the catalog is a manifest of `__manifest`. It names row files and deletion files, most of which many
versions share. No writer takes longer than the grace time from its first file to its commit (G5). So a file that was
written longer than that before the oldest kept version was committed with an earlier one, if ever. If neither the
oldest kept version nor the newest one names it, none in between does, and only these two are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

from lance_core.cleanup.kinds import FileKind, role_of
from lance_core.cleanup.reachability import read_needs
from lance_core.errors import AlreadyExists, CorruptFile, NotFound
from lance_core.format.naming import NamingScheme, manifest_path, parse_manifest_name, versions_directory
from lance_core.storage.port import ObjectMeta, ObjectStore
from namespace_server.directory.gc.plan import Removal
from namespace_server.directory.gc.report import ENDED, SUPERSEDED, UNNAMED_ROWS
from namespace_server.directory.gc.settings import GcSettings
from namespace_server.directory.model.collector_rows import FIRST_VERSION
from namespace_server.directory.model.entries import DROPPED, EXPIRING
from namespace_server.directory.model.root_layout import KEPT_VERSIONS, MANIFEST_TABLE, kept_version_key
from namespace_server.directory.model.snapshot import CatalogSnapshot


@dataclass(frozen=True, slots=True)
class CatalogVersionFile:
    """A version of the catalog, and its file."""

    number: int
    scheme: NamingScheme
    meta: ObjectMeta


def list_catalog_versions(store: ObjectStore) -> list[CatalogVersionFile]:
    """The versions of the catalog, ascending. One listing. Raises `StorageError`."""
    found: list[CatalogVersionFile] = []
    for meta in store.list(versions_directory(MANIFEST_TABLE)):
        named = parse_manifest_name(meta.path.rpartition("/")[2])
        if named is not None:
            found.append(CatalogVersionFile(*named, meta))
    return sorted(found, key=lambda version: version.number)


def oldest_to_keep(
    versions: Sequence[CatalogVersionFile], settings: GcSettings, now: datetime, before: int = FIRST_VERSION
) -> int:
    """The lowest version that is among the newest, or was superseded less than the age ago; `before` if there is none.

    A version is superseded when the next one is written, by the store's dates (`latest_times`). `before` is the oldest
    that was kept so far. Files of lower versions prove nothing: one may have been written lately where it had been
    removed (G7).
    """
    kept = [version for version in versions if version.number >= before]
    counted = kept[-settings.catalog_count :]
    oldest = counted[0].number if counted else before
    young = _first_superseded(kept, now, settings.catalog_age)
    return oldest if young is None else min(oldest, young)


def oldest_for_cursors(
    versions: Sequence[CatalogVersionFile], settings: GcSettings, now: datetime, before: int = FIRST_VERSION
) -> int:
    """The lowest version that may be kept for a cursor: among the newest, and superseded less than the age ago.

    `before` is the oldest that was kept so far; see `oldest_to_keep`.
    """
    kept = [version for version in versions if version.number >= before]
    if not kept:
        return before
    newest = kept[-1].number
    young = _first_superseded(kept, now, settings.cursors_age)
    return max(newest if young is None else young, newest + 1 - settings.cursors_count)


def _first_superseded(kept: Sequence[CatalogVersionFile], now: datetime, within: timedelta) -> int | None:
    """The lowest version that was superseded less than `within` ago, by the store's dates; None if none was."""
    written = latest_times([version.meta.last_modified for version in kept], now)
    pairs = zip(kept, written[1:], strict=False)
    return next((version.number for version, superseded in pairs if now - superseded < within), None)


def kept_for_cursors(snapshot: CatalogSnapshot, lowest: int) -> int | None:
    """The oldest version that a cursor needs and may have kept, from `lowest` on; None if there is none.

    It is the one where the cursor is: changes of rows begin at the versions that tables had there. Events need only the
    next one.
    """
    live = (cursor.version for cursor in snapshot.cursors() if cursor.version + 1 >= lowest)
    return min((max(version, lowest) for version in live), default=None)


def latest_times(dates: Sequence[datetime], now: datetime) -> list[datetime]:
    """The latest times at which versions may have been written, from their dates in ascending order of versions.

    No version is written before the one below it. So a date that lies before that of an earlier version is wrong, as
    after a jump of the store's clock: the version was written before the next one that is dated rightly, or before
    `now`. So was one that is dated after `now`.
    """
    found: list[datetime] = []
    highest = list(accumulate(dates, max))
    latest = now
    for date, high in zip(reversed(dates), reversed(highest), strict=True):
        latest = min(latest, date) if date == high else latest
        found.append(latest)
    return found[::-1]


def dated_ahead(versions: Sequence[CatalogVersionFile], now: datetime) -> dict[str, str]:
    """The problem, by key, of each version that is dated after `now`. It counts as written just now.

    The clock of its writer was wrong, or its date was changed, as by a copy of the root.
    """
    return {
        each.meta.path: f"version {each.number} is dated {each.meta.last_modified:%Y-%m-%dT%H:%M:%SZ}, ahead of the "
        f"time of this run, {now:%Y-%m-%dT%H:%M:%SZ}: it and the version before it stay until then"
        for each in versions
        if each.meta.last_modified.replace(microsecond=0) > now
    }


def needed_versions(snapshot: CatalogSnapshot) -> set[int]:
    """The catalog versions that are kept in any case: pinned ones, and those from which rows may come back.

    Rows of dropped tables (G13), and of versions that a run removed and a reference names (G17).
    """
    returning = {record.catalog_version for record in snapshot.records() if record.state in {DROPPED, EXPIRING}}
    return (returning | {pin.version for pin in snapshot.pins()}) - {0}


def copy_versions(store: ObjectStore, versions: Sequence[CatalogVersionFile], numbers: Collection[int]) -> None:
    """Copy these versions to where they are read once they are below the oldest kept one. Raises `StorageError`.

    One that is gone is left out: what needed it cannot be done any more, or it was copied before.
    """
    for version in versions:
        if version.number in numbers:
            with suppress(AlreadyExists, NotFound):
                store.put_if_absent(kept_version_key(version.number), store.get(version.meta.path))


def oldest_allowed(snapshot: CatalogSnapshot, oldest: int, seen: CatalogSnapshot, for_cursors: int) -> int:
    """The oldest kept version that a run may set on `snapshot`, which wants `oldest`, and copied what `seen` needs.

    What is needed since then, by a pin or a drop, was not copied, and stays above. So does what a cursor needs from
    `for_cursors` on.
    """
    needed = kept_for_cursors(snapshot, for_cursors)
    wanted = oldest if needed is None else min(oldest, needed)
    return min([wanted, *(needed_versions(snapshot) - needed_versions(seen))])


def superseded_versions(versions: Sequence[CatalogVersionFile], oldest: int) -> list[Removal]:
    """The versions below the oldest kept one, ascending."""
    return [
        Removal(each.meta.path, each.meta.size, each.meta.last_modified, SUPERSEDED)
        for each in versions
        if each.number < oldest
    ]


def unnamed_files(
    store: ObjectStore,
    versions: Sequence[CatalogVersionFile],
    snapshot: CatalogSnapshot,
    horizon: datetime,
    grace: timedelta,
) -> list[Removal]:
    """The row, deletion and transaction files of `__manifest` that no kept version names, nor a copy that is needed.

    None is younger than `horizon`, nor was written less than `grace` before the oldest kept version. Files are listed
    first, then manifests are read. Copies that are not needed are in the result. They are not read, so what only they
    name is among it as well. Raises `StorageError`; `CorruptFile` and `UnsupportedFeature` for a manifest that is not
    understood, or that is lost though it is needed.
    """
    prefix = f"{MANIFEST_TABLE}/"
    metas = (*store.list(MANIFEST_TABLE), *store.unfinished(MANIFEST_TABLE))
    listed = [(meta, role_of(meta.path.removeprefix(prefix))) for meta in metas]
    oldest = next((each for each in versions if each.number >= snapshot.collector.oldest), None)
    if oldest is None:
        return []
    copies, wanted = list(_copies(store)), needed_versions(snapshot)
    newest = manifest_path(MANIFEST_TABLE, snapshot.version, oldest.scheme)
    read = [oldest.meta.path, newest, *(meta.path for number, meta in copies if number in wanted)]
    there = {number for number, _ in copies} | {each.number for each in versions}
    read += (_key_of(store, number, oldest.scheme) for number in sorted(wanted - there) if number < oldest.number)
    needed = {name for key in read for name in _names(store, key)}
    before = min(horizon, oldest.meta.last_modified - grace)
    found = [
        Removal(meta.path, meta.size, meta.last_modified, UNNAMED_ROWS)
        for meta, role in listed
        if role is not None
        and role.name
        and role.name not in needed
        and meta.last_modified < (horizon if role.kind is FileKind.UNFINISHED else before)
    ]
    return [*found, *_ended(copies, snapshot)]


def _key_of(store: ObjectStore, number: int, scheme: NamingScheme) -> str:
    """The key of a needed version that no listing had (G29). Raises `CorruptFile` if it is gone."""
    for key in (kept_version_key(number), manifest_path(MANIFEST_TABLE, number, scheme)):
        with suppress(NotFound):
            store.head(key)
            return key
    raise CorruptFile(
        f"catalog version {number}, which a pin or a dropped table needs: expected it at {kept_version_key(number)}, "
        "found none: what its rows need is not known"
    )


def _ended(copies: Iterable[tuple[int, ObjectMeta]], snapshot: CatalogSnapshot) -> Iterator[Removal]:
    """The copies that are not needed, and never will be: of a version below the oldest kept one no need can begin.

    A copy from there on was made by a later run, for a need that `snapshot` does not know, or by one that died.
    """
    wanted = needed_versions(snapshot)
    for number, meta in copies:
        if number < snapshot.collector.oldest and number not in wanted:
            yield Removal(meta.path, meta.size, meta.last_modified, ENDED)


def _copies(store: ObjectStore) -> Iterator[tuple[int, ObjectMeta]]:
    for meta in store.list(KEPT_VERSIONS):
        number = meta.path.removeprefix(f"{KEPT_VERSIONS}/").removesuffix(".manifest")
        if number.isascii() and number.isdigit():
            yield int(number), meta


def _names(store: ObjectStore, key: str) -> frozenset[str]:
    data, meta = store.get_with_meta(key)
    return read_needs(store, meta, data)[1]

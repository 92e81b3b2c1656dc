"""The versions of a table between two catalog versions, for a feed of its changed rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from namespace_server.data.port import ChangesGone
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.manifest_table.history import CatalogHistoryEntry
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.events import PUBLISHING
from namespace_server.directory.model.object_ids import ChainKey, join
from namespace_server.directory.model.operations import RenameTable
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.reading.sight import Sight
from table_data.batch_operations import VersionIdentity
from table_data.change_feed.ranges import ChangeRange, NumberedVersion
from table_data.requests.table_requests import ReadChanges

_PAGE: Final = 64
_NOTHING: Final = CatalogSnapshot()


def start_of_changes(request: ReadChanges, newest: CatalogSnapshot) -> int:
    """The catalog version whose rows a consumer knows: `since`, or where its cursor is.

    Raises InvalidInputError (13) unless one of them is given, TableVersionNotFoundError (11) for no such cursor.
    """
    since, cursor = request.get("since"), request.get("cursor")
    if (since is None) == (cursor is None):
        given = "none" if since is None else "both"
        raise InvalidInputError(f"since, cursor: expected one of them, found {given}")
    if since is not None:
        return since
    found = newest.cursor(cursor or "")
    if found is None:
        raise TableVersionNotFoundError(f"there is no cursor {cursor}")
    return found.version


def change_range(
    catalog: StoredCatalog, chain: ChainKey, since: int, last: CatalogSnapshot, sight: Sight | None = None
) -> tuple[Sequence[VersionEntry], ChangeRange]:
    """The versions of the chain that `last` has and catalog version `since` did not, with the one before them.

    The chain is one that may be seen. What else had its name at `since` counts as far as it may be seen, too.

    Raises ChangesGone (11) if one of them is not kept, or if the rows that were under this name at `since` are those of
    another table.
    """
    name = join(chain[0])
    earlier = snapshot_of_changes(catalog, name, since) if since else _NOTHING
    known = _known(name, chain, earlier, last, earlier if sight is None else sight.view(earlier))
    rows = list(last.versions(*chain, start=None if known is None else known.version + 1))
    _require_unbroken(name, known, rows)
    labels = _published_in(catalog, chain, {row.version for row in rows}, since, last.version)
    numbered: list[NumberedVersion] = []
    at = last.version
    for row in reversed(rows):  # one that the history does not tell was published with the next one at the latest
        at = labels.get(row.version, at)
        numbered.append(NumberedVersion(row.version, at, _identity(row)))
    first = None if known is None else NumberedVersion(known.version, since, _identity(known))
    entries = rows if known is None else [known, *rows]
    return entries, ChangeRange(since, last.version, first, tuple(reversed(numbered)))


def _identity(row: VersionEntry) -> VersionIdentity | None:
    return VersionIdentity(row.sha256, row.timestamp_ms) if row.sha256 else None


def snapshot_of_changes(catalog: StoredCatalog, name: str, version: int) -> CatalogSnapshot:
    """A catalog version between which changes of a table are asked for. Raises ChangesGone (11) if it is not kept."""
    try:
        return catalog.snapshot(version)
    except TableVersionNotFoundError as error:
        oldest = catalog.table.current.collector.oldest
        reason = f"expected catalog version {version}, found {oldest} to be the oldest that is kept"
        raise ChangesGone(name, reason) from error


def _known(
    name: str, chain: ChainKey, earlier: CatalogSnapshot, last: CatalogSnapshot, seen: CatalogSnapshot
) -> VersionEntry | None:
    """The head of the chain at the first catalog version, under whatever name its table had there; None if none.

    `seen` is what may be seen of that version.
    """
    table_id, branch = chain
    table, before = last.table(table_id), seen.table(table_id)
    assert table is not None
    known = earlier.head_at(table.location, branch)
    if known is None:
        if before is not None and before.location != table.location and earlier.head(table_id, branch) is not None:
            raise ChangesGone(
                name,
                f"expected the table that had this name at catalog version {earlier.version}, found one that took its "
                "place",
            )
        return None
    if not last.has_version(known):
        raise ChangesGone(
            name,
            f"expected version {known.version}, which was its newest one at catalog version {earlier.version}, found "
            "that it was removed or replaced",
        )
    return known


def _require_unbroken(name: str, known: VersionEntry | None, rows: Iterable[VersionEntry]) -> None:
    expected = None if known is None else known.version + 1
    for row in rows:
        if expected is not None and row.version != expected:
            raise ChangesGone(name, f"expected version {expected}, found {row.version}: those between were removed")
        expected = row.version + 1


def _published_in(
    catalog: StoredCatalog, chain: ChainKey, wanted: set[int], since: int, last: int
) -> Mapping[int, int]:
    """The catalog versions in which versions of a chain were published, as far as the history tells it.

    It is read backwards, so that the table is followed through renames, until all that are `wanted` are found.
    """
    found: dict[int, int] = {}
    name, before = list(chain[0]), last + 1
    while before > since + 1 and not wanted <= found.keys():
        page = catalog.table.history(min(_PAGE, before - since - 1), before)
        for entry in page:
            name = _note_versions(entry, name, chain[1], found)
        if not page:
            break
        before = page[-1].version
    return found


def _note_versions(entry: CatalogHistoryEntry, name: list[str], branch: str | None, found: dict[int, int]) -> list[str]:
    """Note the versions of a table that a catalog version published; what the table was called before it."""
    for outline in reversed(list(entry.outline.batches.values())):
        operations = outline.get("operations")
        for each in reversed(operations if isinstance(operations, list) else []):
            if each.get("operation") == RenameTable.name and each.get("new_id") == name:
                name = each["id"]
            elif each.get("operation") in PUBLISHING:
                _note(entry.version, each, name, branch, found)
    for each in entry.outline.adopted:
        _note(entry.version, each, name, branch, found)
    return name


def _note(at: int, change: Mapping[str, Any], name: list[str], branch: str | None, found: dict[int, int]) -> None:
    if change.get("id") == name and change.get("branch") == branch and "version" in change:
        found[int(change["version"])] = at

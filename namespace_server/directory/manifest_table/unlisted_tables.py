"""Tables below a root that the catalog has no row of, and the state of a root that has no catalog yet.

Clients that list directories make `<name>.lance` at the root. Without a catalog these are served for reading, and
nothing is committed before `adopt` has given them rows: a catalog that began beside them would not hold them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import partial
from typing import Final

from lance_core.errors import ReferenceNotFound
from lance_core.storage.port import Deferred, ObjectStore
from lance_core.versions import find_latest
from namespace_server.directory.manifest_table.newest_version import NewestVersion
from namespace_server.directory.model.entries import TableEntry, changes_of
from namespace_server.directory.model.errors import CatalogDamaged, RootBeingRestored, TablesWithoutCatalog
from namespace_server.directory.model.naming_rules import is_managed_location
from namespace_server.directory.model.root_layout import MANIFEST_TABLE, RESTORE_CLAIM
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.model.state import CatalogState
from namespace_server.directory.model.state_editor import apply_changes

_SUFFIX: Final = ".lance"
_DEREGISTERED: Final = ".lance-deregistered"
_AT_ONCE: Final = 32


def listed_tables(store: ObjectStore) -> list[TableEntry]:
    """The tables that a client which lists the root sees there: `<name>.lance` with at least one version, by name.

    One listing of the root, then two look-ups for each such directory, in parallel.
    """
    return _tables(store, store.directories(""))


def first_snapshot(store: ObjectStore, newest: NewestVersion, listed_at: float) -> CatalogSnapshot | None:
    """The snapshot of a root where no version of a catalog was found: version 0, with the tables that are there.

    None if there is a version by now: another process made it meanwhile. Raises `RootBeingRestored`, and
    `CatalogDamaged` if a catalog was there: tables lie in directories of the form that catalogs make.
    """
    tables = _look(store, newest)
    if tables is None:
        return None
    state = apply_changes(CatalogState(), changes_of(tables))
    return CatalogSnapshot(listed_at=listed_at, state=state)


def check_first_flip(store: ObjectStore, newest: NewestVersion, known: Container[str]) -> None:
    """Raise `TablesWithoutCatalog` if a table at the root is not among the object ids `known` that a first flip puts.

    Not if there is a version by now: the flip loses its slot. Raises `RootBeingRestored` and `CatalogDamaged` as
    `first_snapshot` does.
    """
    missing = [table.location for table in _look(store, newest) or () if table.id[0] not in known]
    if missing:
        raise TablesWithoutCatalog(missing)


def _look(store: ObjectStore, newest: NewestVersion) -> list[TableEntry] | None:
    """The tables at a root without a catalog; None if there is one by now."""
    claim, names = Deferred(partial(store.find, RESTORE_CLAIM)), Deferred(partial(store.directories, ""))
    store.gather([claim, names])
    if claim.result is not None:
        raise RootBeingRestored(RESTORE_CLAIM)
    tables = _tables(store, names.result)
    managed = _first_managed(store, names.result)
    if not tables and managed is None:
        return tables
    # Another process may have made the catalog, or restored it, between the two looks.
    if newest.find() is not None:
        return None
    if store.find(RESTORE_CLAIM) is not None:
        raise RootBeingRestored(RESTORE_CLAIM)
    if managed is not None:
        raise CatalogDamaged(MANIFEST_TABLE, f"the catalog that made the table at {managed}", "no version of it")
    return tables


def _tables(store: ObjectStore, directories: Iterable[str]) -> list[TableEntry]:
    found = sorted(name for name in directories if name.endswith(_SUFFIX) and name != _SUFFIX)
    is_table = store.map(lambda name: _has_version(store, name) and _is_registered(store, name), found)
    return [
        TableEntry((name.removesuffix(_SUFFIX),), name) for name, wanted in zip(found, is_table, strict=True) if wanted
    ]


def _first_managed(store: ObjectStore, directories: Iterable[str]) -> str | None:
    """A directory of the form that catalogs make (N1) with a committed version, if there is one.

    Clients write there before the first commit; no version has its canonical name before that.
    """
    found = sorted(name for name in directories if is_managed_location(name))
    for begin in range(0, len(found), _AT_ONCE):
        some = found[begin : begin + _AT_ONCE]
        has_version = store.map(partial(_has_version, store), some)
        for name, is_table in zip(some, has_version, strict=True):
            if is_table:
                return name
    return None


def _has_version(store: ObjectStore, location: str) -> bool:
    try:
        find_latest(store, location)
    except ReferenceNotFound:
        return False
    return True


def _is_registered(store: ObjectStore, location: str) -> bool:
    return store.find(f"{location}/{_DEREGISTERED}") is None

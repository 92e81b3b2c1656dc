"""Verification of dropped tables that are to come back: as the catalog had them before (G13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lance_namespace.errors import LanceNamespaceError, NamespaceNotFoundError, TableNotFoundError

from lance_core.errors import ReferenceNotFound
from namespace_server.access.grants import GrantEntry
from namespace_server.directory.model.entries import DROPPED, Participant, RecordEntry
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import UndropNamespace, UndropTable
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import DroppedTables, TableBeforeDrop

KeptVersion = Callable[[int], CatalogSnapshot]
"""An earlier catalog version, also one that is kept for dropped tables alone. Raises `ReferenceNotFound`."""


class DroppedTableChecks:
    """Finds dropped tables by their tombstones, and reads the catalog version before the drop."""

    def __init__(self, kept: KeptVersion) -> None:
        self._kept = kept

    def table(self, operation: UndropTable, snapshot: CatalogSnapshot) -> DroppedTables:
        """The table of that name that was dropped last, or that of the tombstone. Raises TableNotFoundError (4)."""
        place = f"table {join(operation.id)}"
        found = [
            (record, party)
            for record in snapshot.records(DROPPED)
            if operation.tombstone in {None, record.batch_uuid}
            for party in record.participants
            if party.table_id == operation.id
        ]
        if not found:
            reason = "none of that name was dropped, or its files were removed"
            raise TableNotFoundError(f"{place} cannot come back: {reason}")
        record, party = max(found, key=lambda item: (item[0].catalog_version, item[0].timestamp_ms))
        before = self._before(record, place, TableNotFoundError)
        return DroppedTables((), (_table_before(before, record, party),))

    def namespace(self, operation: UndropNamespace, snapshot: CatalogSnapshot) -> DroppedTables:
        """The namespace of that name that was dropped last with tables. Raises NamespaceNotFoundError (1)."""
        place = f"namespace {join(operation.id)}"
        below = [
            record
            for record in snapshot.records(DROPPED)
            if any(_is_below(party.table_id, operation.id) for party in record.participants)
        ]
        if not below:
            raise NamespaceNotFoundError(
                f"{place} cannot come back: none of that name was dropped with tables, or their files are gone"
            )
        last = max(below, key=lambda record: (record.catalog_version, record.timestamp_ms))
        before = self._before(last, place, NamespaceNotFoundError)
        if before.namespace(operation.id) is None:
            raise NamespaceNotFoundError(f"{place} cannot come back: it was dropped before its tables were")
        together = [record for record in below if record.attempt == last.attempt]
        tables = tuple(
            _table_before(before, record, party)
            for record in together
            for party in record.participants
            if _is_below(party.table_id, operation.id)
        )
        namespaces = (before.namespace(each) for each in _namespaces(before, operation.id))
        found = tuple(each for each in namespaces if each is not None)
        return DroppedTables(found, tables, _grants(before, operation.id))

    def _before(self, record: RecordEntry, place: str, error: type[LanceNamespaceError]) -> CatalogSnapshot:
        try:
            if record.catalog_version:
                return self._kept(record.catalog_version)
        except ReferenceNotFound as gone:
            raise error(f"{place} cannot come back: {gone}") from gone
        raise error(f"{place} cannot come back: a release dropped it that did not note the catalog version before")


def _table_before(before: CatalogSnapshot, record: RecordEntry, party: Participant) -> TableBeforeDrop:
    """A table with all its versions. Raises TableNotFoundError (4) if the batch that dropped it had made it, too."""
    table = before.table(party.table_id)
    if table is None or table.location != party.location:
        raise TableNotFoundError(
            f"table {join(party.table_id)} cannot come back: the batch that dropped it had created or renamed it"
        )
    rows = tuple(row for branch in before.chains(table.id) for row in before.versions(table.id, branch))
    return TableBeforeDrop(record.batch_uuid, table, rows, _grants(before, table.id))


def _grants(before: CatalogSnapshot, object_id: ObjectId) -> tuple[GrantEntry, ...]:
    return () if before.policy is None else tuple(before.policy.on(object_id))


def _namespaces(snapshot: CatalogSnapshot, top: ObjectId) -> Iterator[ObjectId]:
    """A namespace and those below it, parents first."""
    yield top
    for name in snapshot.child_namespaces(top):
        yield from _namespaces(snapshot, (*top, name))


def _is_below(table_id: ObjectId, namespace: ObjectId) -> bool:
    return len(table_id) > len(namespace) and table_id[: len(namespace)] == namespace

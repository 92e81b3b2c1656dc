"""The tables of a catalog, as operations on rows find them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from lance_core.errors import LanceCoreError
from lance_core.format.outline import layout_digest
from namespace_server.data.change_request import Caller, ChangeRecord
from namespace_server.data.port import CommittedChange
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.model import request_fields, requests
from namespace_server.directory.model.batch_requests import request_hash
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.errors import namespace_exists, namespace_not_found
from namespace_server.directory.model.operations import Batch, Operation
from namespace_server.directory.model.requests import RequestRules
from namespace_server.directory.planning.planner import replay_committed, require_managed
from namespace_server.directory.reading.adopting_reads import (
    answer_as_of,
    answer_unless_missing,
    newest_snapshot,
)
from namespace_server.directory.reading.commit_results import kept_answer
from namespace_server.directory.reading.read_context import ReadContext
from namespace_server.directory.reading.table_at_version import table_at_version
from table_data.batch_operations import TableState
from table_data.requests.table_requests import CreateTable, ReadRequest

_SHORT_MANIFEST: Final = 1 << 20


class CatalogTables:
    """A catalog for operations on rows (`namespace_server.data.port.TableCatalog`)."""

    def __init__(self, catalog: StoredCatalog, rules: RequestRules, storage_options: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._rules = rules
        self.storage_options = dict(storage_options)
        self.local = catalog.store.local

    def find_table(
        self, request: ReadRequest, *, at: int | None = None, layout: bool = False
    ) -> tuple[TableState, int]:
        """The table at the version that a request names, and the catalog version that says so."""
        chain = (request_fields.table_id(request), request_fields.branch(request))
        is_fixed = request.get("version") is not None
        if at is not None:
            snapshot = self._catalog.snapshot(at)
            read = partial(table_at_version, ReadContext(self._catalog, snapshot, as_of=True), request)
            table = read() if is_fixed else answer_as_of(self._catalog, snapshot, chain, read)[0]
        elif is_fixed:
            table, snapshot = answer_unless_missing(
                self._catalog,
                self._catalog.snapshot(),
                request,
                lambda newest: (table_at_version(ReadContext(self._catalog, newest), request), newest),
            )
        else:
            snapshot = newest_snapshot(self._catalog, chain)
            table = table_at_version(ReadContext(self._catalog, snapshot), request)
        return replace(table, layout=self._layout_of(table)) if layout else table, snapshot.version

    def _layout_of(self, table: TableState) -> bytes | None:
        """Digest of the layout of the table's version, from the manifest in memory."""
        entry = self._entry(table)
        file = None if entry is None else self._catalog.manifests.get(entry)
        return None if file is None else layout_digest(file.outline)

    def row_count(self, table: TableState) -> int | None:
        """The number of rows of the table's version, if its manifest is in memory or short, and states it."""
        entry = self._entry(table)
        if entry is None:
            return None
        manifests = self._catalog.manifests
        try:
            file = manifests.load(entry) if entry.size <= _SHORT_MANIFEST else manifests.get(entry)
            return None if file is None else file.facts.rows
        except LanceCoreError:
            return None  # the worker that opens the version reports the fault

    def _entry(self, table: TableState) -> VersionEntry | None:
        """The row of the table's version; None where the newest snapshot has none, or one of another version."""
        snapshot = self._catalog.table.current
        entry = None if table.version is None else snapshot.version_entry(table.id, table.branch, table.version)
        if entry is None or self._catalog.store.object_uri(entry.location) != table.uri:
            return None
        return entry if table.identity is None or entry.sha256 == table.identity.sha256 else None

    def new_table(self, request: CreateTable) -> tuple[TableState, int]:
        """A table that does not exist yet, at a location of its own, with the properties of the request."""
        declared = requests.declare_table(
            {"id": request.get("id"), "properties": request.get("properties")}, self._rules
        )
        snapshot = self._catalog.snapshot()
        require_managed(snapshot)  # before rows are written
        parent = declared.id[:-1]
        if not self._rules.implicit_namespaces and snapshot.namespace(parent) is None:
            raise namespace_not_found(parent)
        if snapshot.namespace(declared.id) is not None:
            raise namespace_exists(declared.id)
        uri = self._catalog.store.object_uri(declared.location)
        return TableState(declared.id, uri, None, declared.properties), snapshot.version

    def blob_refusal(self, place: str) -> str | None:
        """Why the file that a value of a column of blobs is, outside of its table, is not read; None if it is."""
        return self._catalog.blob_locations.refusal(place)

    def is_answered(self, caller: Caller) -> bool:
        """Whether a change of this caller was committed under this idempotency key."""
        key = caller.idempotency_key
        return key is not None and self._catalog.snapshot().record_by_key(key, caller.principal) is not None

    def answered(self, record: ChangeRecord) -> CommittedChange | None:
        """As `namespace_server.data.port.Tables.answered`."""
        snapshot = self._catalog.snapshot()
        replayed = replay_committed(change_batch(record, ()), snapshot, {})
        return None if replayed is None else kept_answer(self._catalog, replayed, snapshot)


def change_batch(record: ChangeRecord, operations: tuple[Operation, ...]) -> Batch:
    """The batch of a change of rows.

    One under an idempotency key is recognised by its request, not by its operations.
    """
    name = str(uuid.uuid4())
    key, principal = record.caller.idempotency_key, record.caller.principal
    asked = name if key is None else request_hash(record.operation, record.request)
    return Batch(name, operations, asked, key, principal, record.message, origin=record.caller.origin)

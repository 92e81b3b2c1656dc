"""An examination of a root: the catalog, then one table after another. Writes nothing.

Servers, writers and collectors may be at work. What is found is looked at again, on a newer snapshot and after a pause,
and only what is still there is a finding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Final

from lance_core.errors import LanceCoreError, StorageError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.doctor.catalog import (
    check_grants,
    check_kept,
    check_locations,
    check_staging,
    check_versions,
)
from namespace_server.directory.doctor.findings import ExaminationReport, Finding
from namespace_server.directory.doctor.retained_versions import check_kept_tables
from namespace_server.directory.doctor.tables import TableExamination
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.errors import table_not_found
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.observability.observation import Progress, no_progress

_PAUSE: Final = 1.0
"""Seconds before what was found is looked at again: commits, promotions and adoptions take less."""


@dataclass(slots=True)
class Examination:
    """Examines the root of a catalog.

    Requests: one for each kept catalog version and its row files; of each table one listing for each thousand of its
    files, two for its references, and one for each of its versions; for each dropped table and each pin those of a
    catalog version, and of the versions that the newest one does not have. Memory: the rows of two catalog versions,
    and the names of the files of one table.

    Attributes:
        store: The root.
        tables: The tables to examine; empty for all.
        sample: So many of them, chosen at random by `seed`; None for all.
        heads: Whether only the newest version of each branch is read.
        seed: Chooses the sample.
        progress: Called with the number of tables that were examined.
        sleep: Waits for a number of seconds.
    """

    store: ObjectStore
    tables: Collection[ObjectId] = ()
    sample: int | None = None
    heads: bool = False
    seed: int = 0
    progress: Progress = no_progress
    sleep: Callable[[float], object] = time.sleep
    _versions: int = field(default=0, init=False)

    def examine(self) -> ExaminationReport:
        """The report. Raises TableNotFoundError (4) for one of `tables`, `StorageError`, `CatalogTooNew`."""
        snapshot, findings = self._examine_catalog()
        if snapshot is None:
            return ExaminationReport(self.store.uri, 0, 0, 0, tuple(findings))
        chosen = self._chosen(snapshot)
        for number, table_id in enumerate(chosen):
            findings += self._examine_table(table_id, snapshot)
            self.progress("examine", number + 1, len(chosen))
        findings += self._examine_kept(snapshot, chosen)
        return ExaminationReport(self.store.uri, snapshot.version, len(chosen), self._versions, tuple(findings))

    def _chosen(self, snapshot: CatalogSnapshot) -> list[ObjectId]:
        for table_id in self.tables:
            if snapshot.table(table_id) is None:
                raise table_not_found(table_id)
        chosen = list(self.tables or snapshot.all_tables())
        if self.sample is not None and self.sample < len(chosen):
            chosen = sorted(Random(self.seed).sample(chosen, self.sample))  # noqa: S311
        return chosen

    def _examine_catalog(self) -> tuple[CatalogSnapshot | None, list[Finding]]:
        snapshot, found = self._look_at_catalog()
        if not found:
            return snapshot, found
        self.sleep(_PAUSE)
        snapshot, again = self._look_at_catalog()
        return snapshot, _in_both(found, again)

    def _look_at_catalog(self) -> tuple[CatalogSnapshot | None, list[Finding]]:
        snapshot, found = check_versions(self.store, datetime.now(UTC))
        if snapshot is not None:
            for check in (check_kept, check_grants, check_locations, check_staging):
                found += check(self.store, snapshot)
        return snapshot, found

    def _examine_kept(self, snapshot: CatalogSnapshot, chosen: Collection[ObjectId]) -> list[Finding]:
        """What dropped tables and pins keep: of all tables, or of the locations of those that were chosen."""
        tables = (snapshot.table(table_id) for table_id in chosen)
        chosen_only = bool(self.tables) or self.sample is not None
        locations = {table.location for table in tables if table is not None} if chosen_only else None

        def look(newest: CatalogSnapshot) -> list[Finding]:
            return list(check_kept_tables(self.store, newest, heads=self.heads, locations=locations))

        return self._seen_again(look(snapshot), look)

    def _examine_table(self, table_id: ObjectId, snapshot: CatalogSnapshot) -> list[Finding]:
        found, versions = self._look_at_table(table_id, snapshot)
        self._versions += versions
        return self._seen_again(found, lambda newest: self._look_at_table(table_id, newest)[0])

    def _seen_again(self, found: list[Finding], look: Callable[[CatalogSnapshot], list[Finding]]) -> list[Finding]:
        """What a second look finds too, after a pause and on the newest snapshot; it is made if there is anything."""
        if not found:
            return found
        self.sleep(_PAUSE)
        return _in_both(found, look(ManifestTable(self.store).refresh_by_listing()))

    def _look_at_table(self, table_id: ObjectId, snapshot: CatalogSnapshot) -> tuple[list[Finding], int]:
        table = snapshot.table(table_id)
        if table is None:  # dropped meanwhile
            return [], 0
        try:
            examination = TableExamination(self.store, snapshot, table, heads=self.heads)
            return list(examination.findings()), examination.versions
        except StorageError as error:
            return [Finding("not-checked", table.location, str(error), join(table_id))], 0
        except LanceCoreError as error:
            return [Finding("manifest-unreadable", table.location, str(error), join(table_id))], 0


def _in_both(found: Iterable[Finding], again: Iterable[Finding]) -> list[Finding]:
    """What the second look found where the first one had found the same."""
    known = {(finding.code, finding.place) for finding in found}
    return list(_unique(finding for finding in again if (finding.code, finding.place) in known))


def _unique(findings: Iterable[Finding]) -> Iterator[Finding]:
    yield from {(finding.code, finding.place): finding for finding in findings}.values()

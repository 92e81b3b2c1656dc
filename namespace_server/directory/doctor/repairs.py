"""Repairs that a server makes by itself, made at once. Each change of the catalog is an ordinary commit with a record.

Nothing is repaired that is not proved: a manifest gets a name if its bytes are those of the row. Nothing is made final
that a backup can bring back: the row of a version whose manifest is gone stays, unless its removal is asked for; one
whose manifest is damaged always stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import AlreadyExists, LanceCoreError
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.versions import find_contents
from namespace_server.directory.doctor.findings import ExaminationReport, Finding
from namespace_server.directory.doctor.run import Examination
from namespace_server.directory.gc.directories import place_of_manifest
from namespace_server.directory.manifests.manifest_reader import is_row
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import parse_id
from namespace_server.directory.namespace import DirectoryNamespace

_PROMOTED: Final = frozenset({"not-promoted", "taken-name"})
_LOST: Final = "version-lost"
_log = logging.getLogger(__name__)


def repair(
    namespace: DirectoryNamespace, examination: Examination, report: ExaminationReport, *, remove_lost: bool = False
) -> ExaminationReport:
    """Make the repairs that are possible, and examine the root again. May be repeated at any time; raises as `examine`.

    With `remove_lost` the rows of earlier versions go whose manifests are at none of their names. A manifest that is
    put back later is of no row then. The catalog refuses that for versions that tags name.
    """
    wanted = [each for each in report.findings if each.repairable or (remove_lost and each.code == _LOST)]
    if not wanted:
        return report
    _promote(namespace, (finding for finding in wanted if finding.code in _PROMOTED))
    _rename(namespace, (finding for finding in wanted if finding.code == "renamed-manifest"))
    namespace.catalog.sweep()
    for finding in wanted:
        try:
            _repair(namespace, finding)
        except (LanceNamespaceError, LanceCoreError) as error:
            _log.warning("%s at %s is not repaired: %s", finding.code, finding.place, error)
    namespace.catalog.flush_record_housekeeping()
    namespace.catalog.sweep()
    after = examination.examine()
    left = {(finding.code, finding.place) for finding in after.findings}
    repaired = tuple(finding for finding in wanted if (finding.code, finding.place) not in left)
    return replace(after, repaired=repaired)


def _promote(namespace: DirectoryNamespace, findings: Iterable[Finding]) -> None:
    rows = [row for finding in findings if (row := _row_of(namespace, finding)) is not None]
    namespace.catalog.promoter.promote(rows)


def _rename(namespace: DirectoryNamespace, findings: Iterable[Finding]) -> None:
    """Give manifests the names of their rows. One that both names have then is removed from the other one."""
    store = namespace.catalog.store
    for finding in findings:
        row = _row_of(namespace, finding)
        data = None if row is None else find_contents(store, finding.place)
        if row is None or data is None or not is_row(row, data):
            continue
        with suppress(AlreadyExists):
            store.put_if_absent(row.canonical_path, data)
        if find_contents(store, row.canonical_path) == data:
            store.delete(finding.place)


def _repair(namespace: DirectoryNamespace, finding: Finding) -> None:
    table_id = parse_id(finding.table) if finding.table else ()
    if finding.code == "unmanaged-version":
        snapshot = namespace.catalog.snapshot()
        table = snapshot.table(table_id)
        found = None if table is None else place_of_manifest(table.location, finding.place)
        if found is None:
            return  # the table was dropped meanwhile
        branch, version = found
        head = snapshot.head(table_id, branch)
        name = None if head is None else manifest_path(head.base, version, NamingScheme(head.naming_scheme))
        if name is not None and name != finding.place:
            namespace.catalog.store.rename_if_absent(finding.place, name)
        namespace.read("list_table_versions", {"id": list(table_id), "branch": branch})
    elif finding.code == _LOST and (row := _row_of(namespace, finding)) is not None:
        versions = {"start_version": row.version, "end_version": row.version + 1}
        request = {"id": list(table_id), "branch": row.branch, "ranges": [versions]}
        namespace.write("batch_delete_table_versions", request)


def _row_of(namespace: DirectoryNamespace, finding: Finding) -> VersionEntry | None:
    snapshot, table_id = namespace.catalog.snapshot(), parse_id(finding.table)
    table = snapshot.table(table_id)
    place = None if table is None else place_of_manifest(table.location, finding.place)
    return None if place is None else snapshot.version_entry(table_id, *place)

"""Repairs: what a server does by itself, done at once. Each change of the catalog is an ordinary commit with a record.

Nothing is repaired that is not proved: a manifest gets a name if its bytes are those of the row, and a row goes if its
manifest is at none of its names.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import LanceCoreError
from namespace_server.directory.collection.expired_versions import place_of_manifest
from namespace_server.directory.doctor.examination import Examination
from namespace_server.directory.doctor.findings import ExaminationReport, Finding
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import parse_id
from namespace_server.directory.namespace import DirectoryNamespace

_PROMOTED: Final = frozenset({"not-promoted", "taken-name"})
_log = logging.getLogger(__name__)


def repair(namespace: DirectoryNamespace, examination: Examination, report: ExaminationReport) -> ExaminationReport:
    """Repair what is repairable, and examine the root again. It may be repeated at any time; raises as `examine`."""
    wanted = [finding for finding in report.findings if finding.repairable]
    if not wanted:
        return report
    _promote(namespace, (finding for finding in wanted if finding.code in _PROMOTED))
    namespace.catalog.sweep()
    for finding in wanted:
        try:
            _repair(namespace, finding)
        except (LanceNamespaceError, LanceCoreError) as error:
            _log.warning("%s at %s is not repaired: %s", finding.code, finding.place, error)
    namespace.catalog.flush_record_maintenance()
    namespace.catalog.sweep()
    after = examination.examine()
    left = {(finding.code, finding.place) for finding in after.findings}
    repaired = tuple(finding for finding in wanted if (finding.code, finding.place) not in left)
    return replace(after, repaired=repaired)


def _promote(namespace: DirectoryNamespace, findings: Iterable[Finding]) -> None:
    rows = [row for finding in findings if (row := _row_of(namespace, finding)) is not None]
    namespace.catalog.promoter.promote(rows)


def _repair(namespace: DirectoryNamespace, finding: Finding) -> None:
    table_id = parse_id(finding.table) if finding.table else ()
    if finding.code == "unmanaged-version":
        location = finding.place.partition("/")[0]
        place = place_of_manifest(location, finding.place)
        namespace.read("list_table_versions", {"id": list(table_id), "branch": None if place is None else place[0]})
    elif finding.code == "version-lost" and (row := _row_of(namespace, finding)) is not None:
        versions = {"start_version": row.version, "end_version": row.version + 1}
        request = {"id": list(table_id), "branch": row.branch, "ranges": [versions]}
        namespace.write("batch_delete_table_versions", request)


def _row_of(namespace: DirectoryNamespace, finding: Finding) -> VersionEntry | None:
    snapshot, table_id = namespace.catalog.snapshot(), parse_id(finding.table)
    table = snapshot.table(table_id)
    place = None if table is None else place_of_manifest(table.location, finding.place)
    return None if place is None else snapshot.version_entry(table_id, *place)

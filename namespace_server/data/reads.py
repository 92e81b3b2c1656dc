"""Reads of rows: the version to read, and answers from its manifest alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
from lance_namespace.errors import InvalidInputError, LanceNamespaceError, TableVersionNotFoundError

from namespace_server.access.requirements import REQUIREMENTS
from namespace_server.access.subjects import Subject
from namespace_server.answer import Answer
from namespace_server.data.inline import InlineWork
from namespace_server.data.operations import lost, namespace_errors
from namespace_server.data.port import ChangesGone
from table_data.batch_operations import DELIMITER, TableState
from table_data.errors import BaseVersionGone, VersionGone
from table_data.jobs.job import CHANGES_OF_ROWS, DIFF_OF_BRANCH, Job
from table_data.requests.table_requests import ChangesOfVersions, DiffBranch, Explain, ReadChanges, ReadRequest

if TYPE_CHECKING:
    from namespace_server.directory.catalog_tables import CatalogTables


@dataclass(frozen=True, slots=True)
class ReadPoint:
    """The versions that a read is for.

    Attributes:
        catalog_version: The table as it was in this catalog version; None: the newest.
        least_version: A version of the table that the client has seen before. A read of the newest version fails if
            that is older: the table was dropped and created again.
    """

    catalog_version: int | None = None
    least_version: int | None = None


NEWEST: Final = ReadPoint()


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A job on one version of a table, and the catalog version that names it.

    `known` is the answer, if the manifest of the version has it.
    """

    job: Job
    table: TableState
    catalog_version: int
    known: int | None = None

    def answer(self, value: object) -> Answer[object]:
        """A value as the answer."""
        return Answer(value, self.catalog_version, self.table.version)


def plan_read(
    catalog: CatalogTables,
    operation: str,
    request: ReadRequest,
    at: ReadPoint = NEWEST,
    *,
    subject: Subject | None = None,
) -> PlannedRead:
    """Find the version that a read is to see, for `subject`; None is the operator.

    Blocking; raises the namespace errors of the catalog.
    """
    read = _explained(cast("Explain", request)) if operation == "explain_table_query_plan" else request
    needed = REQUIREMENTS[operation].privileges
    table, catalog_version = catalog.find_table(read, at=at.catalog_version, subject=subject, privileges=needed)
    is_newest = at.catalog_version is None and read.get("version") is None
    if is_newest and at.least_version is not None and (table.version or 0) < at.least_version:
        name, found = DELIMITER.join(table.id), table.version or 0
        raise TableVersionNotFoundError(f"table {name}: expected version {at.least_version} or newer, found {found}")
    if operation == DIFF_OF_BRANCH:
        asked = cast("DiffBranch", request)
        branch: ReadRequest = {"id": asked["id"], "branch": asked["from_branch"]}
        source, _ = catalog.find_table(branch, at=at.catalog_version, subject=subject, privileges=needed)
        request = cast("ReadRequest", {**asked, "source": source})
    counts_all = operation == "count_table_rows" and request.get("predicate") is None
    known = catalog.row_count(table) if counts_all else None
    return PlannedRead(Job(operation, request, catalog.storage_options), table, catalog_version, known)


def plan_changes(catalog: CatalogTables, request: ReadChanges, *, subject: Subject | None = None) -> PlannedRead:
    """Find the versions whose changes a read is to see, for `subject`; None is the operator.

    Blocking; raises the namespace errors of the catalog.
    """
    needed = REQUIREMENTS[CHANGES_OF_ROWS].privileges
    table, span = catalog.find_changes(request, subject=subject, privileges=needed)
    versions: ChangesOfVersions = {"span": span, "columns": request.get("columns")}
    return PlannedRead(Job(CHANGES_OF_ROWS, versions, catalog.storage_options), table, span.to)


def _explained(request: Explain) -> ReadRequest:
    """The version and the branch of the query that is explained. Raises `InvalidInputError` (13)."""
    query = request["query"]
    branches = {name for name in (request.get("branch"), query.get("branch")) if name is not None}
    if len(branches) > 1:
        raise InvalidInputError(f"query.branch: expected {request['branch']!r}, found {query['branch']!r}")
    return {"id": request["id"], "version": query.get("version"), "branch": next(iter(branches), None)}


def require_not_newest(catalog: CatalogTables, table: TableState, error: VersionGone) -> None:
    """Raise `WorkFailed` if the version that a worker did not find is the newest one: that is never removed (M5).

    It is gone if its table or branch was removed since it was found. Blocking.
    """
    try:
        newest, _ = catalog.find_table({"id": list(table.id), "branch": table.branch})
    except LanceNamespaceError:
        return
    if table.identity is not None and newest.identity == table.identity and newest.uri == table.uri:
        raise lost(error, table) from error


def explain_gone(catalog: CatalogTables, planned: PlannedRead, error: VersionGone) -> None:
    """Raise what a version that a worker did not find means, unless `error` says it. Blocking.

    Changes are read at earlier versions, too, which may be removed meanwhile (`ChangesGone`).
    """
    is_of_changes = planned.job.operation == CHANGES_OF_ROWS
    if not is_of_changes or isinstance(error, BaseVersionGone):
        require_not_newest(catalog, planned.table, error)
    if is_of_changes:
        raise ChangesGone(DELIMITER.join(planned.table.id), str(error)) from error


class RowReads:
    """The reads of rows of one catalog, in this process. Blocking; thread-safe."""

    def __init__(self, catalog: CatalogTables, readers: InlineWork) -> None:
        self._catalog = catalog
        self._readers = readers

    def value(self, operation: str, request: ReadRequest, at: ReadPoint = NEWEST) -> Answer[object]:
        """Answer a read whose answer is a JSON value. Raises the namespace errors of the operation."""
        planned = plan_read(self._catalog, operation, request, at)
        if planned.known is not None:
            return planned.answer(planned.known)
        with self._errors(planned):
            return planned.answer(self._readers.value(planned.job, planned.table))

    def rows(self, operation: str, request: ReadRequest) -> bytes:
        """Answer a read with rows, as an Arrow IPC file. Raises the namespace errors of the operation."""
        planned = plan_read(self._catalog, operation, request)
        with self._errors(planned):
            return self._readers.rows(planned.job, planned.table)

    def stream(self, operation: str, request: ReadRequest, at: ReadPoint = NEWEST) -> pa.RecordBatchReader:
        """Answer a read with rows, read as they are taken. Raises the namespace errors of the operation, then too."""
        return self._stream(plan_read(self._catalog, operation, request, at))

    def changes(self, request: ReadChanges) -> pa.RecordBatchReader:
        """The changed rows of a table, read as they are taken. Raises the namespace errors, then too."""
        return self._stream(plan_changes(self._catalog, request))

    def _stream(self, planned: PlannedRead) -> pa.RecordBatchReader:
        with self._errors(planned):
            found = self._readers.stream(planned.job, planned.table)

        def batches() -> Iterator[pa.RecordBatch]:
            with self._errors(planned):
                yield from found

        return pa.RecordBatchReader.from_batches(found.schema, batches())

    @contextmanager
    def _errors(self, planned: PlannedRead) -> Iterator[None]:
        with namespace_errors():
            try:
                yield
            except VersionGone as error:
                explain_gone(self._catalog, planned, error)
                raise

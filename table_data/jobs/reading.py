"""Reads of one table, and the versions that stay open: for the reads that follow, and for the next change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Final, cast

import lance
import pyarrow as pa

from table_data.batch_operations import TableState
from table_data.change_feed.feed import changed_rows
from table_data.errors import InvalidCall
from table_data.jobs.job import CHANGES_OF_ROWS, DIFF_OF_BRANCH, Job
from table_data.open_datasets import OpenDatasets
from table_data.operations import READS
from table_data.operations.branches import diff_branch
from table_data.requests.table_requests import ChangesOfVersions, DiffOfBranch
from table_data.table_changes import OpenedVersion, TableChanges

_MOST: Final = 8
"""Versions that stay open for changes."""


class OpenTables:
    """The datasets that were read last, whose indices and metadata stay in memory. Not thread-safe."""

    def __init__(self) -> None:
        self._open = OpenDatasets()

    def open(self, table: TableState, options: Mapping[str, str]) -> lance.LanceDataset:
        """A read-only dataset of the table's version. Raises `InvalidCall` if it has none."""
        changes = TableChanges(table, options)
        if table.version is None:
            raise InvalidCall(f"{changes.name} has no version yet: create it")
        manifest = changes.manifest_sha256 or changes.require_head().identity.sha256
        return self._open.find((changes.uri, table.version, manifest), changes.dataset)


class OpenVersions:
    """The last few versions that changes made: their manifests, and their datasets in pylance. Not thread-safe.

    Versions are distinguished by their identity, never by a number alone.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[Hashable, OpenedVersion] = OrderedDict()

    def open(self, table: TableState, options: Mapping[str, str]) -> None:
        """Open a version. Raises as `TableChanges.open`."""
        self._open[_key(table, options)] = TableChanges(table, options).open()
        if len(self._open) > _MOST:
            self._open.popitem(last=False)

    def take(self, table: TableState, options: Mapping[str, str]) -> OpenedVersion | None:
        """The version, which is not kept any longer; None if it is not open."""
        return self._open.pop(_key(table, options), None)


def _key(table: TableState, options: Mapping[str, str]) -> Hashable:
    return (table.uri, table.branch, table.version, table.identity, *sorted(options.items()))


def answer_read(tables: OpenTables, job: Job, table: TableState) -> object | pa.RecordBatchReader:
    """Answer a read with a JSON value or rows. Raises `ClientError`, and errors of pylance."""
    if job.operation == CHANGES_OF_ROWS:
        request = cast("ChangesOfVersions", job.request)
        return changed_rows(table, request["span"], job.options, request.get("columns"))
    if job.operation == DIFF_OF_BRANCH:
        return diff_branch(table, cast("DiffOfBranch", job.request), job.options)
    return READS[job.operation](tables.open(table, job.options), job.request)


def is_stream(job: Job) -> bool:
    """Whether the rows of a read are an Arrow IPC stream, which is read as it comes; else they are a file."""
    return job.operation == CHANGES_OF_ROWS

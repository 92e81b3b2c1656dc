"""Reads of one table: of an open version, or of the changes of several."""

from __future__ import annotations

from typing import cast

import pyarrow as pa

from table_data.batch_operations import TableState
from table_data.change_feed.feed import changed_rows
from table_data.jobs.job import CHANGES_OF_ROWS, DIFF_OF_BRANCH, Job
from table_data.jobs.open_tables import OpenTables
from table_data.operations import READS
from table_data.operations.branches import diff_branch
from table_data.requests.table_requests import ChangesOfVersions, DiffOfBranch


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

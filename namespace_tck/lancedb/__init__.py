"""The dialect of lancedb's remote clients: a table of requests, and of what a server must answer to each.

matching     patterns of answers
lines        what a line of the table is, and lists of lines
data         the rows of the tables that lines work on
session      one server under test, and what one line works with
databases    lines about databases, their namespaces, and lists
tables       lines about tables as wholes, clones and jobs
rows         lines about changes of rows, repeats and freshness
queries      lines about scans, vectors, words and plans
indices      lines about indices
columns      lines about columns, versions, tags and branches
unserved     lines about parallel writes, blobs, and what many servers do not have
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from namespace_tck.lancedb import columns, databases, indices, queries, rows, tables, unserved
from namespace_tck.lancedb.lines import LancedbLine
from namespace_tck.lancedb.session import LancedbSession, LancedbTrial
from namespace_tck.registry import Check

__all__ = ["LANCEDB", "LINES", "LancedbLine", "LancedbSession", "LancedbTrial"]

LINES = (
    *(databases.lines, tables.lines, tables.copies, rows.lines, rows.twice, rows.fresh),
    *(queries.lines, queries.vectors, queries.found, queries.plans, indices.lines),
    *(columns.lines, columns.versions, columns.tags, columns.branches, columns.picks),
    *(unserved.parallel, unserved.blobs, unserved.hostile, tables.reading, unserved.logs, unserved.kinds),
)
"""All lines, by groups."""


def _run(line: LancedbLine) -> Callable[[Any], None]:
    return partial(_run_line, line)


def _run_line(line: LancedbLine, trial: LancedbTrial) -> None:
    trial.run(line)


LANCEDB: tuple[Check, ...] = tuple(check for group in LINES for check in group.checks(_run))
"""The lines as checks of the kit, in the order in which they run."""

"""Fresh or live: a commit names no file that a garbage collection may remove (rule G2).

A file that was written before the effective horizon of its location, and that no version in the catalog names, is
garbage: it may stand in the plan of a garbage collection at any later time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Final

from lance_namespace.errors import InvalidInputError

from lance_core.format.naming import branch_base
from namespace_server.directory.model.entries import TableEntry
from namespace_server.directory.model.intents import horizon_at
from namespace_server.directory.model.operations import CommitTransaction, CreateTableVersion
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.chains import chain_name
from namespace_server.directory.planning.plan_builder import AddedFiles, Finding, PlanBuilder, StagedManifest

MOST_VERSIONS: Final = 64
"""Versions that are looked through, from the head down, for an old file that a transaction names again."""


def too_old(finding: Finding, snapshot: CatalogSnapshot) -> dict[str, int]:
    """The files that a commit adds and that were written before the horizon, with these dates.

    The horizon, in seconds since the epoch, is that of their table in this snapshot (G4); outside of the table that of
    the catalog.
    """
    horizon = snapshot.collector.horizon
    if not isinstance(finding, AddedFiles | StagedManifest):
        return {}
    old = {key: written for key, written in finding.dates.items() if written < horizon}
    if not old:
        return old
    prefix, kept_from = f"{finding.location}/", horizon_at(snapshot, finding.location)
    return {key: written for key, written in old.items() if written < kept_from or not key.startswith(prefix)}


def require_fresh(
    builder: PlanBuilder, operation: CommitTransaction | CreateTableVersion, table: TableEntry, finding: Finding
) -> None:
    """Raise InvalidInputError (13) for a file that is older than the horizon, unless a version of the chain names it.

    The horizon is that of the snapshot which the batch is planned on, and so of the flip.
    """
    old = too_old(finding, builder.base)
    if not old:
        return
    base = branch_base(table.location, operation.branch)
    rows = builder.view(operation.id).versions(operation.id, operation.branch, descending=True)
    left = builder.context.unnamed(base, old.keys(), islice(rows, MOST_VERSIONS))
    if left:
        key, horizon = min(left), builder.base.collector.horizon
        raise InvalidInputError(
            f"{chain_name(operation)}: the file {key} was written at {_time(old[key])}, before {_time(horizon)}, the "
            "horizon of the catalog; files that no version named by then are removed; stage again"
        )


def _time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"

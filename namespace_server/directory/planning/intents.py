"""Plan intents: jobs that may commit later than a garbage collection allows (rules G4 and G11)."""

from __future__ import annotations

from namespace_server.directory.model.collector_rows import IntendedChain, IntentEntry
from namespace_server.directory.model.errors import version_not_kept
from namespace_server.directory.model.operations import EndIntent, IntendedTable, RegisterIntent
from namespace_server.directory.model.results import OperationResult, intent_json
from namespace_server.directory.planning.plan_builder import PlanBuilder


def plan_intent(builder: PlanBuilder, operation: RegisterIntent | EndIntent) -> OperationResult:
    """Register an intent, renew it, or end it. One that is not there any more is ended already.

    A renewal adds tables, and shortens nothing: it is for the longest time that was asked for. Raises
    TableNotFoundError (4) for a table without a location, and TableVersionNotFoundError (11) for a version that is to
    be kept and is not there.
    """
    known = builder.work.intent(operation.key)
    if isinstance(operation, EndIntent):
        if known is None:
            return {}
        builder.change(removes=[known.object_id])
        return {"intent": intent_json(known)}
    now_ms = builder.context.now_ms
    until_ms = now_ms + operation.seconds * 1_000
    intent = IntentEntry(
        operation.key,
        _chains(builder, () if known is None else known.chains, operation.tables),
        until_ms if known is None else max(until_ms, known.until_ms),
        operation.reason,
        builder.batch.principal,
        now_ms if known is None else known.timestamp_ms,
        operation.seconds if known is None else max(operation.seconds, known.seconds),
        builder.base.version + 1,
    )
    builder.change([intent])
    return {"intent": intent_json(intent)}


def _chains(
    builder: PlanBuilder, known: tuple[IntendedChain, ...], tables: tuple[IntendedTable, ...]
) -> tuple[IntendedChain, ...]:
    """The chains of the intent with these tables.

    A chain that is new to it is kept from the horizon of the snapshot that is flipped: what is older may be on the list
    of a garbage collection already, whenever the job asked.
    """
    chains = {(chain.location, chain.branch): chain for chain in known}
    for table in tables:
        location = builder.table(table.id).location if table.location is None else table.location
        begun = IntendedChain(location, table.branch, builder.base.collector.horizon)
        before = chains.get((location, table.branch), begun)
        version = table.read_version
        if version and not 0 < before.read_version <= version:
            _require_version(builder, table, location)
            before = before._replace(read_version=version)
        chains[location, table.branch] = before
    return tuple(chains.values())


def _require_version(builder: PlanBuilder, table: IntendedTable, location: str) -> None:
    """The version must be in the snapshot that is flipped: the runs of gc that follow keep what is registered."""
    holder = builder.work.table_at(location)
    row = None if holder is None else builder.work.version_entry(holder, table.branch, table.read_version)
    if row is None:
        raise version_not_kept(table.id, location, table.branch, table.read_version)

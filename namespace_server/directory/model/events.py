"""Events: each catalog version as one CloudEvent, made of its own files alone.

An event is the same whoever makes it, and whenever: it depends on the version alone, not on the newest one, and not on
who committed it. So it may be made again after any crash, and its `id` says whether it was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from namespace_server.directory.model.entries import DROPPED, RecordEntry
from namespace_server.directory.model.history import Body
from namespace_server.directory.model.operations import (
    AdvanceCursor,
    CloneTable,
    CommitTransaction,
    CreateBranch,
    CreateTableVersion,
    DeleteCursor,
)

Kind = Literal["committed", "adopted", "cursors", "housekeeping", "unmanaged", "hidden"]
"""What made a catalog version: batches; the adoption of table versions that were committed around the catalog; moves of
cursors alone; a server that worked on its own rows; a writer without a catalog server; what its reader may not see."""

_TYPE: Final = "lance.catalog.version."
_DIGITS: Final = 20
_OF_CURSORS: Final = frozenset({AdvanceCursor.name, DeleteCursor.name})
PUBLISHING: Final = frozenset({CommitTransaction.name, CreateTableVersion.name, CreateBranch.name, CloneTable.name})
_BEGINNING: Final = "Clone"
"""The Lance operation that begins a branch or a clone, with the number of the version that it copies."""


@dataclass(frozen=True, slots=True)
class VersionContent:
    """The content of a catalog version, from its own files.

    `identity` is that of the catalog. `batches` and `adopted` are as in the list of catalog versions. `records` are
    those that it put. Of what a reader may not see there is nothing, and `told` is what kind it is told then.
    """

    version: int
    timestamp_ms: int
    identity: str
    made_by_catalog: bool
    batches: Sequence[Body]
    adopted: Sequence[Body]
    records: Sequence[RecordEntry]
    told: Kind | None = None

    @property
    def kind(self) -> Kind:
        """What made it."""
        if self.told is not None:
            return self.told
        if not self.made_by_catalog:
            return "unmanaged"
        if not self.batches:
            return "adopted" if self.adopted else "housekeeping"
        moves_cursors = not self.adopted and all(_moves_cursors(batch) for batch in self.batches)
        return "cursors" if moves_cursors else "committed"


def cloud_event(content: VersionContent) -> Body:
    """The event of a catalog version (CloudEvents 1.0, in the JSON format). Its fields are always in the same order."""
    data: Body = {"catalog_version": content.version, "kind": content.kind, "batches": list(content.batches)}
    if content.adopted:
        data["adopted"] = list(content.adopted)
    data["tables"] = _tables(content)
    moment = datetime.fromtimestamp(content.timestamp_ms / 1_000, UTC)
    return {
        "specversion": "1.0",
        "id": f"{content.identity}/{content.version}",
        "source": f"urn:uuid:{content.identity}",
        "type": f"{_TYPE}{content.kind}",
        "subject": f"catalog/versions/{content.version}",
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "sequence": str(content.version).zfill(_DIGITS),
        "datacontenttype": "application/json",
        "data": data,
    }


def _moves_cursors(batch: Body) -> bool:
    operations = batch.get("operations")
    return (
        isinstance(operations, list)
        and bool(operations)
        and batch.get("num_operations") == len(operations)
        and all(each.get("operation") in _OF_CURSORS for each in operations)
    )


def _tables(content: VersionContent) -> list[Body]:
    """The tables that got versions or were dropped, each chain once, with its versions before and after."""
    found: dict[tuple[tuple[str, ...], str | None], dict[str, Any]] = {}
    for change in _published(content):
        table_id, branch, version = tuple(change["id"]), change.get("branch"), change["version"]
        begins = change.get("change") == _BEGINNING or version <= 1
        seen = found.get((table_id, branch))
        if seen is None:
            seen = found[table_id, branch] = {"id": list(table_id)} | ({} if branch is None else {"branch": branch})
            if not begins:
                seen["before"] = version - 1
            seen["rows"] = 0
        seen["after"] = version
        rows, before = change.get("rows"), seen.get("rows")
        seen["rows"] = None if rows is None or before is None else before + rows
    tables = [{key: value for key, value in each.items() if value is not None} for each in found.values()]
    # A record that is put again, as what it names comes back in part, has the version before another one.
    puts = [each for each in content.records if each.state == DROPPED]
    new = (each for each in puts if each.catalog_version in {0, content.version - 1})
    dropped = (party for record in new for party in record.participants)
    tables += [
        {"id": list(party.table_id), **({"before": party.version} if party.version else {}), "dropped": True}
        for party in dropped
    ]
    return tables


def _published(content: VersionContent) -> Iterable[Mapping[str, Any]]:
    """The versions of tables that it published and adopted."""
    for batch in content.batches:
        operations = batch.get("operations")
        for each in operations if isinstance(operations, list) else ():
            if each.get("operation") in PUBLISHING and "version" in each and "id" in each:
                yield each
    yield from content.adopted

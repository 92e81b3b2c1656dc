"""What one caller may see of the history: the batches and table versions of a catalog version, as JSON.

The history names objects as they were called then. So names are judged as of that catalog version: what a table or a
namespace of the same name did before the grant that leads to it is told to those alone who read all of the catalog.
That may be in the same catalog version, where a batch drops a table and another one takes its name: what had a name
before is judged as of the version before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

from namespace_server.access.subjects import Privilege
from namespace_server.directory.model.entries import RecordEntry
from namespace_server.directory.model.events import Kind, VersionContent
from namespace_server.directory.model.history import Body
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import (
    CloneTable,
    CreateNamespace,
    DeclareTable,
    RegisterTable,
    UndropNamespace,
)
from namespace_server.directory.reading.sight import Sight

_MAKES: Final = frozenset(
    {CreateNamespace.name, DeclareTable.name, RegisterTable.name, CloneTable.name, UndropNamespace.name}
)
"""Operations that put something new under the name that they are about."""
_OF_WHO_SEES: Final = frozenset({"operation", "id", "new_id"})
"""What of an operation is told to who may see its table, and not read it."""


def visible_content(sight: Sight, content: VersionContent) -> VersionContent:
    """The content of a catalog version that its event is made of, as far as the caller may see it."""
    version = content.version
    batches = visible_batches(sight, content.batches, version)
    adopted = visible_versions(sight, content.adopted, version)
    records = [_visible_record(sight, record, version) for record in content.records]
    is_hidden = content.kind in {"committed", "adopted"} and not batches and not adopted
    told: Kind | None = "hidden" if is_hidden else "cursors" if content.kind == "cursors" else None
    return replace(content, batches=batches, adopted=adopted, records=records, told=told)


def visible_batches(sight: Sight, batches: Sequence[Body], version: int) -> list[Body]:
    """The batches of a catalog version that have something visible, with their visible operations.

    The message of a batch is told to who sees all of its operations, and all of it to who may read all of the catalog.
    """
    if sight.reads_all:
        return list(batches)
    found = []
    names, numbers = _NamesOfVersion.of(batches, version), count()
    for batch in batches:
        listed = _listed(batch.get("operations"))
        is_own = sight.owns(_text(batch.get("principal")))
        seen = (_visible(sight, item, names, next(numbers), is_own=is_own) for item in listed)
        shown = [each for each in seen if each]
        if not shown:
            continue
        visible = {**batch, "operations": shown}
        if "num_operations" in batch:
            if len(shown) != batch["num_operations"] and not is_own:
                visible.pop("message", None)
            visible["num_operations"] = len(shown)
        elif len(shown) != len(listed) and not is_own:
            visible.pop("message", None)
        found.append(visible)
    return found


def visible_versions(sight: Sight, adopted: Sequence[Body], version: int) -> list[Body]:
    """The adopted table versions that the caller may read."""
    return [each for each in adopted if sight.allowed_at(Privilege.READ, _id(each.get("id")), version)]


@dataclass(frozen=True, slots=True)
class _NamesOfVersion:
    """When names of a catalog version began to be those of what has them at its end.

    Attributes:
        version: Its number.
        given: For each name that an operation gave to something, the number of the last one that did.
        is_whole: Whether all operations are listed.
    """

    version: int
    given: Mapping[ObjectId, int]
    is_whole: bool

    @classmethod
    def of(cls, batches: Sequence[Body], version: int) -> _NamesOfVersion:
        """Those of the batches of a version, whose operations are numbered in order."""
        operations = [each for batch in batches for each in _listed(batch.get("operations"))]
        given = {
            _id(each.get("new_id", each["id"])): number
            for number, each in enumerate(operations)
            if "new_id" in each or each.get("operation") in _MAKES
        }
        counts = (batch.get("num_operations") for batch in batches)
        return cls(version, given, sum(each for each in counts if isinstance(each, int)) <= len(operations))

    def judged_at(self, object_id: ObjectId, number: int) -> int:
        """The version by whose grants a name is judged, where the operation of this number has it."""
        places = [object_id[:end] for end in range(1, len(object_id) + 1)]
        last = max((self.given.get(each, -1) for each in places), default=-1)
        is_now = self.is_whole if last < 0 else last <= number
        return self.version if is_now else self.version - 1


def _visible(
    sight: Sight, operation: Mapping[str, Any], names: _NamesOfVersion, number: int, *, is_own: bool
) -> Body | None:
    """The operation of this number as the caller may see it; None if it may not.

    One that names no namespace and no table, such as a pin, is told to its own principal.
    """
    named = [_id(operation[name]) for name in ("id", "new_id") if name in operation]
    if not named:
        return dict(operation) if is_own else None
    ids = [(each, names.judged_at(each, number)) for each in named]
    if not all(sight.allowed_at(Privilege.SEE, *each) for each in ids):
        return None
    if all(sight.allowed_at(Privilege.READ, *each) for each in ids):
        return dict(operation)
    return {name: value for name, value in operation.items() if name in _OF_WHO_SEES}


def _visible_record(sight: Sight, record: RecordEntry, version: int) -> RecordEntry:
    version = version if record.is_batch else record.catalog_version or version
    seen = [party for party in record.participants if sight.allowed_at(Privilege.SEE, party.table_id, version)]
    told = (
        party if sight.allowed_at(Privilege.READ, party.table_id, version) else party._replace(version=0)
        for party in seen
    )
    return replace(record, participants=tuple(told))


def _listed(operations: object) -> Sequence[Mapping[str, Any]]:
    return operations if isinstance(operations, list) else ()


def _id(value: object) -> ObjectId:
    return tuple(value) if isinstance(value, list | tuple) else ()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

"""The operations that a batch is made of, as plain values.

Every change of the catalog is a batch: the single calls of the namespace API are batches of one operation. An
operation holds the request, checked for form only; whether it can be carried out is decided by `planner.plan_batch`
against a snapshot. Its `name` is the field that holds it in the request and in the answer of a batch, the name of the
call that makes it alone, and what the record of a batch says of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, Literal

from lance_core.proto import lance_table_pb2 as pb
from namespace_server.access.subjects import Subject
from namespace_server.attempts import RequestOrigin
from namespace_server.directory.model.grant_operations import GrantOperation
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.notes import NoteChange
from namespace_server.directory.model.object_ids import ChainKey, ObjectId
from namespace_server.durations import elapsed_clock


class CreateMode(Enum):
    """The behaviour of a creation when the name is taken."""

    CREATE = "create"
    EXIST_OK = "exist_ok"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    """Make a namespace. OVERWRITE drops the existing one with all that it holds."""

    name: ClassVar = "create_namespace"
    id: ObjectId
    properties: Mapping[str, str]
    mode: CreateMode


@dataclass(frozen=True, slots=True)
class DropNamespace:
    """Remove a namespace; with `cascade` all below it. `skip_missing`: absence is success. `purge`: see `DropTable`."""

    name: ClassVar = "drop_namespace"
    id: ObjectId
    skip_missing: bool
    cascade: bool
    purge: bool = False


@dataclass(frozen=True, slots=True)
class DeclareTable:
    """Reserve a name and a location, which is never used by another incarnation of a table (N1).

    `chosen` says that the client chose the location. `implicit_namespaces`: namespaces above it that are missing are
    created too. `vends`: the client wants storage options for it.
    """

    name: ClassVar = "declare_table"
    id: ObjectId
    location: str
    properties: Mapping[str, str]
    chosen: bool = False
    implicit_namespaces: bool = False
    vends: bool = True


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """Put an existing dataset under a name, with the versions that it has on storage."""

    name: ClassVar = "register_table"
    id: ObjectId
    location: str
    properties: Mapping[str, str]
    overwrite: bool


@dataclass(frozen=True, slots=True)
class DeregisterTable:
    """Forget a table; its files stay."""

    name: ClassVar = "deregister_table"
    id: ObjectId


@dataclass(frozen=True, slots=True)
class DropTable:
    """Remove a table. Its files stay, and it can come back, for a while; with `purge` until the next run of gc."""

    name: ClassVar = "drop_table"
    id: ObjectId
    purge: bool = False


@dataclass(frozen=True, slots=True)
class UndropTable:
    """Bring back a dropped table as it was before the batch that dropped it, under `new_id`.

    `tombstone` is the uuid of its tombstone, if a table of this name was dropped more than once; None: the last one.
    """

    name: ClassVar = "undrop_table"
    id: ObjectId
    new_id: ObjectId
    tombstone: str | None = None


@dataclass(frozen=True, slots=True)
class UndropNamespace:
    """Bring back a namespace, with the namespaces and tables that were dropped with it."""

    name: ClassVar = "undrop_namespace"
    id: ObjectId


@dataclass(frozen=True, slots=True)
class _Keyed:
    """An operation on what has a key in the place of a path: the name of a pin or a cursor, the uuid of the others."""

    key: str

    @property
    def id(self) -> ObjectId:
        """The key, as what errors name the operation by."""
        return (self.key,)


@dataclass(frozen=True, slots=True)
class SetPin(_Keyed):
    """Keep a catalog version under a name, for so many `seconds`; None: until it is removed.

    `version` None is the one that the batch makes. A pin of that name is replaced.
    """

    name: ClassVar = "pin_catalog_version"
    version: int | None
    seconds: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class RemovePin(_Keyed):
    """Remove a pin."""

    name: ClassVar = "unpin_catalog_version"


@dataclass(frozen=True, slots=True)
class AdvanceCursor(_Keyed):
    """Put a cursor at a catalog version, up to which its consumer is done; None: the one that the batch makes.

    It is made if there is none of that name. `expected`: where it has to be now. It goes back only if `backwards`.
    """

    name: ClassVar = "advance_cursor"
    version: int | None
    expected: int | None
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class DeleteCursor(_Keyed):
    """Remove a cursor."""

    name: ClassVar = "delete_cursor"


@dataclass(frozen=True, slots=True)
class IntendedTable:
    """A chain of a table that a job writes or reads, as a request names it.

    `location` is the key of the table, None for where the table with this id is. `read_version` is the lowest version
    that the job reads; 0: none.
    """

    id: ObjectId
    branch: str | None
    location: str | None
    read_version: int


@dataclass(frozen=True, slots=True)
class RegisterIntent(_Keyed):
    """Register a job that may take long, or renew its registration, for so many `seconds`."""

    name: ClassVar = "register_intent"
    tables: tuple[IntendedTable, ...]
    seconds: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class EndIntent(_Keyed):
    """End the intent of a job, if it is still there."""

    name: ClassVar = "end_intent"


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Give a table another name; its location stays."""

    name: ClassVar = "rename_table"
    id: ObjectId
    new_id: ObjectId


@dataclass(frozen=True, slots=True)
class CreateTableVersion:
    """Publish a manifest that the client staged.

    `manifest_path` is the store key of the staged manifest; None when the path sent lies outside the root.
    """

    name: ClassVar = "create_table_version"
    id: ObjectId
    branch: str | None
    version: int
    manifest_path: str | None
    path_as_sent: str
    manifest_size: int | None
    e_tag: str | None
    naming_scheme: str
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeleteTableVersions:
    """Remove version rows. Ranges are half-open; a negative end means up to the head, inclusive.

    The head goes only with all other versions: the table then begins anew at `fresh_location` (N2).
    """

    name: ClassVar = "delete_table_versions"
    id: ObjectId
    branch: str | None
    ranges: tuple[tuple[int, int], ...]
    fresh_location: str


@dataclass(frozen=True, slots=True)
class CommitTransaction:
    """Commit a Lance transaction onto the head, rebased by us where the conflict rules allow.

    `stable_row_ids` makes the first version of a table one whose rows keep their ids, `data_storage_version` is the
    format of its data files, if its first ones do not state one. The table must lie at `location`, if that is
    given: another table of the same name does not. The version that the transaction read must have the
    manifest with `manifest_sha256`, if that is given: in a chain that was begun again another one has its number (P11).
    """

    name: ClassVar = "commit_transaction"
    id: ObjectId
    branch: str | None
    transaction: pb.Transaction
    stable_row_ids: bool = False
    data_storage_version: str | None = None
    location: str | None = None
    manifest_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class AssertTableVersion:
    """Fail the batch unless `version` is the head at the flip (0: there is no version yet).

    With `location` and `manifest_sha256` the table must lie there, and the head have that manifest (P11).
    """

    name: ClassVar = "assert_table_version"
    id: ObjectId
    branch: str | None
    version: int
    location: str | None = None
    manifest_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class AdoptTableVersions:
    """Adopt versions of other writers above the head of a chain (P5); made by this server, never by a request."""

    name: ClassVar = "adopt_table_versions"
    id: ObjectId
    branch: str | None


@dataclass(frozen=True, slots=True)
class SetTableProperties:
    """Change the properties that the catalog stores with a table.

    `properties` replaces all of them; if it is None, `updates` are set and `removals` removed, and the others stay. The
    table must lie at `location`, if that is given: another table of the same name does not.
    """

    name: ClassVar = "set_table_properties"
    id: ObjectId
    properties: Mapping[str, str] | None
    updates: Mapping[str, str]
    removals: frozenset[str]
    location: str | None
    limits: Limits


@dataclass(frozen=True, slots=True)
class CreateBranch:
    """Begin a branch at a version of another one (None is main); without `from_version` at its head.

    `transaction_uuid` names the Clone that becomes the branch's first version.
    """

    name: ClassVar = "create_table_branch"
    id: ObjectId
    branch: str
    from_branch: str | None
    from_version: int | None
    transaction_uuid: str


@dataclass(frozen=True, slots=True)
class CloneTable:
    """Make a table at `location` that begins with a version of another one, and refers to its files (P14).

    The version is that of the main chain of the table at `source`, a key, whose manifest has this SHA-256. Its number
    is the clone's first. `transaction_uuid` names the Clone. With `implicit_namespaces` the namespaces above are
    created too.
    """

    name: ClassVar = "clone_table"
    id: ObjectId
    location: str
    source: str
    version: int
    sha256: str
    transaction_uuid: str
    implicit_namespaces: bool = False


@dataclass(frozen=True, slots=True)
class DeleteBranch:
    """Remove a branch: its rows in the flip, its files after it (B2)."""

    name: ClassVar = "delete_table_branch"
    id: ObjectId
    branch: str


@dataclass(frozen=True, slots=True)
class ConfirmTag:
    """Fail the batch unless the version that a tag was written for is still a row, of the manifest with `sha256` (B1).

    The table must lie at `location`: the tag's file is there. `name` is the change of the tag.
    """

    id: ObjectId
    branch: str | None
    version: int
    tag: str
    location: str
    sha256: str
    name: Literal["create_table_tag", "update_table_tag"]


@dataclass(frozen=True, slots=True)
class DeleteTag:
    """Record that a tag is removed: its file, whose content has this SHA-256, goes after the flip.

    The table must lie at `location`: the tag's file is there.
    """

    name: ClassVar = "delete_table_tag"
    id: ObjectId
    tag: str
    location: str
    sha256: str


@dataclass(frozen=True, slots=True)
class KeepAnswer:
    """Keep the answer of a call in the record, beside the version that its batch commits (A1).

    `name` is that of the call. `location` is the key of the table that the answer names, if it names one.
    """

    name: str
    answer: Mapping[str, object] = field(default_factory=dict, hash=False)
    location: str | None = None

    @property
    def id(self) -> ObjectId:
        """The name of the call, as what errors name the operation by."""
        return (self.name,)


@dataclass(frozen=True, slots=True)
class AlterBatch(_Keyed):
    """Change the properties noted on a batch: all changes or none."""

    name: ClassVar = "alter_transaction"
    changes: tuple[NoteChange, ...]
    limits: Limits


NeedOperation = SetPin | RemovePin | AdvanceCursor | DeleteCursor | RegisterIntent | EndIntent
"""The operations that say what has to be kept."""

RequestedOperation = (
    CreateNamespace
    | DropNamespace
    | DeclareTable
    | RegisterTable
    | DeregisterTable
    | DropTable
    | UndropTable
    | UndropNamespace
    | NeedOperation
    | RenameTable
    | SetTableProperties
    | CreateTableVersion
    | DeleteTableVersions
    | CommitTransaction
    | AssertTableVersion
    | CreateBranch
    | GrantOperation
)
"""The operations that requests are read as."""

Operation = (
    RequestedOperation
    | AdoptTableVersions
    | CloneTable
    | DeleteBranch
    | ConfirmTag
    | DeleteTag
    | AlterBatch
    | KeepAnswer
)

TableOperation = (
    CreateTableVersion
    | DeleteTableVersions
    | CommitTransaction
    | AssertTableVersion
    | AdoptTableVersions
    | CreateBranch
    | DeleteBranch
    | ConfirmTag
)
"""The operations that concern a chain of versions, whose storage is probed before planning (P5)."""


def chains_of(operations: Iterable[Operation]) -> set[ChainKey]:
    """The chains that operations name."""
    named = [operation for operation in operations if isinstance(operation, TableOperation)]
    begun = {(item.id, item.from_branch) for item in named if isinstance(item, CreateBranch)}
    return begun | {(item.id, item.branch) for item in named}


def operation_names(operations: Sequence[Operation]) -> str:
    """The names of operations, each once, in the order of their first use, joined by commas.

    A batch that only keeps the answer of a call has the name of that.
    """
    names = [item.name for item in operations if not isinstance(item, KeepAnswer)]
    return ",".join(dict.fromkeys(names or [item.name for item in operations]))


@dataclass(frozen=True, slots=True)
class Batch:
    """Operations that happen all or not at all.

    `uuid` names the batch for ever; it is the `transaction_id` of the answer. `request_hash` is the SHA-256 (hex) of
    the request, which distinguishes a repeated request from another one under the same idempotency key (A1).
    One that is `movable` may end as `CommittedElsewhere`. `accepted_at` is the time, by `elapsed_clock`, at which its
    request was read. `subject` is who it is judged for, where grants are in force; None is the operator, who is not.
    `origin` is where its request came from; None for work in this process.
    """

    uuid: str
    operations: tuple[Operation, ...]
    request_hash: str
    idempotency_key: str | None = None
    principal: str | None = None
    message: str | None = None
    movable: bool = False
    accepted_at: float = field(default_factory=elapsed_clock, compare=False)
    subject: Subject | None = None
    origin: RequestOrigin | None = field(default=None, compare=False)

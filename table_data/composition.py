"""Composition of the steps of one table into the transactions of a batch. Pure.

Each step is built on the version that the step before it left, which is not published. The transactions that are sent
must be relative to the base version, the version at the begin, since the catalog rebases them from there:

* One step is one transaction.
* Steps that only add, remove or rewrite rows become one Append, Delete or Update: the difference between the last
  manifest and the base manifest.
* Steps before an overwrite are dropped. Rows appended after it become part of it.
* Any other sequence is sent as one transaction per step, and *guarded*: the batch asserts that the base version is
  still the head, since the later transactions name fragments, rows and columns that the earlier ones make.

Parts of rows that were uploaded by themselves are joined into one transaction, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from lance_core.format.manifest import ManifestFile, encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.apply import apply_transaction
from lance_core.transaction.features import has_stable_row_ids
from lance_core.transaction.fragments import next_fragment_id
from lance_core.transaction.operations import (
    Append,
    Delete,
    Operation,
    Overwrite,
    Restore,
    Update,
    decode_operation,
    encode_transaction,
)
from lance_core.transaction.row_ids import row_ids
from table_data.batch_operations import TransactionCommit
from table_data.errors import InvalidCall

MESSAGE_PROPERTY = "__lance_commit_message"


class Step:
    """One call: its operation, relative to the version that it is applied to (0: no version yet).

    `guard` is the reason why the batch must assert the base version, if the transaction cannot say it. `properties`
    are those of the transaction, which it has as the only step of its table. The versions before and after it are
    manifests that are read and built on first use.
    """

    def __init__(
        self,
        call: str,
        operation: Operation,
        transaction: pb.Transaction,
        *,
        before: Callable[[], ManifestFile | None],
        apply: Callable[[ManifestFile | None, pb.Transaction], ManifestFile],
        guard: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.call = call
        self.operation = operation
        self.transaction = transaction
        self.guard = guard
        self.properties = properties
        self._before = before
        self._apply = apply

    @cached_property
    def before(self) -> ManifestFile | None:
        """The version that the operation is applied to; None: no version yet."""
        return self._before()

    @cached_property
    def after(self) -> ManifestFile:
        """The version after it. Raises `InvalidTransaction` or `UnsupportedFeature` if the operation does not fit."""
        return self._apply(self.before, self.transaction)


@dataclass(frozen=True, slots=True)
class Composition:
    """The transactions for one table. With a `guard`, the batch must assert the base version for this reason."""

    transactions: tuple[pb.Transaction, ...]
    guard: str | None = None


def take_step(
    call: str,
    operation: Operation,
    *,
    read_version: int,
    before: Callable[[], ManifestFile | None],
    now_ns: int,
    message: str | None = None,
    source: ManifestFile | None = None,
    guard: str | None = None,
    stable_row_ids: bool = False,
    data_storage_version: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Step:
    """An operation on a version, which is applied as the catalog does without concurrent commits.

    `before` reads the version with the number `read_version` (None for 0). `source` is the version that a Restore
    restores. `stable_row_ids` and `data_storage_version` are for a first version.
    """
    transaction = transaction_message(operation, read_version, message, properties)

    def apply(found: ManifestFile | None, transaction: pb.Transaction) -> ManifestFile:
        number = read_version + 1
        built = apply_transaction(
            found,
            transaction,
            version=number,
            now_ns=now_ns,
            stable_row_ids=stable_row_ids,
            data_storage_version=data_storage_version,
            source=source,
        )
        data = encode_manifest_file(built.manifest, transaction, built.indices)
        return parse_manifest_file(data, expected_version=number)

    return Step(call, operation, transaction, before=before, apply=apply, guard=guard, properties=properties)


def transaction_message(
    operation: Operation, read_version: int, message: str | None, properties: Mapping[str, str] | None = None
) -> pb.Transaction:
    """A transaction with a new uuid. `read_version` is 0 for the first version of a table."""
    noted = {**(properties or {}), **({MESSAGE_PROPERTY: message} if message else {})}
    return encode_transaction(operation, read_version=read_version, properties=noted or None)


def compose(steps: Sequence[Step], message: str | None = None) -> Composition:
    """The transactions for the steps, relative to the version before the first one."""
    rest = _since_overwrite(steps)
    if not rest:
        return Composition(())
    guard = next((step.guard for step in rest if step.guard is not None), None)
    version = steps[0].transaction.read_version
    if len(rest) == 1:
        return Composition((transaction_message(rest[0].operation, version, message, rest[0].properties),), guard)
    composed: Operation | str | None
    if isinstance(rest[0].operation, Overwrite):
        composed = _one_overwrite(rest)
    elif len(rest) == len(steps):
        composed = _one_row_change(steps)
    else:
        composed = "a restore stands before other changes"
    if isinstance(composed, str):
        return Composition(tuple(step.transaction for step in steps), guard or composed)
    if composed is None:
        return Composition((), guard)
    return Composition((transaction_message(composed, version, message),), guard)


def _since_overwrite(steps: Sequence[Step]) -> Sequence[Step]:
    """The steps from the last overwrite on; all steps if there is a restore, whose config an overwrite keeps."""
    for place in range(len(steps) - 1, 0, -1):
        if isinstance(steps[place].operation, Restore):
            return steps
        if isinstance(steps[place].operation, Overwrite):
            if any(isinstance(step.operation, Restore) for step in steps[:place]):
                return steps
            return steps[place:]
    return steps


def _one_overwrite(steps: Sequence[Step]) -> Overwrite | str:
    first, last = steps[0].operation, steps[-1].after
    assert isinstance(first, Overwrite)
    reason = _beyond_rows(steps[1:])
    if reason is not None:
        return reason
    made = _fragments_made(steps)
    fragments: list[pb.DataFragment] = []
    for fragment in last.manifest.fragments:
        if fragment.HasField("deletion_file"):
            return "rows that the transaction wrote itself were changed again"
        fragments.append(made[fragment.id])
    return Overwrite(
        tuple(_without_row_ids(fragment) for fragment in fragments),
        first.schema,
        first.schema_metadata,
        first.config_upserts,
        first.initial_bases,
    )


def _one_row_change(steps: Sequence[Step]) -> Operation | str | None:
    """One Append, Delete or Update; None if nothing changed; or the reason why the steps cannot be composed."""
    base = steps[0].before
    if base is None:
        return "the table has no version yet"
    reason = _beyond_rows(steps) or _mixed_keys([step.operation for step in steps])
    if reason is not None:
        return reason
    made = _fragments_made(steps)
    old = {fragment.id: fragment for fragment in base.manifest.fragments}
    updated: list[pb.DataFragment] = []
    new: list[pb.DataFragment] = []
    for fragment in steps[-1].after.manifest.fragments:
        before = old.pop(fragment.id, None)
        if before is None:
            if fragment.HasField("deletion_file"):
                return "rows that the transaction wrote itself were changed again"
            new.append(made[fragment.id])
        elif before != fragment:
            updated.append(fragment)
    if has_stable_row_ids(base.manifest) and any(_has_fresh_row(fragment, base) for fragment in new):
        return "rows that the transaction wrote itself were changed again"
    return _row_change([step.operation for step in steps], updated, sorted(old), new, base)


def _row_change(
    operations: Sequence[Operation],
    updated: Sequence[pb.DataFragment],
    removed: Sequence[int],
    new: Sequence[pb.DataFragment],
    base: ManifestFile,
) -> Operation | None:
    updates = [operation for operation in operations if isinstance(operation, Update)]
    if not updated and not removed and not updates:
        return Append(tuple(new)) if new else None
    if not new and not updates:
        predicates = [operation.predicate for operation in operations if isinstance(operation, Delete)]
        return Delete(tuple(updated), tuple(removed), " OR ".join(f"({text})" for text in predicates))
    if not updated and not removed and not new:
        return None
    # Appended rows are in no index, so no index may cover the fragments that hold them.
    appends = any(isinstance(operation, Append) for operation in operations)
    fields = {field.id for field in base.manifest.fields} if appends else set()
    fields.update(field for update in updates for field in update.value_fields)
    return Update(
        updated=tuple(updated),
        removed_ids=tuple(removed),
        new=tuple(new),
        value_fields=tuple(sorted(fields)),
        inserted_keys=_joined_keys(updates),
    )


def _beyond_rows(steps: Sequence[Step]) -> str | None:
    for step in steps:
        operation = step.operation
        if not isinstance(operation, (Append, Delete, Update)):
            return f"{step.call} goes with other changes of the table"
        if isinstance(operation, Update) and operation.rewrites_columns:
            return f"{step.call} rewrote columns in place, beside other changes of the table"
    return None


def _mixed_keys(operations: Sequence[Operation]) -> str | None:
    """The reason why the claims of inserted keys cannot be joined; None if they can, or if there are none."""
    claims = [op.inserted_keys for op in operations if isinstance(op, Update) and op.inserted_keys is not None]
    if not claims:
        return None
    if any(list(claim.field_ids) != list(claims[0].field_ids) for claim in claims):
        return "rows were merged on different keys"
    writers = [operation for operation in operations if not isinstance(operation, Delete)]
    if len(writers) > len(claims):
        return "rows were merged by key, and others written without"
    return None


def _joined_keys(updates: Sequence[Update]) -> pb.Transaction.KeyExistenceFilter | None:
    claims = [update.inserted_keys for update in updates if update.inserted_keys is not None]
    if not claims:
        return None
    joined = pb.Transaction.KeyExistenceFilter(field_ids=claims[0].field_ids)
    joined.exact.key_hashes.extend(sorted({key for claim in claims for key in claim.exact.key_hashes}))
    return joined


def _fragments_made(steps: Sequence[Step]) -> Mapping[int, pb.DataFragment]:
    """The new fragments of all steps as their transactions describe them, by their local ids."""
    made: dict[int, pb.DataFragment] = {}
    for step in steps:
        first = 0 if step.before is None else next_fragment_id(step.before.manifest)
        match step.operation:
            case Append(fragments=added) | Update(new=added) | Overwrite(fragments=added):
                made.update(enumerate(added, first))
    return made


def _has_fresh_row(fragment: pb.DataFragment, base: ManifestFile) -> bool:
    """Whether a new fragment holds a moved row that is not in the base version, so that its id is only local."""
    return any(int(number) >= base.manifest.next_row_id for number in row_ids(fragment))


def _without_row_ids(fragment: pb.DataFragment) -> pb.DataFragment:
    copy = pb.DataFragment()
    copy.CopyFrom(fragment)
    copy.ClearField("inline_row_ids")
    copy.ClearField("external_row_ids")
    return copy


def join_parts(parts: Sequence[TransactionCommit], name: str) -> TransactionCommit:
    """One commit of the rows of all parts of a table, in their order, whose transaction has the uuid `name`.

    Each part appends rows, or each replaces all rows: then their rows are the table. It is built on the lowest version
    that a part was written for, so that each part is compared with all commits since its own. Raises `InvalidCall` for
    parts that make no one version, and where there is none.
    """
    if not parts:
        raise InvalidCall("expected at least one part, found none")
    first = min(parts, key=lambda part: part.transaction.read_version)
    for part in parts:
        is_alike = (part.location, part.branch, part.stable_row_ids, part.data_storage_version) == (
            (first.location, first.branch, first.stable_row_ids, first.data_storage_version)
        )
        replaced = (
            part.transaction.read_version == first.transaction.read_version
            and part.manifest_sha256 != first.manifest_sha256
        )
        if replaced or not is_alike:
            raise _differ("tables")
    operations = [decode_operation(part.transaction) for part in parts]
    appends = [each for each in operations if isinstance(each, Append)]
    overwrites = [each for each in operations if isinstance(each, Overwrite)]
    joined: Append | Overwrite
    if len(appends) == len(parts):
        joined = Append(_fragments(appends))
    elif len(overwrites) == len(parts):
        if any(replace(each, fragments=()) != replace(overwrites[0], fragments=()) for each in overwrites):
            raise _differ("schemas")
        joined = replace(overwrites[0], fragments=_fragments(overwrites))
    else:
        raise InvalidCall("parts: expected all of them to append rows, or all to be the table, found both; begin anew")
    transaction = encode_transaction(joined, read_version=first.transaction.read_version, uuid=name)
    return replace(first, transaction=transaction)


def _fragments(operations: Sequence[Append] | Sequence[Overwrite]) -> tuple[pb.DataFragment, ...]:
    return tuple(chain.from_iterable(each.fragments for each in operations))


def _differ(what: str) -> InvalidCall:
    return InvalidCall(f"parts: expected those of one table with one schema, found different {what}; begin anew")

"""The rows that each version of a table added or changed, by its transaction and its manifest.

Every version after the first one is one transaction. Rows that it added or moved are in fragments that the version
before it does not have. A compaction has such fragments, too, and adds no rows. Deleted rows, and rows as they were
before an update, are found by the stable ids of rows and read at the version before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from lance_core.errors import LanceCoreError
from lance_core.format.deletion import live_row_count
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.features import has_stable_row_ids
from lance_core.transaction.operations import Update, decode_operation
from lance_core.transaction.row_ids import creation_versions
from table_data.change_feed.changes_by_id import changes_by_id, require_columns
from table_data.change_feed.policy import ChangePolicy, refuse
from table_data.change_feed.version_changes import ADDS_NO_ROWS, ReadAt, VersionChanges, kind_of, of_fragments
from table_data.change_feed.versions import PublishedVersion, read_published
from table_data.errors import InvalidCall, VersionGone


class LastVersion(Protocol):
    """The version that changes are read up to, of the table or branch with the root `uri`.

    `committed_ms` is when it was committed, in milliseconds since the epoch; None if that is not known.
    """

    @property
    def uri(self) -> str:
        """URI of the root."""
        ...

    @property
    def version(self) -> int:
        """Its number."""
        ...

    @property
    def storage_options(self) -> Mapping[str, str]:
        """Options of Lance for the object store."""
        ...

    @property
    def committed_ms(self) -> int | None:
        """When it was committed."""
        ...


def changes_between(
    name: str,
    table: LastVersion,
    start: ReadAt | int,
    policy: ChangePolicy,
    columns: pa.Schema | None = None,
) -> Iterator[VersionChanges]:
    """The changes of the versions after `start`, up to that of `table`.

    Args:
        name: Name of the table, for messages.
        table: The table at the last version.
        start: Version whose rows are known, or its number; 0 for none.
        policy: What updates, deletions and overwrites mean.
        columns: Columns that all of these versions must have, for rows that are read at each of them.

    Yields:
        Changes of one version, for versions with such rows, in order.

    Raises:
        VersionGone: A version was cleaned up, or the first or the last one was replaced by another one.
        InvalidCall: A version does what the policy does not allow or has other columns, its transaction cannot be
            found, or its changes need stable row ids and the table has none.
    """
    known = start if isinstance(start, ReadAt) else ReadAt(start, None)
    before = _open(name, table, known) if known.version else None
    for version in range(known.version + 1, table.version + 1):
        is_last = version == table.version
        after = _open(name, table, ReadAt(version, table.committed_ms if is_last else None))
        label = f"{name}: version {version}"
        if columns is not None:
            require_columns(name, columns, *filter(None, (before, after)))
        if policy.needs_row_ids:
            found = changes_by_id(label, after, before, policy)
        else:
            read = None if before is None else before.manifest
            found = list(filter(None, [classify(label, after.manifest, read, after.transaction, policy)]))
        yield from (changed for changed in found if changed.rows)
        before = after


def classify(
    name: str,
    after: pb.Manifest,
    before: pb.Manifest | None,
    transaction: pb.Transaction | None,
    policy: ChangePolicy,
) -> VersionChanges | None:
    """The rows of one version. Pure.

    Args:
        name: Name of the version, for messages.
        after: Manifest of the version.
        before: Manifest of the version before it, None for the first one.
        transaction: Transaction of the version, None if it is lost.
        policy: What updates, deletions and overwrites mean.

    Returns:
        The fragments with the rows, None if the version changes no rows or they are ignored.

    Raises:
        InvalidCall: The version does what the policy does not allow.
    """
    if before is None:
        return of_fragments(after, after.fragments, "insert")
    kind = kind_of(transaction)
    if kind in ADDS_NO_ROWS:
        return None
    known = {fragment.id for fragment in before.fragments}
    new = [fragment for fragment in after.fragments if fragment.id not in known]
    match kind:
        case "append":
            return of_fragments(after, new, "insert")
        case "update":
            assert transaction is not None
            operation = decode_operation(transaction)
            assert isinstance(operation, Update)
            return _update(name, after, before, new, operation, policy)
        case "delete":
            refuse(policy.deletes, name, "deletes rows", "deletes", "rows")
        case "overwrite" | "restore":
            refuse(policy.overwrites, name, f"replaces all rows ({kind})", "overwrites", "rows")
        case "data_replacement" | "data_overlay":
            refuse(policy.updates, name, f"changes columns in place ({kind})", "updates")
        case _:
            raise InvalidCall(f"{name}: expected a transaction that states its changes, found {kind or 'none'}")
    return None


def _update(
    name: str,
    after: pb.Manifest,
    before: pb.Manifest,
    new: Sequence[pb.DataFragment],
    operation: Update,
    policy: ChangePolicy,
) -> VersionChanges | None:
    stable = has_stable_row_ids(after)
    if operation.rewrites_columns:
        return _rewritten(name, after, operation, policy, stable=stable)
    kept = {fragment.id: live_row_count(fragment) for fragment in after.fragments}
    removed = sum(live_row_count(fragment) - kept.get(fragment.id, 0) for fragment in before.fragments)
    added = sum(map(live_row_count, new))
    if not stable:
        return _without_ids(name, after, new, policy, changes=bool(added and removed), deletes=bool(removed))
    inserted = sum(int(np.count_nonzero(creation_versions(fragment) == after.version)) for fragment in new)
    moved = added - inserted
    if removed > moved:
        refuse(policy.deletes, name, "deletes rows", "deletes", "rows")
    if not moved:
        return of_fragments(after, new, "insert")
    refuse(policy.updates, name, "updates rows", "updates", "rows")
    if policy.updates == "rows":
        return of_fragments(after, new, "by creation")
    return of_fragments(after, new, "created") if inserted else None


def _rewritten(
    name: str, after: pb.Manifest, operation: Update, policy: ChangePolicy, *, stable: bool
) -> VersionChanges | None:
    """The changes of an update that writes columns of fragments again, in place."""
    if policy.updates == "rows" and not stable:
        raise InvalidCall(f"{name}: changes columns in place: expected stable row ids, which identify the rows")
    if policy.updates != "rows":
        refuse(policy.updates, name, "updates rows", "updates")
        return None
    changed = {fragment.id for fragment in operation.updated}
    return of_fragments(after, [fragment for fragment in after.fragments if fragment.id in changed], "rewritten")


def _without_ids(
    name: str,
    after: pb.Manifest,
    new: Sequence[pb.DataFragment],
    policy: ChangePolicy,
    *,
    changes: bool,
    deletes: bool,
) -> VersionChanges:
    """The changes of an update whose new rows may be changed or inserted ones."""
    if changes:
        if policy.updates == "ignore":
            raise InvalidCall(
                f"{name}: updates and perhaps inserts rows, which only stable row ids separate: expected option "
                "updates=rows"
            )
        refuse(policy.updates, name, "updates rows", "updates", "rows")
        return of_fragments(after, new, "upsert")
    if deletes:
        refuse(policy.deletes, name, "deletes rows", "deletes", "rows")
    return of_fragments(after, new, "insert")


def refuse_replaced(name: str, known: ReadAt, newest: ReadAt) -> None:
    """Raise `InvalidCall` if the newest version shows that the version whose rows are known was replaced.

    A table that is no longer registered may get other files, and be registered again at the same location. One with
    more versions than the known one shows it when the known version is read.
    """
    is_other = known.version == newest.version and None not in {known.committed_ms, newest.committed_ms}
    if known.version > newest.version or (is_other and known != newest):
        raise InvalidCall(
            f"{name}: expected version {known.version} as it was committed at {known.committed_ms} ms, or a later one, "
            f"found version {newest.version} of {newest.committed_ms} ms: another table took its place; start again "
            "without a checkpoint"
        )


def _open(name: str, table: LastVersion, read: ReadAt) -> PublishedVersion:
    version = read.version
    try:
        found = read_published(name, table.uri, version, table.storage_options)
    except VersionGone as error:
        raise VersionGone(
            f"{name}: version {version} was cleaned up before it was read, expected all versions up to "
            f"{table.version}; start again without a checkpoint, or from a later version"
        ) from error
    except LanceCoreError as error:
        raise InvalidCall(f"{name}: version {version}: {error}") from error
    if read.committed_ms not in {None, found.file.timestamp_ms}:
        raise VersionGone(
            f"{name}: version {version} was replaced by another one: expected one that was committed at "
            f"{read.committed_ms} ms, found {found.file.timestamp_ms} ms; start again without a checkpoint"
        )
    return found

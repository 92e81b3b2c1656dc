"""Which rows each version of a table added or changed, told by its transaction and its manifest.

Every version after the first one is one transaction. Rows that it added or moved are in fragments that the version
before it does not have. A compaction has such fragments, too, and adds no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from lance_core.errors import LanceCoreError, ReferenceNotFound
from lance_core.proto import lance_table_pb2 as pb
from lance_core.tables.dataset import Dataset
from lance_core.transaction.features import has_stable_row_ids
from lance_core.transaction.operations import Update, decode_operation
from lance_core.transaction.row_ids import creation_versions
from spark_catalog.streaming.policy import ChangePolicy
from spark_catalog.tables.row_counts import rows_in, rows_of
from table_data.errors import InvalidCall, VersionGone

Selection = Literal["insert", "upsert", "by creation", "created", "rewritten"]

_ADDS_NO_ROWS: Final = frozenset(
    {
        *("rewrite", "reserve_fragments", "create_index", "update_config", "project", "merge", "update_bases"),
        "update_mem_wal_state",
    }
)


@dataclass(frozen=True, slots=True)
class ChangedFragment:
    """A fragment that holds changed rows: its id, its rows without deleted ones, and the bytes of its files."""

    id: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """Rows that a version added or changed.

    Attributes:
        version: Number of the version, which the rows are read at.
        fragments: The fragments that hold them.
        selection: Which rows of the fragments, and their type of change. "insert" and "upsert": all rows, the latter
            inserted or updated. "by creation": all rows; those created by the version are inserted, the others
            updated. "created": those created by the version. "rewritten": those last changed by the version, updated.
    """

    version: int
    fragments: tuple[ChangedFragment, ...]
    selection: Selection

    @property
    def rows(self) -> int:
        """Upper bound of the number of rows."""
        return sum(fragment.rows for fragment in self.fragments)


def changes_between(
    name: str,
    uri: str,
    start: int,
    end: int,
    policy: ChangePolicy,
    storage_options: Mapping[str, str],
) -> Iterator[VersionChanges]:
    """The changes of the versions after `start`, up to `end`.

    Args:
        name: Name of the table, for messages.
        uri: Root of the table.
        start: Version whose rows are known, 0 for none.
        end: Last version.
        policy: What updates, deletions and overwrites mean.
        storage_options: Options of Lance for the object store.

    Yields:
        The changes of one version, for versions with such rows, in order.

    Raises:
        VersionGone: A version was cleaned up.
        InvalidCall: A version does what the policy does not allow, or its transaction cannot be found.
    """
    before = None if start == 0 else _open(name, uri, start, storage_options, end)
    for version in range(start + 1, end + 1):
        after = _open(name, uri, version, storage_options, end)
        known = None if before is None else before.manifest
        changed = classify(f"{name}: version {version}", after.manifest, known, after.transaction, policy)
        if changed is not None and changed.rows:
            yield changed
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
        return _changes(after, after.fragments, "insert")
    kind = None if transaction is None else transaction.WhichOneof("operation")
    if kind in _ADDS_NO_ROWS:
        return None
    known = {fragment.id for fragment in before.fragments}
    new = [fragment for fragment in after.fragments if fragment.id not in known]
    match kind:
        case "append":
            return _changes(after, new, "insert")
        case "update":
            assert transaction is not None
            operation = decode_operation(transaction)
            assert isinstance(operation, Update)
            return _update(name, after, before, new, operation, policy)
        case "delete":
            _refuse(policy.deletes, name, "deletes rows", "deletes")
        case "overwrite" | "restore":
            _refuse(policy.overwrites, name, f"replaces all rows ({kind})", "overwrites")
        case "data_replacement" | "data_overlay":
            _refuse(policy.updates, name, f"changes columns in place ({kind})", "updates")
        case _:
            raise InvalidCall(f"{name}: expected a transaction that tells what it did, found {kind or 'none'}")
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
        changed = {fragment.id for fragment in operation.updated}
        if policy.updates == "rows" and not stable:
            raise InvalidCall(f"{name}: changes columns in place: expected stable row ids, which tell the rows")
        if policy.updates != "rows":
            _refuse(policy.updates, name, "updates rows", "updates")
            return None
        return _changes(after, [fragment for fragment in after.fragments if fragment.id in changed], "rewritten")
    kept = {fragment.id: rows_in(fragment) for fragment in after.fragments}
    removed = sum(rows_in(fragment) - kept.get(fragment.id, 0) for fragment in before.fragments)
    added = rows_of(new)
    if not stable:
        if added and removed:
            if policy.updates == "ignore":
                raise InvalidCall(
                    f"{name}: updates and perhaps inserts rows, which only stable row ids tell apart: expected option "
                    "updates=rows"
                )
            _refuse(policy.updates, name, "updates rows", "updates", "rows")
            return _changes(after, new, "upsert")
        if removed:
            _refuse(policy.deletes, name, "deletes rows", "deletes")
        return _changes(after, new, "insert")
    inserted = sum(int(np.count_nonzero(creation_versions(fragment) == after.version)) for fragment in new)
    moved = added - inserted
    if removed > moved:
        _refuse(policy.deletes, name, "deletes rows", "deletes")
    if not moved:
        return _changes(after, new, "insert")
    _refuse(policy.updates, name, "updates rows", "updates", "rows")
    if policy.updates == "rows":
        return _changes(after, new, "by creation")
    return _changes(after, new, "created") if inserted else None


def _refuse(policy: str, name: str, does: str, option: str, *also: str) -> None:
    if policy not in ("ignore", *also):
        allowed = " or ".join(f"{option}={value}" for value in ("ignore", *also))
        raise InvalidCall(f"{name}: {does}: expected only added rows, or option {allowed}")


def _changes(manifest: pb.Manifest, fragments: Sequence[pb.DataFragment], selection: Selection) -> VersionChanges:
    changed = tuple(
        ChangedFragment(fragment.id, rows_in(fragment), sum(file.file_size_bytes for file in fragment.files))
        for fragment in fragments
    )
    return VersionChanges(manifest.version, changed, selection)


def _open(name: str, uri: str, version: int, storage_options: Mapping[str, str], end: int) -> Dataset:
    try:
        return Dataset.open(uri, version, storage_options=storage_options)
    except ReferenceNotFound as error:
        raise VersionGone(
            f"{name}: version {version} was cleaned up before it was read, expected all versions up to {end}; "
            "start again without a checkpoint, or from a later version"
        ) from error
    except LanceCoreError as error:
        raise InvalidCall(f"{name}: version {version}: {error}") from error

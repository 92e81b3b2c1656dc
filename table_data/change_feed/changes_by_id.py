"""Changes of a version that only stable row ids identify: deleted rows, and rows as they were before an update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import pyarrow as pa

from lance_core.format.deletion import live_row_count
from lance_core.transaction.features import has_stable_row_ids
from table_data.change_feed.columns import FeedColumns
from table_data.change_feed.policy import ChangePolicy, refuse
from table_data.change_feed.row_differences import ChangeType, DifferentRows, differences
from table_data.change_feed.version_changes import (
    ADDS_NO_ROWS,
    ChangedFragment,
    ReadAt,
    VersionChanges,
    bytes_of,
    kind_of,
    milliseconds,
    of_fragments,
)
from table_data.change_feed.versions import PublishedVersion
from table_data.errors import InvalidCall

_READ_BEFORE: Final = frozenset({"delete", "update_preimage"})


def changes_by_id(
    name: str,
    after: PublishedVersion,
    before: PublishedVersion | None,
    policy: ChangePolicy,
    columns: FeedColumns | None = None,
) -> list[VersionChanges]:
    """The rows of one version, with deleted ones, and those before an update if the policy asks for them.

    Args:
        name: Name of the version, for messages.
        after: The version.
        before: The version before it, None for the first one.
        policy: What updates, deletions and overwrites mean.
        columns: The columns whose values count, where versions may have others. A version that adds one with values
            updates all rows. All columns if None.

    Returns:
        Changes by type and fragment; none if the version changes no rows or they are ignored.

    Raises:
        InvalidCall: The version does what the policy does not allow, or the table has no stable row ids.
    """
    require_row_ids(name, after)
    if before is None:
        return _by_type(differences(name, after.manifest, None, after.deleted_rows, after.deleted_rows), after, after)
    require_row_ids(name, before)
    kind = kind_of(after.transaction)
    introduces = columns is not None and columns.introduces_values(after, before)
    if kind in ADDS_NO_ROWS:
        if introduces:
            return _all_updated(after, before)
        # A merge that keeps the columns replaces values.
        if kind != "merge" or (columns is None and after.schema != before.schema):
            return []
    replaces_all = kind in ("overwrite", "restore")
    if replaces_all:
        refuse(policy.overwrites, name, f"replaces all rows ({kind})", "overwrites", "rows")
        if policy.overwrites == "ignore":
            return []
    found = differences(
        name,
        after.manifest,
        before.manifest,
        after.deleted_rows,
        before.deleted_rows,
        fields=None if columns is None else columns.fields,
        updates_all=introduces,
    )
    types = {rows.type for rows in found}
    if "delete" in types and not replaces_all:
        refuse(policy.deletes, name, "deletes rows", "deletes", "rows")
    if "update_postimage" in types and not replaces_all:
        refuse(policy.updates, name, "updates rows", "updates", "rows")
    left_out: set[ChangeType] = set() if policy.has_images else {"update_preimage"}
    left_out |= {"delete"} if policy.deletes == "ignore" and not replaces_all else set()
    left_out |= {"update_postimage"} if policy.updates == "ignore" and not replaces_all else set()
    kept = [rows for rows in found if rows.type not in left_out]
    return _by_type(kept, after, before, has_images=policy.has_images)


def require_columns(name: str, columns: pa.Schema, *versions: PublishedVersion) -> None:
    """Raise `InvalidCall` for a version whose columns or their types are others than `columns`."""
    wanted = [(field.name, field.type) for field in columns]
    for version in versions:
        if [(field.name, field.type) for field in version.schema] != wanted:
            raise InvalidCall(
                f"{name}: version {version.version} has columns {_listed(version.schema)}: expected those of the last "
                f"version of the range, {_listed(columns)}; read changes on either side of the change of columns"
            )


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def require_row_ids(name: str, version: PublishedVersion) -> None:
    """Raise `InvalidCall` for a version whose rows have no stable ids."""
    if not has_stable_row_ids(version.manifest):
        raise InvalidCall(
            f"{name}: expected stable row ids, which identify rows before a change, found none; a table "
            "has them if it was created with the property lance.stable_row_ids, or with stable_row_ids=True"
        )


def _all_updated(after: PublishedVersion, before: PublishedVersion) -> list[VersionChanges]:
    """All rows, as they were before and after a version that adds values and changes no rows. Without a look at ids."""
    milliseconds_of = milliseconds(after.manifest)
    sides: tuple[tuple[PublishedVersion, ChangeType], ...] = ((before, "update_preimage"), (after, "update_postimage"))
    return [
        replace(
            of_fragments(side.manifest, side.manifest.fragments, kind), version=after.version, timestamp=milliseconds_of
        )
        for side, kind in sides
    ]


def _by_type(
    found: Sequence[DifferentRows], after: PublishedVersion, before: PublishedVersion, *, has_images: bool = False
) -> list[VersionChanges]:
    return [
        VersionChanges(
            after.version,
            ReadAt.of((before if kind in _READ_BEFORE else after).manifest),
            milliseconds(after.manifest),
            tuple(map(_fragment, rows)),
            "update" if kind == "update_postimage" and not has_images else kind,
        )
        for kind, rows in groupby(found, key=lambda rows: rows.type)
    ]


def _fragment(rows: DifferentRows) -> ChangedFragment:
    fragment, live = rows.fragment, live_row_count(rows.fragment)
    if rows.ids is None:
        return ChangedFragment(fragment.id, live, bytes_of(fragment))
    share = -(-bytes_of(fragment) * len(rows.ids) // max(1, live))
    return ChangedFragment(fragment.id, len(rows.ids), share, rows.ids.astype("<u8").tobytes(), live)

"""A branch beside main: what it changed since it began, whether main can take that, and the operation that does.

Three manifests decide: that of the version at which the branch began, the newest of main and of the branch. Rows and
columns are taken, indices and settings are not. A branch is taken once: the transaction names it, and main is searched
for that, since rows that are appended again would be there twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_core.errors import LanceCoreError, UnsupportedFeature
from lance_core.format.blobs import is_blob
from lance_core.format.deletion import live_row_count
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import MAIN_BRANCH, data_path
from lance_core.format.refs import BranchContents
from lance_core.proto import lance_table_pb2 as pb
from lance_core.tables.branches import Branches
from lance_core.transaction.fields import TOMBSTONE
from lance_core.transaction.net_change import NetChange, column_files, fields_by_id, net_change, top_names
from lance_core.transaction.operations import Append, Delete, Merge, Update
from table_data.errors import ClientError, InvalidCall, VersionGone
from table_data.staging.matching import ROW_ID
from table_data.staging.rows import stage_rows, with_row_ids

if TYPE_CHECKING:
    from table_data.table_changes import TableChanges

Body = dict[str, Any]
Obstacle = tuple[str, str]
"""Why a branch cannot be taken: a code, and words."""

NOT_IMPLEMENTED: Final = "not_implemented"
"""The code of an obstacle that is one of this server alone."""
PICKED: Final = "lance_namespace.cherry_pick"
"""The property of a transaction that names the branch, as `BranchComparison.mark` does, whose changes it takes."""
_KNOWN: Final = "ready"
_MOST_SEARCHED: Final = 10_000
"""Versions of main that are searched for one that took the branch: each is a manifest to read."""


@dataclass
class BranchComparison:
    """Main, a branch, and the version at which the branch began; `base` is None if that is not one of main."""

    name: str
    mark: str
    parent_version: int
    main: TableChanges
    branch: TableChanges
    base: ManifestFile | None

    @cached_property
    def head(self) -> ManifestFile:
        """The newest version of main."""
        return self.main.require_head()

    @cached_property
    def tip(self) -> ManifestFile:
        """The newest version of the branch."""
        return self.branch.require_head()

    @cached_property
    def ours(self) -> NetChange:
        """What the branch changed."""
        return net_change(self._base, self.tip)

    @cached_property
    def theirs(self) -> NetChange:
        """What main changed meanwhile."""
        return net_change(self._base, self.head)

    @cached_property
    def gone(self) -> dict[int, BitMap]:
        """The rows that the branch deleted or replaced, by the fragments of the version at which it began."""
        return self._gone(self.ours, self.branch, self.tip)

    @cached_property
    def gone_from_main(self) -> dict[int, BitMap]:
        """Likewise of main."""
        return self._gone(self.theirs, self.main, self.head)

    @property
    def _base(self) -> ManifestFile:
        assert self.base is not None, "a branch of another branch is not compared with main"
        return self.base

    def _gone(self, change: NetChange, line: TableChanges, file: ManifestFile) -> dict[int, BitMap]:
        base = self._base
        before = {fragment.id: fragment for fragment in base.manifest.fragments}
        found: dict[int, BitMap] = {}
        for fragment in change.deletions:
            deleted = line.files.deleted_rows(file.outline, fragment)
            found[fragment.id] = deleted - self.main.files.deleted_rows(base.outline, before[fragment.id])
        for number in change.removed_ids:
            rows = BitMap(range(before[number].physical_rows))
            found[number] = rows - self.main.files.deleted_rows(base.outline, before[number])
        return {number: rows for number, rows in found.items() if rows}

    @cached_property
    def obstacles(self) -> list[Obstacle]:
        """Why main cannot take what the branch changed; none if it can."""
        if self.base is None:
            return [("parent_not_main", f"branch {self.name} began at another branch: expected one of main")]
        if (taken := self._taken()) is not None:
            return [taken]
        found = [*self._obstacles_of_branch(), *self._obstacles_of_main()]
        if not found and not (self.ours.changes_rows or self.ours.changes_fields):
            found.append(("nothing_to_apply", f"branch {self.name} has the rows and columns that it began with"))
        return found

    def _taken(self) -> Obstacle | None:
        """That main has taken the branch, or may have: a version is gone that would say so."""
        since = range(self.parent_version + 1, self.head.version + 1)
        if len(since) > _MOST_SEARCHED:
            return "base_moved", f"main has {len(since)} versions since {self.parent_version}, too many to look through"
        transactions = dict(zip(since, self.main.store.map(self._transaction, since), strict=True))
        number = self.head.version
        while number > self.parent_version:
            transaction = transactions[number]
            if transaction is None:
                return "base_moved", f"whether main took this branch is not known: version {number} was removed"
            if transaction.transaction_properties.get(PICKED) == self.mark:
                return "nothing_to_apply", f"main took branch {self.name} in version {number}: begin another branch"
            number = transaction.restore.version if transaction.HasField("restore") else number - 1
        return None

    def _transaction(self, number: int) -> pb.Transaction | None:
        """The transaction of a version of main, empty if that does not have it; None if the version is gone."""
        try:
            file = self.head if number == self.head.version else self.main.version(number)
        except VersionGone:
            return None
        return file.transaction or pb.Transaction()

    def _obstacles_of_branch(self) -> Iterator[Obstacle]:
        ours, old, new = self.ours, fields_by_id(self._base), fields_by_id(self.tip)
        if ours.removed_fields:
            yield "column_removed", f"the branch has no columns {top_names(ours.removed_fields, old)}"
        if ours.changed_fields:
            changed = top_names((field for field, _ in ours.changed_fields), old)
            yield "column_changed", f"the branch has other definitions of columns {changed}"
        if ours.added_fields and any(field.parent_id in old for field in ours.added_fields):
            yield "column_changed", f"columns {top_names(ours.added_fields, new)} got new parts"
        if ours.rewritten_ids:
            yield "rows_changed", f"values of {len(ours.rewritten_ids)} fragments were written anew in their places"
        elif ours.added_fields and ours.changes_rows:
            yield "rows_changed", "the branch has new columns, and other rows: expected one or the other"
        written = self.tip.outline.fields if ours.new_fragments else ours.added_fields
        if any(map(is_blob, written)):
            yield NOT_IMPLEMENTED, "blobs of a branch are not copied to main"

    def _obstacles_of_main(self) -> Iterator[Obstacle]:
        ours, theirs, since = self.ours, self.theirs, f"main changed since version {self.parent_version}"
        if theirs.changes_fields:
            yield "base_moved", f"{since}: it has other columns"
            return
        if ours.added_fields:
            if theirs.new_fragments or theirs.removed_ids or theirs.rewritten_ids:
                yield "base_moved", f"{since}: it has rows, or places of rows, for which the branch has no values"
            return
        touched = self.gone.keys()
        lost = touched & {*theirs.removed_ids, *theirs.rewritten_ids}
        both = [number for number in touched - lost if self.gone[number] & self.gone_from_main.get(number, BitMap())]
        if lost or both:
            yield "base_moved", f"{since}: rows that the branch changed, of fragments {sorted({*lost, *both})[:10]}"
        elif ours.new_fragments and theirs.new_fragments and self._inserts_by_key:
            yield "base_moved", f"{since}: keys that a merge inserted on the branch may be there"

    @property
    def _inserts_by_key(self) -> bool:
        """Whether a merge on the branch inserted rows by key, or may have: where a version is gone."""
        for number in range(self.parent_version + 1, self.tip.version + 1):
            try:
                transaction = self.branch.version(number).transaction
            except (LanceCoreError, ClientError):
                return True
            if transaction is None or transaction.update.HasField("inserted_rows"):
                return True
        return False

    def body(self) -> Body:
        """The comparison as JSON."""
        has_base = self.base is not None
        return {
            "from_branch": self.name,
            "parent_version": self.parent_version,
            "main_version": self.head.version,
            "branch_version": self.tip.version,
            "base_moved": not has_base or self.head.version != self.parent_version,
            "row_count_main": _rows(self.head.manifest.fragments),
            "row_count_branch": _rows(self.tip.manifest.fragments),
            "row_summary": {
                "unchanged": self._unchanged() if has_base else 0,
                "new_on_base": _rows(self.theirs.new_fragments) if has_base else 0,
                "new_on_branch": _rows(self.ours.new_fragments) if has_base else 0,
                "stale_recompute": 0,
                "inputs_changed": 0,
                "delta_available": has_base,
            },
            **self._columns(),
            **self._indexes(),
            "errors": [{"code": code, "message": message} for code, message in self.obstacles],
        }

    def _unchanged(self) -> int:
        gone = {number: BitMap(rows) for number, rows in self.gone.items()}
        for number, rows in self.gone_from_main.items():
            gone[number] = gone.get(number, BitMap()) | rows
        return _rows(self._base.manifest.fragments) - sum(map(len, gone.values()))

    def _columns(self) -> Body:
        main, branch = (_columns_of(file) for file in (self.head, self.tip))
        both = main.keys() & branch.keys()
        return {
            "added_columns": [each for name, each in branch.items() if name not in both],
            "removed_columns": [each for name, each in main.items() if name not in both],
            "changed_columns": [
                {"name": name, "main": main[name], "branch": branch[name]}
                for name in main
                if name in both and main[name] != branch[name]
            ],
        }

    def _indexes(self) -> Body:
        main, branch = (_indexes_of(file) for file in (self.head, self.tip))
        return {
            "added_indexes": [each for name, each in branch.items() if name not in main],
            "removed_indexes": [each for name, each in main.items() if name not in branch],
        }

    def preview(self) -> Body:
        """What main would get."""
        added = top_names(self.ours.added_fields, fields_by_id(self.tip))
        deleted = sum(map(len, self.gone.values()))
        return {
            "promoted_columns": added,
            "num_new_rows": _rows(self.ours.new_fragments),
            "num_deleted_rows": deleted,
        }


def compare_branch(main: TableChanges, branch: TableChanges) -> BranchComparison:
    """Compare a branch with main. Raises `InvalidCall` for others, `ReferenceNotFound`, `VersionGone`."""
    name = branch.state.branch
    if main.state.branch is not None or name is None:
        line = main.state.branch or MAIN_BRANCH
        raise InvalidCall(f"from_branch: expected a branch beside main, found {name or MAIN_BRANCH} beside {line}")
    contents = Branches(main.store, "").get(name)
    base = main.version(contents.parent_version) if contents.parent_branch in {None, MAIN_BRANCH} else None
    return BranchComparison(name, _mark(name, contents), contents.parent_version, main, branch, base)


def _mark(name: str, contents: BranchContents) -> str:
    """A text that no other branch has, also none of the same name before or after."""
    own = contents.identifier[-1][1] if contents.identifier else str(contents.created_at)
    return f"{name} {contents.parent_version} {own}"


def stage_branch(found: BranchComparison) -> Append | Delete | Update | Merge:
    """Write what a branch changed, which main can take, as files of main; the operation that takes it.

    New rows are written anew: with what is deleted of them left out, and in a table with stable row ids with the ids
    that they had on main before. Files of new columns are copied, under names of their own.
    """
    if found.ours.added_fields:
        return _stage_columns(found)
    new = _stage_new_rows(found) if found.ours.new_fragments else ()
    updated, removed = found.main.files.delete_rows(found.head.outline, found.gone)
    if not found.gone:
        return Append(new)
    if not new:
        return Delete(updated, removed)
    return Update(updated, removed, new, value_fields=tuple(sorted(fields_by_id(found.head))))


def _stage_new_rows(found: BranchComparison) -> tuple[pb.DataFragment, ...]:
    source, target = found.branch.dataset(), found.main.dataset()
    fragments = [source.get_fragment(fragment.id) for fragment in found.ours.new_fragments]
    names, first_fresh = target.schema.names, found.base.outline.next_row_id if found.base is not None else 0
    if not source.has_stable_row_ids:
        return stage_rows(target, source.scanner(columns=names, fragments=fragments).to_reader(), checked=True)
    moved: list[np.ndarray[Any, np.dtype[np.uint64]]] = []

    def rows(*, moves: bool) -> pa.RecordBatchReader:
        reader = source.scanner(columns=names, fragments=fragments, with_row_id=True).to_reader()

        def chosen() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                ids = batch.column(ROW_ID).to_numpy()
                wanted = (ids < first_fresh) == moves
                if moves:
                    moved.append(ids[wanted])
                yield batch.select(names).filter(pa.array(wanted))

        schema = pa.schema([reader.schema.field(name) for name in names], reader.schema.metadata)
        return pa.RecordBatchReader.from_batches(schema, chosen())

    kept = stage_rows(target, rows(moves=True), checked=True)
    fresh = stage_rows(target, rows(moves=False), checked=True)
    return (*with_row_ids(kept, np.concatenate(moved) if moved else np.empty(0, np.uint64)), *fresh)


def _stage_columns(found: BranchComparison) -> Merge:
    """New columns of the rows of main. Fragments are those of main, which may have lost rows since."""
    added = {fragment.id: column_files(fragment, found.ours.added_fields) for fragment in found.tip.manifest.fragments}
    fields, head = {field.id for field in found.ours.added_fields}, found.head.manifest
    copies: list[tuple[str, str]] = []
    fragments: list[pb.DataFragment] = []
    for before in head.fragments:
        fragment = pb.DataFragment()
        fragment.CopyFrom(before)
        for file in added[before.id]:
            source = found.branch.files.data_key(found.tip.outline, file)
            if source is None:
                raise UnsupportedFeature(f"data file {file.path} of branch {found.name} is in no root of this table")
            copy = fragment.files.add()
            copy.CopyFrom(file)
            copy.ClearField("base_id")
            copy.path = f"{uuid.uuid4().hex}.lance"
            _set_fields(copy, [field if field in fields else TOMBSTONE for field in file.fields])
            copies.append((source, data_path("", copy.path)))
        fragments.append(fragment)
    store = found.main.store
    store.map(lambda pair: store.copy(*pair, durable=False), copies)
    return Merge(tuple(fragments), tuple(found.tip.outline.fields))


def _set_fields(file: pb.DataFile, fields: Sequence[int]) -> None:
    del file.fields[:]
    file.fields.extend(fields)


def _rows(fragments: Iterable[pb.DataFragment]) -> int:
    return sum(map(live_row_count, fragments))


def _columns_of(file: ManifestFile) -> Mapping[str, Body]:
    """The columns of a version, by name. Their types are in Lance's own words."""
    return {
        field.name: {"name": field.name, "data_type": field.logical_type, "nullable": field.nullable}
        for field in file.outline.fields
        if field.parent_id == -1
    }


def _indexes_of(file: ManifestFile) -> Mapping[str, Body]:
    fields = fields_by_id(file)
    return {
        index.name: {
            "index_name": index.name,
            "columns": [fields[number].name for number in index.fields if number in fields],
            "status": _KNOWN,
        }
        for index in (file.indices.indices if file.indices is not None else ())
    }

"""Tables for tests of transactions and commits: made by pylance, read by both engines."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import lance
import pyarrow as pa
from lance.file import LanceFileWriter
from lance.fragment import DataFile

from lance_core.data import fragment_message
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import parse_manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.transaction.operations import Delete, Operation, Update, decode_operation
from tests.staged_fragments import stage_fragments

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("s", pa.string())])


def rows(start: int, stop: int) -> pa.Table:
    """`id` from `start` up to `stop`, `x` and `s` the same number in other types."""
    ids = list(range(start, stop))
    return pa.table([pa.array(ids, pa.int64()), [float(i) for i in ids], [str(i) for i in ids]], schema=SCHEMA)


@dataclass(frozen=True)
class Table:
    """A table called `t` in a directory that is a store of its own."""

    root: Path

    @property
    def store(self) -> LocalStore:
        return LocalStore(self.root, "none")

    @property
    def path(self) -> Path:
        return self.root / "t"

    @property
    def uri(self) -> str:
        return str(self.path)

    def open(self, version: int | None = None) -> lance.LanceDataset:
        return lance.dataset(self.uri, version=version)

    def branch(self, name: str) -> Table:
        """The branch as a table; its files are below the same store."""
        return BranchTable(self.root, name)

    def manifests(self) -> dict[int, ManifestFile]:
        """Every version by number, ascending; the name of each says the number that it contains."""
        found = {}
        for path in (self.path / "_versions").iterdir():
            parsed = parse_manifest_name(path.name)
            if parsed is not None:
                found[parsed[0]] = parse_manifest_file(path.read_bytes(), expected_version=parsed[0])
        return dict(sorted(found.items()))

    def head(self) -> ManifestFile:
        return list(self.manifests().values())[-1]

    def ids(self, version: int | None = None) -> list[int]:
        """The ids of all rows, ascending."""
        return sorted(self.open(version).to_table(columns=["id"]).column(0).to_pylist())

    def stage(self, table: pa.Table, mode: str = "append") -> tuple[pb.DataFragment, ...]:
        """Data files for rows of the table, as new fragments."""
        return tuple(stage_fragments(table, self.uri, mode=mode))

    def copy(self, to: Path) -> Table:
        """The table as it is, somewhere else."""
        shutil.copytree(self.root, to)
        return Table(to)


@dataclass(frozen=True)
class BranchTable(Table):
    name: str

    @property
    def path(self) -> Path:
        return self.root / "t" / "tree" / self.name


def make_table(root: Path, *fragments: tuple[int, int], stable_row_ids: bool = False, v2: bool = True) -> Table:
    """A table of one version per fragment, each fragment holding the ids from its first number up to its second."""
    table = Table(root)
    for place, (start, stop) in enumerate(fragments):
        lance.write_dataset(
            rows(start, stop),
            table.uri,
            mode="append" if place else "create",
            enable_stable_row_ids=stable_row_ids,
            enable_v2_manifest_paths=v2,
        )
    return table


def delete_rows(dataset: lance.LanceDataset, predicate: str) -> Delete:
    """What `dataset.delete` would commit on this version: its deletion files are written."""
    updated, removed = [], []
    for fragment in dataset.get_fragments():
        before = fragment.metadata
        after = fragment.delete(predicate)
        if after is None:
            removed.append(before.id)
        elif after != before:
            updated.append(fragment_message(after))
    return Delete(tuple(updated), tuple(removed), predicate)


def stage_column(dataset: lance.LanceDataset, fragment: int, name: str = "late") -> pb.Transaction.DataReplacementGroup:
    """A data file with ten new values of column `s` for a fragment: "new"."""
    column = pa.table({"s": pa.array(["new"] * 10)})
    with LanceFileWriter(f"{dataset.uri}/data/{name}.lance", column.schema, version="2.2") as writer:
        writer.write_batch(column)
    file = DataFile.create(dataset, f"{name}.lance")
    return pb.Transaction.DataReplacementGroup(
        fragment_id=fragment,
        new_file=pb.DataFile(
            path=file.path,
            fields=file.fields,
            column_indices=file.column_indices,
            file_major_version=file.file_major_version,
            file_minor_version=file.file_minor_version,
            file_size_bytes=file.file_size_bytes or 0,
        ),
    )


def replace_data(dataset: lance.LanceDataset, fragment: int, name: str = "late") -> None:
    """Column `s` of a fragment replaced by pylance."""
    stage_column(dataset, fragment, name)
    group = lance.LanceOperation.DataReplacementGroup(fragment, DataFile.create(dataset, f"{name}.lance"))
    lance.LanceDataset.commit(dataset, lance.LanceOperation.DataReplacement([group]), read_version=dataset.version)


def merge_rows(dataset: lance.LanceDataset, table: pa.Table) -> Update:
    """What an upsert by id would commit on this version: its files are written."""
    merge = dataset.merge_insert("id").when_matched_update_all()
    if table.schema.names == dataset.schema.names:
        merge = merge.when_not_matched_insert_all()
    transaction, _ = merge.execute_uncommitted(table)
    operation = transaction.operation
    return Update(
        updated=_messages(operation.updated_fragments),
        removed_ids=tuple(operation.removed_fragment_ids),
        new=_messages(operation.new_fragments),
        fields_modified=tuple(operation.fields_modified),
        value_fields=tuple(operation.fields_for_preserving_frag_bitmap),
        rewrites_columns=bool(operation.fields_modified),
    )


def _messages(fragments: Sequence[lance.FragmentMetadata]) -> tuple[pb.DataFragment, ...]:
    return tuple(fragment_message(fragment) for fragment in fragments)


def borrow(table: Table, action: Callable[[lance.LanceDataset], object]) -> Operation:
    """What pylance would commit: it does so on a copy, whose new files then join those of the table."""
    with tempfile.TemporaryDirectory() as directory:
        copied = Path(directory) / "copy"
        shutil.copytree(table.root, copied)
        twin = replace(table, root=copied)
        action(twin.open())
        transaction = twin.head().transaction
        assert transaction is not None
        for part in ("data", "_indices", "_deletions"):
            if (twin.path / part).exists():
                shutil.copytree(twin.path / part, table.path / part, dirs_exist_ok=True)
        return decode_operation(transaction)

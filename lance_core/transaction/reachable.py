"""The files that a transaction adds to a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lance_core.format.deletion import deletion_file_path
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import data_path, index_directory, join_key
from lance_core.format.outline import find_fragments
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import fragment_ids


@dataclass(frozen=True, slots=True)
class StatedFile:
    """The statement of a transaction about a file that it adds.

    Attributes:
        size: Bytes; 0 if it does not say.
        rows: The physical rows of the fragment; 0 if it does not say.
        data: The entry of a data file.
        deletion: The entry of a deletion file.
    """

    size: int = 0
    rows: int = 0
    data: pb.DataFile | None = None
    deletion: pb.DeletionFile | None = None


UNSTATED = StatedFile()

StatedFiles = dict[str, StatedFile]
"""The files that a transaction adds, by store key."""


def reachable_files(transaction: pb.Transaction, base: str, head: ManifestFile | None = None) -> StatedFiles:
    """The data, deletion and index files that `transaction` adds to the table or branch at `base`, by store key.

    All of them must be durable before a version with this transaction is published (rule S1). Files under other base
    paths are left out, and files of the head too, if it is given. Index segments that do not list their files are not
    covered: see `unlisted_index_directories`.
    """
    operation = transaction.WhichOneof("operation")
    files = dict(_fragment_files(fragments_with_files(transaction), base))
    if operation in _ADDS_FRAGMENTS_ONLY:
        return files
    files.update(_deletion_files(changed_fragments(transaction), base))
    files.update(_loose_data_files(transaction, base, head))
    files.update(_index_files(transaction, base))
    if head is not None and operation in _LISTS_OLD_FILES:
        named = fragment_ids(changed_fragments(transaction))
        before = find_fragments(head.outline, named).values()
        for key, _ in (*_fragment_files(before, base), *_deletion_files(before, base)):
            files.pop(key, None)
    return files


def fragment_files(fragments: Iterable[pb.DataFragment], base: str) -> StatedFiles:
    """The data and deletion files of fragments of the table or branch at `base`, by store key; not those of bases."""
    listed = list(fragments)
    return dict((*_fragment_files(listed, base), *_deletion_files(listed, base)))


def new_fragments(transaction: pb.Transaction) -> Iterable[pb.DataFragment]:
    """The fragments that a transaction adds with rows of their own; not those that a rewrite makes of others."""
    match transaction.WhichOneof("operation"):
        case "append":
            return transaction.append.fragments
        case "overwrite":
            return transaction.overwrite.fragments
        case "update":
            return transaction.update.new_fragments
    return ()


def unlisted_index_directories(transaction: pb.Transaction, base: str) -> list[str]:
    """Directories of index segments that `transaction` adds without listing their files, as older writers do."""
    added: list[bytes] = []
    match transaction.WhichOneof("operation"):
        case "create_index":
            added = [entry.uuid.uuid for entry in transaction.create_index.new_indices if not _has_files(entry)]
        case "rewrite":
            rewritten = transaction.rewrite.rewritten_indices
            added = [entry.new_id.uuid for entry in rewritten if not entry.new_index_files]
    return [index_directory(base, uuid) for uuid in added]


def blob_directories(keys: Iterable[str], base: str) -> list[str]:
    """Directories of large blobs: one beside each data file among `keys`, with the same name without extension."""
    directory = data_path(base, "")
    return [key.removesuffix(_DATA_FILE) for key in keys if key.startswith(directory) and key.endswith(_DATA_FILE)]


def is_file_path(path: str) -> bool:
    """Whether a path from a manifest stays below the directory that it is relative to."""
    return not any(part in {"", ".", ".."} for part in path.split("/"))


_ADDS_FRAGMENTS_ONLY = frozenset({"append", "overwrite"})

_DATA_FILE = ".lance"

_LISTS_OLD_FILES = frozenset({"delete", "update", "merge"})
"""Operations whose fragments also list files that existed before."""


def fragments_with_files(transaction: pb.Transaction) -> Iterator[pb.DataFragment]:
    """Fragments that may hold new data files."""
    match transaction.WhichOneof("operation"):
        case "append":
            yield from transaction.append.fragments
        case "overwrite":
            yield from transaction.overwrite.fragments
        case "update":
            yield from transaction.update.new_fragments
            if transaction.update.fields_modified:
                yield from transaction.update.updated_fragments
        case "merge":
            yield from transaction.merge.fragments
        case "rewrite":
            for group in transaction.rewrite.groups:
                yield from group.new_fragments
            yield from transaction.rewrite.new_fragments


def changed_fragments(transaction: pb.Transaction) -> Iterator[pb.DataFragment]:
    """Fragments that may have a new deletion file."""
    match transaction.WhichOneof("operation"):
        case "delete":
            yield from transaction.delete.updated_fragments
        case "update":
            yield from transaction.update.updated_fragments
        case "merge":
            yield from transaction.merge.fragments
        case "rewrite":
            for group in transaction.rewrite.groups:
                yield from group.new_fragments


def _fragment_files(fragments: Iterable[pb.DataFragment], base: str) -> Iterator[tuple[str, StatedFile]]:
    for fragment in fragments:
        for file in fragment.files:
            if not file.HasField("base_id"):
                yield data_path(base, file.path), StatedFile(file.file_size_bytes, fragment.physical_rows, file)
        for overlay in fragment.overlays:
            if not overlay.data_file.HasField("base_id"):
                yield data_path(base, overlay.data_file.path), _loose_file(overlay.data_file)


def _deletion_files(fragments: Iterable[pb.DataFragment], base: str) -> Iterator[tuple[str, StatedFile]]:
    for fragment in fragments:
        if fragment.HasField("deletion_file") and not fragment.deletion_file.HasField("base_id"):
            message = fragment.deletion_file
            stated = StatedFile(rows=fragment.physical_rows, deletion=message)
            yield deletion_file_path(base, fragment.id, message), stated


def _loose_data_files(
    transaction: pb.Transaction, base: str, head: ManifestFile | None
) -> Iterator[tuple[str, StatedFile]]:
    """Data files of fragments that are named by their ids; those for whole columns have the rows of the fragment."""
    loose = [(number, file) for number, file in files_by_fragment_id(transaction) if not file.HasField("base_id")]
    numbers = {number for number, _ in loose if number is not None}
    before = find_fragments(head.outline, numbers) if head and numbers else {}
    for number, file in loose:
        fragment = None if number is None else before.get(number)
        rows = 0 if fragment is None else fragment.physical_rows
        yield data_path(base, file.path), StatedFile(file.file_size_bytes, rows, file)


def files_by_fragment_id(transaction: pb.Transaction) -> Iterator[tuple[int | None, pb.DataFile]]:
    """Data files of fragments that the transaction names by their ids only; with the id if they have all rows."""
    match transaction.WhichOneof("operation"):
        case "data_replacement":
            for group in transaction.data_replacement.replacements:
                yield group.fragment_id, group.new_file
        case "data_overlay":
            for overlaid in transaction.data_overlay.groups:
                yield from ((None, overlay.data_file) for overlay in overlaid.overlays)


def _loose_file(file: pb.DataFile) -> StatedFile:
    return StatedFile(file.file_size_bytes, data=file)


def _index_files(transaction: pb.Transaction, base: str) -> Iterator[tuple[str, StatedFile]]:
    for entry in transaction.create_index.new_indices:
        if not entry.HasField("base_id"):
            yield from _segment_files(index_directory(base, entry.uuid.uuid), entry.files)
    for rewritten in transaction.rewrite.rewritten_indices:
        yield from _segment_files(index_directory(base, rewritten.new_id.uuid), rewritten.new_index_files)


def _segment_files(directory: str, files: Iterable[pb.IndexFile]) -> Iterator[tuple[str, StatedFile]]:
    return ((join_key(directory, file.path), StatedFile(file.size_bytes)) for file in files)


def _has_files(entry: pb.IndexMetadata) -> bool:
    return bool(entry.files) or entry.HasField("base_id")

"""The files of a transaction or version that lie below base paths: in roots of other tables, or of other branches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lance_core.format.manifest import ManifestFile
from lance_core.format.outline import AnyManifest, encoded_fragments, find_fragments, fragments_of
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import fragment_ids
from lance_core.transaction.reachable import changed_fragments, files_by_fragment_id, fragments_with_files


class FileInBase(NamedTuple):
    """A file below a base path: what it is, in the same words in each version that has it; and the id of the base."""

    what: str
    base_id: int


def unknown_base(transaction: pb.Transaction, known: Iterable[pb.BasePath]) -> FileInBase | None:
    """The first file of a transaction in a base that is none of the `known` ones."""
    known_ids = {base.id for base in known}
    return next((file for file in _named_by(transaction) if file.base_id not in known_ids), None)


def new_bases(transaction: pb.Transaction) -> Sequence[pb.BasePath]:
    """The base paths that a transaction adds to its table; a Clone brings those of the version that it copies."""
    match transaction.WhichOneof("operation"):
        case "update_bases":
            return transaction.update_bases.new_bases
        case "overwrite":
            return transaction.overwrite.initial_bases
    return ()


def bases_of_transaction(transaction: pb.Transaction, head: ManifestFile) -> set[str]:
    """The base paths of `head` below which a transaction names files that the head does not have there.

    A Restore names none: see `bases_of_version` for the version that it goes back to. Raises `CorruptFile`.
    """
    bases = head.outline.base_paths
    named = _placed(_named_by(transaction), bases)
    if named:
        numbers = {number for number, _ in files_by_fragment_id(transaction) if number is not None}
        numbers |= fragment_ids((*fragments_with_files(transaction), *changed_fragments(transaction)))
        before = find_fragments(head.outline, numbers).values()
        named -= _placed(_files(before, (), _indices(head)), bases)
    return {path for path, _ in named}


def bases_of_version(version: ManifestFile, head: ManifestFile | None) -> set[str]:
    """The base paths of a version below which it has files that `head` does not have there. Raises `CorruptFile`."""
    if not version.outline.base_paths:
        return set()
    before = set() if head is None else _encoded(head.outline)
    after = _encoded(version.outline)
    named = _placed(_files(_decoded(version, after - before), (), _indices(version)), version.outline.base_paths)
    if named and head is not None:
        named -= _placed(_files(_decoded(head, before - after), (), _indices(head)), head.outline.base_paths)
    return {path for path, _ in named}


def _named_by(transaction: pb.Transaction) -> Iterator[FileInBase]:
    fragments = (*fragments_with_files(transaction), *changed_fragments(transaction))
    loose = (file for _, file in files_by_fragment_id(transaction))
    return _files(fragments, loose, transaction.create_index.new_indices)


def _files(
    fragments: Iterable[pb.DataFragment], loose: Iterable[pb.DataFile], indices: Iterable[pb.IndexMetadata]
) -> Iterator[FileInBase]:
    """Those of some fragments, loose data files and indices that lie below base paths."""
    for fragment in fragments:
        for file in (*fragment.files, *(overlay.data_file for overlay in fragment.overlays)):
            if file.HasField("base_id"):
                yield FileInBase(f"data file {file.path}", file.base_id)
        deletion = fragment.deletion_file
        if deletion.HasField("base_id"):
            named = f"{fragment.id}-{deletion.read_version}-{deletion.id}.{deletion.file_type}"
            yield FileInBase(f"deletion file {named}", deletion.base_id)
    for file in loose:
        if file.HasField("base_id"):
            yield FileInBase(f"data file {file.path}", file.base_id)
    for index in indices:
        if index.HasField("base_id"):
            yield FileInBase(f"index {index.name} ({index.uuid.uuid.hex()})", index.base_id)


def _placed(files: Iterable[FileInBase], bases: Iterable[pb.BasePath]) -> set[tuple[str, str]]:
    """Files with each path that their base has; those of no known base are refused by others."""
    known = list(bases)
    return {(base.path, file.what) for file in files for base in known if base.id == file.base_id}


def _indices(version: ManifestFile) -> Iterable[pb.IndexMetadata]:
    return () if version.indices is None else version.indices.indices


def _encoded(manifest: AnyManifest) -> set[bytes]:
    return set(encoded_fragments(manifest, len(manifest.fragments)))


def _decoded(version: ManifestFile, encoded: Iterable[bytes]) -> Sequence[pb.DataFragment]:
    return fragments_of(pb.ManifestOutline(version=version.version, fragments=encoded))

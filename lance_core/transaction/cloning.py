"""The first version of a branch or of a clone."""

from __future__ import annotations

from collections.abc import Iterator

from lance_core.errors import InvalidTransaction, UnsupportedFeature
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.features import check_continuable
from lance_core.transaction.operations import Clone


def clone_manifest(
    operation: Clone, source: ManifestFile | None, branch: str | None
) -> tuple[pb.Manifest, pb.IndexSection | None]:
    """A copy of the manifest `source` whose files are located by base paths.

    In a branch or shallow clone the files are below the root of the source. In a deep clone, whose files are copied
    before it is published, they are below its own root.

    Raises:
        UnsupportedFeature: There is no source, this engine cannot write it, or a branch is to be a deep clone.
        InvalidTransaction: The source or branch is not the one that the operation names.
    """
    if source is None:
        raise UnsupportedFeature(f"clone of {operation.ref_path}, which cannot be read here")
    if source.version != operation.ref_version or branch != operation.branch_name:
        raise InvalidTransaction(
            f"clone of version {operation.ref_version} to {operation.branch_name or 'main'}: expected version "
            f"{source.version} and {branch or 'main'}"
        )
    check_continuable(source.manifest)
    if not operation.is_shallow and branch is not None:
        raise UnsupportedFeature(f"branch {branch}: a branch is a shallow clone of its parent")
    manifest = pb.Manifest()
    manifest.CopyFrom(source.manifest)
    manifest.ClearField("branch")
    if branch is not None:
        manifest.branch = branch
    indices = None
    if source.indices is not None:
        indices = pb.IndexSection()
        indices.CopyFrom(source.indices)
    if operation.is_shallow:
        _look_below(operation, manifest, indices)
    else:
        _look_at_home(manifest, indices)
    return manifest, indices


def _look_below(operation: Clone, manifest: pb.Manifest, indices: pb.IndexSection | None) -> None:
    """Add a base path for the root of the source, and refer to all files below that root through it."""
    base = pb.BasePath(
        id=max((entry.id for entry in manifest.base_paths), default=-1) + 1,
        name=operation.ref_name,
        is_dataset_root=True,
        path=operation.ref_path,
    )
    manifest.base_paths.append(base)
    for file in _based(manifest, indices):
        if not file.HasField("base_id"):
            file.base_id = base.id


def _look_at_home(manifest: pb.Manifest, indices: pb.IndexSection | None) -> None:
    """Remove all base paths: every file is below the clone's own root."""
    del manifest.base_paths[:]
    for file in _based(manifest, indices):
        file.ClearField("base_id")


def _based(
    manifest: pb.Manifest, indices: pb.IndexSection | None
) -> Iterator[pb.DataFile | pb.DeletionFile | pb.IndexMetadata]:
    for fragment in manifest.fragments:
        yield from fragment.files
        if fragment.HasField("deletion_file"):
            yield fragment.deletion_file
    if indices is not None:
        yield from indices.indices

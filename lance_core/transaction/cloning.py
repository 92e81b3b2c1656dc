"""The first version of a branch or of a shallow clone."""

from __future__ import annotations

from lance_core.errors import InvalidTransaction, UnsupportedFeature
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.features import check_continuable
from lance_core.transaction.operations import Clone


def clone_manifest(
    operation: Clone, source: ManifestFile | None, branch: str | None
) -> tuple[pb.Manifest, pb.IndexSection | None]:
    """A copy of `source` in which every file is looked for where it is: below the root that was cloned.

    Raises `UnsupportedFeature` for a deep clone, without a source, and for one that we cannot write to;
    `InvalidTransaction` when it is not the source or branch that the operation names.
    """
    if not operation.is_shallow:
        raise UnsupportedFeature("a deep clone copies files, which a transaction alone does not")
    if source is None:
        raise UnsupportedFeature(f"clone of {operation.ref_path}, which cannot be read here")
    if source.version != operation.ref_version or branch != operation.branch_name:
        raise InvalidTransaction(
            f"clone of version {operation.ref_version} to {operation.branch_name or 'main'}: expected version "
            f"{source.version} and {branch or 'main'}"
        )
    check_continuable(source.manifest)
    manifest = pb.Manifest()
    manifest.CopyFrom(source.manifest)
    manifest.ClearField("branch")
    if branch is not None:
        manifest.branch = branch
    base = pb.BasePath(
        id=max((entry.id for entry in manifest.base_paths), default=-1) + 1,
        name=operation.ref_name,
        is_dataset_root=True,
        path=operation.ref_path,
    )
    manifest.base_paths.append(base)
    for fragment in manifest.fragments:
        for file in fragment.files:
            if not file.HasField("base_id"):
                file.base_id = base.id
        if fragment.HasField("deletion_file") and not fragment.deletion_file.HasField("base_id"):
            fragment.deletion_file.base_id = base.id
    if source.indices is None:
        return manifest, None
    indices = pb.IndexSection()
    indices.CopyFrom(source.indices)
    for index in indices.indices:
        if not index.HasField("base_id"):
            index.base_id = base.id
    return manifest, indices

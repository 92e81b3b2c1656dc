"""A new schema over the fragments of a manifest in the making."""

from __future__ import annotations

from lance_core.errors import InvalidTransaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import check_schema
from lance_core.transaction.operations import Project


def project(manifest: pb.Manifest, operation: Project) -> None:
    """Replace the schema; data files without a column of it leave their fragments.

    Raises `InvalidTransaction` for a field that the table does not have.
    """
    check_schema(operation.schema)
    live = {field.id for field in operation.schema}
    unknown = live - {field.id for field in manifest.fields}
    if unknown:
        raise InvalidTransaction(f"project keeps field {min(unknown)}, which version {manifest.version - 1} has not")
    del manifest.fields[:]
    manifest.fields.extend(operation.schema)
    for fragment in manifest.fragments:
        files = [file for file in fragment.files if live.intersection(file.fields)]
        if len(files) < len(fragment.files):
            del fragment.files[:]
            fragment.files.extend(files)

"""Applies Project and Merge to a manifest being built: a new schema for its fragments."""

from __future__ import annotations

from lance_core.errors import InvalidTransaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.features import has_stable_row_ids
from lance_core.transaction.fields import TOMBSTONE, check_schema
from lance_core.transaction.fragments import (
    check_files,
    check_updated_fragment,
    file_key,
    file_version,
    without_dead_files,
)
from lance_core.transaction.operations import Merge, Project
from lance_core.transaction.row_ids import encode_uniform_versions


def project(manifest: pb.Manifest, operation: Project) -> None:
    """Replace the schema, and drop data files that hold no column of it.

    Raises `InvalidTransaction` for a field that the table does not have.
    """
    check_schema(operation.schema)
    live = {field.id for field in operation.schema}
    unknown = live - {field.id for field in manifest.fields}
    if unknown:
        raise InvalidTransaction(f"project keeps field {min(unknown)}, which is not in version {manifest.version - 1}")
    del manifest.fields[:]
    manifest.fields.extend(operation.schema)
    for fragment in manifest.fragments:
        files = [file for file in fragment.files if live.intersection(file.fields)]
        if len(files) < len(fragment.files):
            del fragment.files[:]
            fragment.files.extend(files)


def merge(manifest: pb.Manifest, operation: Merge) -> dict[int, set[int]]:
    """Replace the schema and the fragment list. Returns the existing fields whose data is in other files now, by
    fragment id.

    Raises `InvalidTransaction` for a fragment that the table does not have or that cannot follow from the table's, and
    for a new field with the id of a dropped one.
    """
    check_schema(operation.schema)
    _check_new_fields(manifest, operation)
    current = {fragment.id: fragment for fragment in manifest.fragments}
    version = file_version(manifest)
    merged: dict[int, pb.DataFragment] = {}
    rewritten: dict[int, set[int]] = {}
    for fragment in operation.fragments:
        before = current.get(fragment.id)
        if before is None or fragment.id in merged:
            what = "named twice" if before is not None else f"not in the table (version {manifest.version - 1})"
            raise InvalidTransaction(f"fragment {fragment.id} is {what}")
        check_updated_fragment(before, fragment, new_files=True)
        check_files(fragment.files, version)
        merged[fragment.id] = after = without_dead_files(fragment)
        old, new = _providers(before), _providers(after)
        rewritten[fragment.id] = {field for field in old.keys() & new.keys() if old[field] != new[field]}
        if has_stable_row_ids(manifest) and [*map(file_key, before.files)] != [*map(file_key, after.files)]:
            after.inline_last_updated_at_versions = encode_uniform_versions(after.physical_rows, manifest.version)
    del manifest.fragments[:]
    manifest.fragments.extend(merged[identifier] for identifier in sorted(merged))
    del manifest.fields[:]
    manifest.fields.extend(operation.schema)
    if operation.schema_metadata:
        # Stock writers always leave the metadata out of the message, so empty means unchanged.
        manifest.schema_metadata.clear()
        manifest.schema_metadata.update(operation.schema_metadata)
    return rewritten


def _check_new_fields(manifest: pb.Manifest, operation: Merge) -> None:
    added = {field.id for field in operation.schema} - {field.id for field in manifest.fields}
    for fragment in manifest.fragments:
        for file in fragment.files:
            used = added.intersection(file.fields)
            if used:
                raise InvalidTransaction(
                    f"new field {min(used)} has the id of a dropped one, which {file.path} still has"
                )


def _providers(fragment: pb.DataFragment) -> dict[int, tuple[str, int | None]]:
    """The identity of the data file that holds each field, by field id."""
    return {field: file_key(file) for file in fragment.files for field in file.fields if field != TOMBSTONE}

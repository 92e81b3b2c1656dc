"""The fragment list of a manifest being built: new fragments get ids, changed ones are checked and replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy

from lance_core.errors import InvalidTransaction, UnsupportedFeature
from lance_core.format.outline import (
    AnyManifest,
    fragment_at,
    fragment_facts,
    fragment_places,
    fragments_of,
    put_fragment,
)
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.features import has_stable_row_ids
from lance_core.transaction.fields import TOMBSTONE
from lance_core.transaction.heads import LAST_FRAGMENT_ID, LAST_ROW
from lance_core.transaction.operations import DataReplacement, fragment_ids
from lance_core.transaction.reachable import is_file_path
from lance_core.transaction.row_ids import encode_uniform_versions
from lance_core.transaction.stamps import stamp_moved_rows, stamp_new_rows

_MINOR_DIGITS = 9


def number_fragments(
    manifest: AnyManifest,
    fragments: Sequence[pb.DataFragment],
    *,
    moved_rows: bool = False,
    highest: int | None = None,
) -> list[pb.DataFragment]:
    """Copies of new fragments with fresh ids. Raises the high-water marks of the manifest.

    `highest` is the largest id that the manifest has, if it is known. With `moved_rows` the fragments may carry the row
    ids of rows that an Update moved into them. Raises `InvalidTransaction` for a malformed fragment or when no id is
    left.
    """
    version = file_version(manifest)
    stable = has_stable_row_ids(manifest)
    next_id = next_fragment_id(manifest, highest)
    if next_id + len(fragments) > LAST_FRAGMENT_ID:
        raise InvalidTransaction(f"{len(fragments)} new fragments after fragment {next_id - 1}: no id is left")
    added: list[pb.DataFragment] = []
    for fragment in fragments:
        _check_new_fragment(fragment, version)
        copy = pb.DataFragment()
        copy.CopyFrom(fragment)
        copy.id = next_id
        next_id += 1
        if not (moved_rows and stable):
            _clear_row_ids(copy)
        added.append(copy)
    if stable and moved_rows:
        manifest.next_row_id = stamp_moved_rows(added, fragments_of(manifest), manifest.next_row_id, manifest.version)
    elif stable:
        manifest.next_row_id = stamp_new_rows(added, manifest.next_row_id, manifest.version)
    if next_id:
        manifest.max_fragment_id = next_id - 1
    return added


def require_unshared(manifest: AnyManifest, added: Iterable[pb.DataFragment]) -> None:
    """Raise `InvalidTransaction` if a data file of the new fragments is one of another fragment, whose rows it has."""
    found: set[tuple[str, int | None]] = set()
    for file in (file for fragment in added for file in fragment.files):
        key = file_key(file)
        if key in found:
            raise InvalidTransaction(f"data file {file.path} is named by two fragments")
        found.add(key)
    for path, base in found:
        if (path, base) in _files_named_like(manifest, path):
            raise InvalidTransaction(f"data file {path} belongs to a fragment of the table already")


def _files_named_like(manifest: AnyManifest, path: str) -> set[tuple[str, int | None]]:
    """The data files of the fragments that hold this text anywhere: fragments are not decoded for that."""
    if isinstance(manifest, pb.ManifestOutline) and path.encode() not in b"".join(manifest.fragments):
        return set()
    return {file_key(file) for fragment in fragments_of(manifest) for file in fragment.files}


def next_fragment_id(manifest: AnyManifest, highest: int | None = None) -> int:
    """The smallest id that no fragment of the table ever had. `highest` is the largest of those that are there."""
    mark = manifest.max_fragment_id if manifest.HasField("max_fragment_id") else -1
    return max(mark, fragment_facts(manifest).highest if highest is None else highest) + 1


def _clear_row_ids(fragment: pb.DataFragment) -> None:
    for sequence in ("row_ids", "last_updated_at_versions", "created_at_versions"):
        fragment.ClearField(f"inline_{sequence}")
        fragment.ClearField(f"external_{sequence}")


def _check_new_fragment(fragment: pb.DataFragment, version: tuple[int, int]) -> None:
    if fragment.HasField("deletion_file"):
        raise InvalidTransaction("a new fragment has a deletion file, whose name would need an id it does not have yet")
    if not fragment.files or not fragment.physical_rows:
        raise InvalidTransaction(
            f"a new fragment has {len(fragment.files)} data files and {fragment.physical_rows} rows: expected some"
        )
    if fragment.physical_rows > LAST_ROW + 1:
        raise InvalidTransaction(f"a new fragment has {fragment.physical_rows} rows: expected at most {LAST_ROW + 1}")
    check_files(fragment.files, version)


def check_files(files: Iterable[pb.DataFile], version: tuple[int, int]) -> None:
    """Raise `InvalidTransaction` for a data file of another format version, outside `data/`, or malformed."""
    for file in files:
        found = (file.file_major_version, file.file_minor_version)
        if found != version:
            raise InvalidTransaction(
                f"data file {file.path} has format version {found[0]}.{found[1]}: expected the table's "
                f"{version[0]}.{version[1]}"
            )
        if not is_file_path(file.path):
            raise InvalidTransaction(f"data file {file.path!r}: expected a path below the table's data directory")
        if len(file.fields) != len(file.column_indices):
            raise InvalidTransaction(
                f"data file {file.path} has {len(file.column_indices)} column indices for {len(file.fields)} fields"
            )


def file_version(manifest: AnyManifest) -> tuple[int, int]:
    """Major and minor format version of all data files. Raises `UnsupportedFeature` for other than 2.x."""
    name = manifest.data_format.version
    if not name:
        versions = {
            (file.file_major_version, file.file_minor_version)
            for entry in fragments_of(manifest)
            for file in entry.files
        }
        if len(versions) == 1:
            return versions.pop()
    major, _, minor = name.partition(".")
    if major != "2" or not minor.isdecimal() or len(minor) > _MINOR_DIGITS:
        raise UnsupportedFeature(f"version {manifest.version} has data file format {name!r}: expected 2.x")
    return int(major), int(minor)


def replace_fragments(
    manifest: AnyManifest, updated: Sequence[pb.DataFragment], removed_ids: Iterable[int], *, new_files: bool
) -> list[pb.DataFragment]:
    """Replace changed fragments and drop removed ones. With `new_files` changed fragments may have other data files.

    Returns copies of those that were replaced or dropped. Raises `InvalidTransaction` if the fragments of the manifest
    cannot have changed in that way.
    """
    removed = frozenset(removed_ids)
    named = removed | fragment_ids(updated)
    places = fragment_places(manifest, named)
    missing = named - places.keys()
    if missing:
        raise InvalidTransaction(f"fragment {min(missing)} is not in the table (version {manifest.version - 1})")
    both = removed & fragment_ids(updated)
    if both or len(fragment_ids(updated)) != len(updated):
        raise InvalidTransaction(f"fragment {min(both, default=updated[0].id)} is named twice by one transaction")
    current = {identifier: deepcopy(fragment_at(manifest, place)) for identifier, place in places.items()}
    for fragment in updated:
        check_updated_fragment(current[fragment.id], fragment, new_files=new_files)
        put_fragment(manifest, places[fragment.id], fragment)
    for place in sorted((places[identifier] for identifier in removed), reverse=True):
        del manifest.fragments[place]
    return list(current.values())


def check_updated_fragment(current: pb.DataFragment, fragment: pb.DataFragment, *, new_files: bool) -> None:
    """Raise `InvalidTransaction` unless `current` can have become `fragment`."""
    if fragment.physical_rows != current.physical_rows:
        raise InvalidTransaction(
            f"fragment {fragment.id} has {fragment.physical_rows} rows: expected the table's {current.physical_rows}"
        )
    if not new_files and [file_key(file) for file in fragment.files] != [file_key(file) for file in current.files]:
        raise InvalidTransaction(f"fragment {fragment.id} has other data files than in the table")
    deleted = fragment.deletion_file.num_deleted_rows
    if deleted > fragment.physical_rows:
        raise InvalidTransaction(f"fragment {fragment.id} has {deleted} of {fragment.physical_rows} rows deleted")
    if deleted < current.deletion_file.num_deleted_rows:
        raise InvalidTransaction(
            f"fragment {fragment.id} has {deleted} rows deleted: expected no fewer than the table's "
            f"{current.deletion_file.num_deleted_rows}"
        )


def file_key(file: pb.DataFile) -> tuple[str, int | None]:
    """The identity of a data file within the table: its path and base id."""
    return file.path, file.base_id if file.HasField("base_id") else None


def without_dead_files(fragment: pb.DataFragment) -> pb.DataFragment:
    """A copy without the data files whose columns are all superseded."""
    copy = pb.DataFragment()
    copy.CopyFrom(fragment)
    del copy.files[:]
    copy.files.extend(file for file in fragment.files if any(field != TOMBSTONE for field in file.fields))
    return copy


def replace_data(manifest: pb.Manifest, operation: DataReplacement) -> dict[int, set[int]]:
    """Replace columns of fragments by new data files. Returns the replaced fields by fragment id.

    A file with exactly the same columns is replaced; from files with more columns the replaced ones are removed.
    Raises `InvalidTransaction` for an unknown fragment or field, and for a column that is replaced twice.
    """
    current = {fragment.id: fragment for fragment in manifest.fragments}
    known = {field.id for field in manifest.fields}
    replaced: dict[int, set[int]] = {}
    check_files((group.new_file for group in operation.replacements), file_version(manifest))
    for group in operation.replacements:
        fragment, file = current.get(group.fragment_id), group.new_file
        if fragment is None:
            raise InvalidTransaction(
                f"fragment {group.fragment_id} is not in the table (version {manifest.version - 1})"
            )
        columns = set(file.fields)
        if not columns or not columns <= known:
            raise InvalidTransaction(
                f"data file {file.path} has fields {sorted(columns)}: expected some of the table's"
            )
        before = replaced.setdefault(fragment.id, set())
        if before & columns:
            raise InvalidTransaction(f"field {min(before & columns)} of fragment {fragment.id} is replaced twice")
        before |= columns
        _exchange_file(fragment, file, columns)
        if has_stable_row_ids(manifest):
            fragment.inline_last_updated_at_versions = encode_uniform_versions(fragment.physical_rows, manifest.version)
    return replaced


def _exchange_file(fragment: pb.DataFragment, file: pb.DataFile, columns: set[int]) -> None:
    for place, old in enumerate(fragment.files):
        if old.fields == file.fields:
            fragment.files[place].CopyFrom(file)
            return
    for old in fragment.files:
        left = [TOMBSTONE if field in columns else field for field in old.fields]
        del old.fields[:]
        old.fields.extend(left)
    fragment.files.append(file)
    fragment.CopyFrom(without_dead_files(fragment))

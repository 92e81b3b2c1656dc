"""The net change of a line of versions: what its newest version has that the one it began at has not. Pure.

Two manifests say it, whatever the versions between did: fragments by their ids and data files, whose names are unique,
deletion files, fields by their ids. Rows are read from nothing here; which rows are deleted, deletion files say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import TOMBSTONE


@dataclass(frozen=True, slots=True)
class NetChange:
    """The difference between a version and a later one of its line, or of a branch that began at it.

    Attributes:
        added_fields: Fields that the later one alone has, in pre-order.
        removed_fields: Fields that the earlier one alone has.
        changed_fields: Fields of both that differ, each as it is in the earlier and in the later one.
        new_fragments: Fragments that the later one alone has.
        removed_ids: Ids of the fragments that the earlier one alone has.
        deletions: Fragments of both with another deletion file, as they are in the later one.
        rewritten_ids: Ids of fragments of both in which other files hold fields that both versions have.
    """

    added_fields: tuple[pb.Field, ...]
    removed_fields: tuple[pb.Field, ...]
    changed_fields: tuple[tuple[pb.Field, pb.Field], ...]
    new_fragments: tuple[pb.DataFragment, ...]
    removed_ids: tuple[int, ...]
    deletions: tuple[pb.DataFragment, ...]
    rewritten_ids: tuple[int, ...]

    @property
    def changes_rows(self) -> bool:
        """Whether rows came, went or have other values in fields of both."""
        return bool(self.new_fragments or self.removed_ids or self.deletions or self.rewritten_ids)

    @property
    def changes_fields(self) -> bool:
        """Whether fields came, went or differ."""
        return bool(self.added_fields or self.removed_fields or self.changed_fields)


def net_change(before: ManifestFile, after: ManifestFile) -> NetChange:
    """The net change from one version to another."""
    old, new = fields_by_id(before), fields_by_id(after)
    fragments = {fragment.id: fragment for fragment in before.manifest.fragments}
    later = {fragment.id: fragment for fragment in after.manifest.fragments}
    both = [
        (fragments[number], fragment)
        for number, fragment in later.items()
        if number in fragments and _is_same(fragments[number], fragment)
    ]
    kept = {fragment.id for fragment, _ in both}
    shared = old.keys() & new.keys()
    return NetChange(
        added_fields=tuple(field for number, field in new.items() if number not in old),
        removed_fields=tuple(field for number, field in old.items() if number not in new),
        changed_fields=tuple((field, new[number]) for number, field in old.items() if new.get(number, field) != field),
        new_fragments=tuple(fragment for number, fragment in later.items() if number not in kept),
        removed_ids=tuple(sorted(fragments.keys() - kept)),
        deletions=tuple(fragment for earlier, fragment in both if has_other_deletions(earlier, fragment)),
        rewritten_ids=tuple(
            fragment.id
            for earlier, fragment in both
            if _columns_of(earlier, shared) != _columns_of(fragment, shared) or earlier.overlays != fragment.overlays
        ),
    )


def fields_by_id(file: ManifestFile) -> dict[int, pb.Field]:
    """The fields of a version, in pre-order."""
    return {field.id: field for field in file.outline.fields}


def top_names(fields: Iterable[pb.Field], all_fields: Mapping[int, pb.Field]) -> list[str]:
    """The names of the columns that the fields are, or are parts of, each once."""
    names: dict[str, None] = {}
    for field in fields:
        top = field
        while top.parent_id in all_fields:
            top = all_fields[top.parent_id]
        names[top.name] = None
    return list(names)


def has_other_deletions(one: pb.DataFragment, other: pb.DataFragment) -> bool:
    """Whether two states of a fragment have different deletion files. The root in which such a file lies is no part."""
    return _deletion_name(one) != _deletion_name(other)


def column_files(fragment: pb.DataFragment, fields: Iterable[pb.Field]) -> list[pb.DataFile]:
    """The data files of a fragment that hold one of the fields."""
    wanted = {field.id for field in fields}
    return [file for file in fragment.files if wanted.intersection(file.fields)]


def _is_same(one: pb.DataFragment, other: pb.DataFragment) -> bool:
    """Whether two fragments of one id hold the same rows: ids are given anew on each line."""
    return one.physical_rows == other.physical_rows and not _names(one).isdisjoint(_names(other))


def _names(fragment: pb.DataFragment) -> frozenset[str]:
    return frozenset(file.path for file in fragment.files)


def _columns_of(fragment: pb.DataFragment, fields: Iterable[int]) -> dict[int, str]:
    wanted = frozenset(fields) - {TOMBSTONE}
    return {field: file.path for file in fragment.files for field in file.fields if field in wanted}


def _deletion_name(fragment: pb.DataFragment) -> Sequence[int]:
    if not fragment.HasField("deletion_file"):
        return ()
    message = fragment.deletion_file
    return (message.read_version, message.id, message.file_type)

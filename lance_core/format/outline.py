"""Outlines: manifests whose fragments stay encoded, and functions on the fragments of both forms.

Decoding, copying and encoding thousands of fragments would be most of the work of a commit that changes none of them.
An outline carries their bytes unchanged from one version to the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFile
from lance_core.proto import lance_table_pb2 as pb

_DIGEST_BYTES: Final = 16

AnyManifest: TypeAlias = pb.Manifest | pb.ManifestOutline
"""Both have the same fields, except `fragments`: messages in a `Manifest`, bytes in a `ManifestOutline`."""


class FragmentFacts(NamedTuple):
    """The facts for checks of all fragments of a version.

    Attributes:
        ids: Number of different ids.
        highest: The largest id; -1 without fragments.
        deletion_files: Whether rows of any fragment are deleted.
        overlays: Whether any fragment has a data overlay.
        rows: Number of rows without the deleted ones; None if a fragment does not say its number.
    """

    ids: int
    highest: int
    deletion_files: bool
    overlays: bool
    rows: int | None

    def followed_by(self, added: Collection[pb.DataFragment]) -> FragmentFacts:
        """The same with more fragments, whose ids are different and greater than the highest."""
        return _joined(self, _facts_of(added))

    def with_changed(
        self, before: Collection[pb.DataFragment], after: Collection[pb.DataFragment]
    ) -> FragmentFacts | None:
        """The same with fragments `after` in place of `before`; None if only a look at all fragments decides.

        All ids are different. Of those `after` each is that of a fragment `before`, or greater than the highest.
        """
        lost, gained = _facts_of(before), _facts_of(after)
        if (
            (lost.highest == self.highest > gained.highest)
            or (lost.deletion_files and not gained.deletion_files)
            or (lost.overlays and not gained.overlays)
            or self.rows is None
            or lost.rows is None
        ):
            return None
        return _joined(self._replace(ids=self.ids - lost.ids, rows=self.rows - lost.rows), gained)


def fragment_facts(manifest: AnyManifest) -> FragmentFacts:
    """The facts about the fragments of a manifest. Raises `CorruptFile` as `fragments_of` does."""
    if isinstance(manifest, pb.Manifest):
        return _facts_of(manifest.fragments)
    columns = _columns(manifest)
    ids = _ids(manifest, columns)
    try:
        deletions = list(map(pb.DeletionFile.FromString, columns.deletion_files))
    except DecodeError as error:
        raise _corrupt(manifest, error) from error
    count = len(manifest.fragments)
    return _facts(count, ids, columns.physical_rows, deletions, overlays=bool(columns.overlays))


def _facts_of(fragments: Collection[pb.DataFragment]) -> FragmentFacts:
    return _facts(
        len(fragments),
        [fragment.id for fragment in fragments],
        [fragment.physical_rows for fragment in fragments],
        [fragment.deletion_file for fragment in fragments if fragment.HasField("deletion_file")],
        overlays=any(fragment.overlays for fragment in fragments),
    )


def _facts(
    count: int, ids: Sequence[int], physical: Sequence[int], deletions: Sequence[pb.DeletionFile], *, overlays: bool
) -> FragmentFacts:
    """The facts about `count` fragments. `physical` are the numbers of rows of those that say it."""
    deleted = [deletion.num_deleted_rows for deletion in deletions]
    known = len(physical) == count and all(physical) and all(deleted)
    rows = sum(physical) - sum(deleted) if known else None
    return FragmentFacts(len(set(ids)), max(ids, default=-1), bool(deletions), overlays, rows)


def _joined(one: FragmentFacts, other: FragmentFacts) -> FragmentFacts:
    return FragmentFacts(
        one.ids + other.ids,
        max(one.highest, other.highest),
        one.deletion_files or other.deletion_files,
        one.overlays or other.overlays,
        None if one.rows is None or other.rows is None else one.rows + other.rows,
    )


def has_deletion_files(manifest: AnyManifest) -> bool:
    """Whether rows of any fragment are deleted. Raises `CorruptFile` as `fragments_of` does."""
    if isinstance(manifest, pb.ManifestOutline):
        return bool(_columns(manifest).deletion_files)
    return any(fragment.HasField("deletion_file") for fragment in manifest.fragments)


def fragments_of(manifest: AnyManifest, start: int = 0) -> Sequence[pb.DataFragment]:
    """The fragments from position `start`, decoded if needed. Raises `CorruptFile` if one cannot be decoded."""
    if isinstance(manifest, pb.Manifest):
        return manifest.fragments[start:] if start else manifest.fragments
    try:
        return [pb.DataFragment.FromString(encoded) for encoded in manifest.fragments[start:]]
    except DecodeError as error:
        raise _corrupt(manifest, error) from error


def find_fragments(manifest: AnyManifest, wanted: AbstractSet[int]) -> dict[int, pb.DataFragment]:
    """The fragments with the given ids, by id; missing ones are left out. Raises `CorruptFile`."""
    return {number: fragment_at(manifest, place) for number, place in fragment_places(manifest, wanted).items()}


def fragment_places(manifest: AnyManifest, wanted: AbstractSet[int]) -> dict[int, int]:
    """The list positions of the fragments with the given ids; missing ones are left out. Raises `CorruptFile`."""
    if not wanted:
        return {}
    if isinstance(manifest, pb.ManifestOutline):
        ids = list(_columns(manifest).ids)
        if len(ids) + 1 == len(manifest.fragments):
            ids.insert(0, 0)  # in a well-formed manifest the fragment without an encoded id is the first
        if len(ids) == len(manifest.fragments):
            found = _places(ids, wanted)
            if all(fragment_at(manifest, place).id == number for number, place in found.items()):
                return found
    return _places([fragment.id for fragment in fragments_of(manifest)], wanted)


def put_fragment(manifest: AnyManifest, place: int, fragment: pb.DataFragment) -> None:
    """Replace the fragment at position `place` by a copy of `fragment`."""
    if isinstance(manifest, pb.ManifestOutline):
        manifest.fragments[place] = fragment.SerializeToString(deterministic=True)
    else:
        manifest.fragments[place].CopyFrom(fragment)


def encoded_fragments(manifest: AnyManifest, count: int) -> list[bytes]:
    """The first `count` fragments, encoded. Equal fragments of different writers may be encoded differently."""
    if isinstance(manifest, pb.ManifestOutline):
        return manifest.fragments[:count]
    return [fragment.SerializeToString(deterministic=True) for fragment in manifest.fragments[:count]]


def add_fragments(manifest: AnyManifest, fragments: Iterable[pb.DataFragment]) -> None:
    """Append copies of `fragments`, in the form of the manifest's fragments."""
    if isinstance(manifest, pb.ManifestOutline):
        manifest.fragments.extend(fragment.SerializeToString(deterministic=True) for fragment in fragments)
    else:
        manifest.fragments.extend(fragments)


def fragment_at(manifest: AnyManifest, place: int) -> pb.DataFragment:
    """The fragment at position `place`, decoded if needed. Raises `CorruptFile` if it cannot be decoded."""
    if isinstance(manifest, pb.Manifest):
        return manifest.fragments[place]
    try:
        return pb.DataFragment.FromString(manifest.fragments[place])
    except DecodeError as error:
        raise _corrupt(manifest, error) from error


def _places(ids: Sequence[int], wanted: AbstractSet[int]) -> dict[int, int]:
    return {number: place for place, number in enumerate(ids) if number in wanted}


def _ids(manifest: pb.ManifestOutline, columns: pb.FragmentColumns) -> Sequence[int]:
    found = columns.ids
    # Id 0 is not encoded. Only a fragment that encodes its id twice makes the list too long.
    return [*found, *[0] * (len(manifest.fragments) - len(found))]


def _columns(manifest: pb.ManifestOutline) -> pb.FragmentColumns:
    try:
        return pb.FragmentColumns.FromString(b"".join(manifest.fragments))
    except DecodeError as error:
        raise _corrupt(manifest, error) from error


def _corrupt(manifest: pb.ManifestOutline, error: DecodeError) -> CorruptFile:
    return CorruptFile(f"manifest of version {manifest.version} has a fragment that cannot be decoded: {error}")


def layout_digest(manifest: AnyManifest) -> bytes:
    """A digest of the layout: all that new data files of a version depend on, its fields, data format and settings.

    Versions with equal digests differ in their rows only, as far as the files of new rows are concerned.
    """
    layout = pb.ManifestOutline(fields=manifest.fields, base_paths=manifest.base_paths)
    layout.schema_metadata.update(manifest.schema_metadata)
    layout.config.update(manifest.config)
    layout.data_format.CopyFrom(manifest.data_format)
    layout.reader_feature_flags = manifest.reader_feature_flags
    layout.writer_feature_flags = manifest.writer_feature_flags
    encoded = layout.SerializeToString(deterministic=True)
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).digest()

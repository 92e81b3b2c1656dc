"""A manifest whose fragments stay encoded, and what can be told of them all the same.

Decoding, copying and encoding thousands of fragments is most of the work of a commit that looks into none of them. An
outline carries their bytes from one version to the next as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFile
from lance_core.proto import lance_table_pb2 as pb

AnyManifest: TypeAlias = pb.Manifest | pb.ManifestOutline
"""Both have the same fields; only their `fragments` differ, messages here and bytes there."""


def highest_fragment_id(manifest: AnyManifest) -> int:
    """The largest id among the fragments; -1 when there is none. Raises `CorruptFile` as `fragments_of` does."""
    if not manifest.fragments:
        return -1
    if isinstance(manifest, pb.ManifestOutline):
        return max(_columns(manifest).ids, default=0)
    return max(fragment.id for fragment in manifest.fragments)


def ids_of_fragments(manifest: AnyManifest) -> Sequence[int]:
    """The id of every fragment, not in their order. Raises `CorruptFile` as `fragments_of` does."""
    if isinstance(manifest, pb.Manifest):
        return [fragment.id for fragment in manifest.fragments]
    found = _columns(manifest).ids
    # Id 0 is not written. A fragment that says its id twice is the only way to have too many.
    return [*found, *[0] * (len(manifest.fragments) - len(found))]


def has_deletion_files(manifest: AnyManifest) -> bool:
    """Whether rows of any fragment are deleted. Raises `CorruptFile` as `fragments_of` does."""
    if isinstance(manifest, pb.ManifestOutline):
        return bool(_columns(manifest).deletion_files)
    return any(fragment.HasField("deletion_file") for fragment in manifest.fragments)


def has_overlays(manifest: AnyManifest) -> bool:
    """Whether any fragment has a data overlay. Raises `CorruptFile` as `fragments_of` does."""
    if isinstance(manifest, pb.ManifestOutline):
        return bool(_columns(manifest).overlays)
    return any(fragment.overlays for fragment in manifest.fragments)


def fragments_of(manifest: AnyManifest, start: int = 0) -> Sequence[pb.DataFragment]:
    """The fragments from position `start` on, decoded if need be. Raises `CorruptFile` for one that is none."""
    if isinstance(manifest, pb.Manifest):
        return manifest.fragments[start:] if start else manifest.fragments
    try:
        return [pb.DataFragment.FromString(encoded) for encoded in manifest.fragments[start:]]
    except DecodeError as error:
        raise _corrupt(manifest, error) from error


def find_fragments(manifest: AnyManifest, wanted: AbstractSet[int]) -> dict[int, pb.DataFragment]:
    """The fragments of these ids, by id; those that are not there are left out. Raises `CorruptFile`."""
    return {number: _message(manifest, place) for number, place in fragment_places(manifest, wanted).items()}


def fragment_places(manifest: AnyManifest, wanted: AbstractSet[int]) -> dict[int, int]:
    """Where in the list the fragments of these ids are; those that are not there are left out. Raises `CorruptFile`."""
    if not wanted:
        return {}
    if isinstance(manifest, pb.ManifestOutline):
        ids = list(_columns(manifest).ids)
        if len(ids) + 1 == len(manifest.fragments):
            ids.insert(0, 0)  # in every well-made manifest the fragment that shows no id is the first
        if len(ids) == len(manifest.fragments):
            found = _places(ids, wanted)
            if all(_message(manifest, place).id == number for number, place in found.items()):
                return found
    return _places([fragment.id for fragment in fragments_of(manifest)], wanted)


def put_fragment(manifest: AnyManifest, place: int, fragment: pb.DataFragment) -> None:
    """Put a copy of `fragment` in the place of another."""
    if isinstance(manifest, pb.ManifestOutline):
        manifest.fragments[place] = fragment.SerializeToString(deterministic=True)
    else:
        manifest.fragments[place].CopyFrom(fragment)


def encoded_fragments(manifest: AnyManifest, count: int) -> list[bytes]:
    """The first fragments as they are encoded, which may differ between equal ones: it depends on the writer."""
    if isinstance(manifest, pb.ManifestOutline):
        return manifest.fragments[:count]
    return [fragment.SerializeToString(deterministic=True) for fragment in manifest.fragments[:count]]


def add_fragments(manifest: AnyManifest, fragments: Iterable[pb.DataFragment]) -> None:
    """Append copies of `fragments`, in the form that the manifest has them in."""
    if isinstance(manifest, pb.ManifestOutline):
        manifest.fragments.extend(fragment.SerializeToString(deterministic=True) for fragment in fragments)
    else:
        manifest.fragments.extend(fragments)


def _message(manifest: AnyManifest, place: int) -> pb.DataFragment:
    if isinstance(manifest, pb.Manifest):
        return manifest.fragments[place]
    try:
        return pb.DataFragment.FromString(manifest.fragments[place])
    except DecodeError as error:
        raise _corrupt(manifest, error) from error


def _places(ids: Sequence[int], wanted: AbstractSet[int]) -> dict[int, int]:
    return {number: place for place, number in enumerate(ids) if number in wanted}


def _columns(manifest: pb.ManifestOutline) -> pb.FragmentColumns:
    try:
        return pb.FragmentColumns.FromString(b"".join(manifest.fragments))
    except DecodeError as error:
        raise _corrupt(manifest, error) from error


def _corrupt(manifest: pb.ManifestOutline, error: DecodeError) -> CorruptFile:
    return CorruptFile(f"manifest of version {manifest.version} has a fragment that cannot be decoded: {error}")

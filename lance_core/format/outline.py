"""A manifest whose fragments stay encoded, and what can be told of them all the same.

Decoding, copying and encoding thousands of fragments is most of the work of a commit that looks into none of them. An
outline carries their bytes from one version to the next as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def fragments_of(manifest: AnyManifest) -> Sequence[pb.DataFragment]:
    """The fragments as messages, decoded if need be. Raises `CorruptFile` for one that is none."""
    if isinstance(manifest, pb.Manifest):
        return manifest.fragments
    try:
        return [pb.DataFragment.FromString(encoded) for encoded in manifest.fragments]
    except DecodeError as error:
        raise _corrupt(manifest, error) from error


def add_fragments(manifest: AnyManifest, fragments: Iterable[pb.DataFragment]) -> None:
    """Append copies of `fragments`, in the form that the manifest has them in."""
    if isinstance(manifest, pb.ManifestOutline):
        manifest.fragments.extend(fragment.SerializeToString(deterministic=True) for fragment in fragments)
    else:
        manifest.fragments.extend(fragments)


def _columns(manifest: pb.ManifestOutline) -> pb.FragmentColumns:
    try:
        return pb.FragmentColumns.FromString(b"".join(manifest.fragments))
    except DecodeError as error:
        raise _corrupt(manifest, error) from error


def _corrupt(manifest: pb.ManifestOutline, error: DecodeError) -> CorruptFile:
    return CorruptFile(f"manifest of version {manifest.version} has a fragment that cannot be decoded: {error}")

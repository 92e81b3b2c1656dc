"""Deletion files for the fragments of a version that is being made."""

from __future__ import annotations

from dataclasses import dataclass

from pyroaring import BitMap

from lance_core.format.deletion import deletion_file_path, encode_deletion_file
from lance_core.proto import lance_table_pb2 as pb


@dataclass(frozen=True, slots=True)
class FragmentDeletions:
    """A fragment with a new deletion file; `data` must be written before a version with the fragment is published."""

    fragment: pb.DataFragment
    data: bytes

    def path(self, base: str) -> str:
        """The key of the deletion file below `base`, the root of the table or branch."""
        return deletion_file_path(base, self.fragment.id, self.fragment.deletion_file)


def delete_rows(fragment: pb.DataFragment, rows: BitMap, *, read_version: int) -> FragmentDeletions | None:
    """A copy of `fragment` whose deleted rows are `rows`, those deleted before included; None if no row is left.

    The deletion file has a fresh id. `fragment` is one of the version `read_version`. One of an old writer, which does
    not say how many rows it has, is kept.
    """
    if 0 < fragment.physical_rows <= len(rows):
        return None
    message, data = encode_deletion_file(rows, read_version=read_version)
    changed = pb.DataFragment()
    changed.CopyFrom(fragment)
    changed.deletion_file.CopyFrom(message)
    return FragmentDeletions(changed, data)

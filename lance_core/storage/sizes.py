"""Bounds on the size of files that are read whole, by kind of file.

Clients write files in the directories of their tables, and a server reads some of them whole, into memory that all of
its tables share. A store therefore compares the size of an object with the bound of its kind before it reads the body.
The bounds are far above what any writer produces, and low enough that one read of that size harms no other table.
Files that are read in ranges only (data and index files) have no bound.
"""

from __future__ import annotations

from typing import Final

from lance_core.errors import OversizedFile

MIB: Final = 1 << 20

LARGEST_REFERENCE: Final = MIB
"""A tag or branch. Stock files have 200 bytes; those of this package hold at most 64 KiB of metadata in addition."""
LARGEST_NOTES: Final = 16 * MIB
"""Properties noted on a transaction, which a server limits to 1 MiB by default before JSON escapes them."""
LARGEST_DELETIONS: Final = 256 * MIB
"""As an Arrow file 64 million rows of one fragment, as a bitmap 2^31: fragments have a million rows by default."""
LARGEST_MANIFEST: Final = 512 * MIB
"""A million fragments of a hundred columns have about 400 MiB: 350 bytes for the data file of a fragment, the rest for
its deletion file and row ids. An Overwrite stores the fragments twice. A manifest is rewritten by every commit, so
tables stay far below; the Protobuf library itself ends at 2 GiB."""
LARGEST_TRANSACTION: Final = LARGEST_MANIFEST
"""An Overwrite names all fragments of the version that it makes."""

_SMALLEST: Final = LARGEST_REFERENCE
"""No kind has a smaller bound, so the kind of smaller objects does not matter."""
_BY_DIRECTORY: Final[dict[str, int | None]] = {
    "_refs": LARGEST_REFERENCE,
    "_alter_transactions": LARGEST_NOTES,
    "_deletions": LARGEST_DELETIONS,
    "_transactions": LARGEST_TRANSACTION,
    "_versions": LARGEST_MANIFEST,
    "_staging": LARGEST_MANIFEST,
    "data": None,
    "_indices": None,
}
"""A key has the bound of its innermost directory that is listed here."""


def largest_size(key: str) -> int | None:
    """The bound on the bytes of the object at `key`; None for a kind without one."""
    for part in reversed(key.split("/")[:-1]):
        if part in _BY_DIRECTORY:
            return _BY_DIRECTORY[part]
    return None


def check_size(uri: str, key: str, size: int, at_most: int | None = None) -> None:
    """Raise `OversizedFile` for an object, below the root `uri`, that is larger than `at_most` or than its kind may be.

    To be called before the object is read.
    """
    if size <= _SMALLEST and at_most is None:
        return
    bounds = [bound for bound in (at_most, largest_size(key)) if bound is not None]
    if bounds and size > min(bounds):
        raise OversizedFile(uri, key, size, min(bounds))

"""Damage to the files of `__manifest` itself, and its repair: the file is put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lance

from namespace_server.directory.model.root_layout import MANIFEST_TABLE


def newest_manifest(root: Path) -> Path:
    """The file of the newest catalog version."""
    return min((root / MANIFEST_TABLE / "_versions").glob("*.manifest"))


def row_file(root: Path) -> Path:
    """A data file of the newest catalog version."""
    fragment = lance.dataset(str(root / MANIFEST_TABLE)).get_fragments()[-1]
    return root / MANIFEST_TABLE / "data" / fragment.data_files()[0].path


def deletion_file(root: Path) -> Path:
    """A deletion file of the newest catalog version: there is one once a table of `MANY` was dropped."""
    found = [
        file for each in lance.dataset(str(root / MANIFEST_TABLE)).get_fragments() if (file := each.deletion_file())
    ]
    return root / MANIFEST_TABLE / found[0]


MANY = [{"declare_table": {"id": [f"many{number}"]}} for number in range(64)]
"""Operations of a batch whose rows are too many to be written anew when one of them goes: see `deletion_file`."""


def truncate(path: Path) -> None:
    """Lose the second half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scramble(path: Path) -> None:
    """Replace a file by as many other bytes."""
    path.write_bytes(b"\x07" * path.stat().st_size)


DAMAGE: dict[str, tuple[Callable[[Path], Path], Callable[[Path], None], str]] = {
    "truncated manifest": (newest_manifest, truncate, "bytes: manifest file ends with"),
    "empty manifest": (
        newest_manifest,
        lambda path: path.write_bytes(b"") and None,
        "0 bytes: manifest file of 0 bytes",
    ),
    "missing row file": (row_file, Path.unlink, "found no file"),
    "truncated row file": (row_file, truncate, "bytes that are no data file"),
    "missing deletion file": (deletion_file, Path.unlink, "found no file"),
    "scrambled deletion file": (deletion_file, scramble, "bytes: deletion file"),
}
"""What is damaged, how, and what is found then."""


@contextmanager
def damaged(root: Path, kind: str) -> Iterator[tuple[str, str]]:
    """A file of the catalog is damaged within the block: its key below the root, and what a reader finds."""
    choose, harm, found = DAMAGE[kind]
    path = choose(root)
    whole = path.read_bytes()
    harm(path)
    try:
        yield str(path.relative_to(root)), found
    finally:
        path.write_bytes(whole)

"""Formats of files of rows, by the ends of their names and by their first bytes."""

from __future__ import annotations

import re
from typing import Final, Literal

from namespace_server.cli.files.refusals import FileRefused

FileFormat = Literal["parquet", "arrow", "csv", "jsonl"]
FORMATS: Final[tuple[FileFormat, ...]] = ("parquet", "arrow", "csv", "jsonl")
TEXT_FORMATS: Final = frozenset({"csv", "jsonl"})
_ENDS: Final[dict[str, FileFormat]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_TABBED: Final = frozenset({".tsv", ".tab"})
_COMPRESSED: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_MAGIC: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bz2"))
_PLAIN: Final = re.compile(rb"[\x20-\x7e\t\r\n]*")
"""Bytes with which a text can begin as well."""
_OTHERS: Final = (
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet"),
    (b"ORC", "ORC"),
    (b"SQLite format 3", "an SQLite database"),
    (b"%PDF", "PDF"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"\x04\x22\x4d\x18", "LZ4"),
)
HEAD_BYTES: Final = 16


def format_of(name: str, given: str | None = None) -> FileFormat:
    """The format of a file, by its name unless it is given. Raises `FileRefused` if the name has none."""
    compression, end = compression_of(name), _end(name)
    found = _ENDS.get(end) if given is None else next((each for each in FORMATS if each == given), None)
    if found is None:
        raise FileRefused(f"{given or name}: expected one of {', '.join(_ENDS)} or --format {', '.join(FORMATS)}")
    if compression is not None and found not in TEXT_FORMATS:
        raise FileRefused(
            f"{name}: expected {found} that is not compressed as a whole: it compresses its columns itself"
        )
    return found


def compression_of(name: str) -> str | None:
    """How the name of a file says that it is compressed."""
    return _COMPRESSED.get(f".{name.lower().rpartition('.')[2]}")


def delimiter_of(name: str) -> str | None:
    """The delimiter that the name of a file says, None if it says none."""
    return "\t" if _end(name) in _TABBED else None


def found_compression(name: str, head: bytes) -> str | None:
    """How a file is compressed, by its first bytes. Raises `FileRefused` for what is not text, nor compressed."""
    is_text = _PLAIN.fullmatch(head) is not None
    found = next((codec for magic, codec in _MAGIC if head.startswith(magic) and not is_text), None)
    said = compression_of(name)
    if said is not None and found != said and head:
        raise FileRefused(f"expected {said}, as its name says, found {found or 'something else'}")
    if not is_text and (other := [kind for magic, kind in _OTHERS if head.startswith(magic)]):
        raise FileRefused(f"expected text, found {other[0]}")
    return found


def _end(name: str) -> str:
    base = name.lower().replace("\\", "/").rpartition("/")[2]
    stem, point, end = base.rpartition(".")
    if f".{end}" in _COMPRESSED and point:
        end = stem.rpartition(".")[2] if "." in stem else ""
    return f".{end}"

"""Files of API keys: reading them, and changing them while servers read them."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from namespace_server.secret_texts import parse_json, parse_toml

HASHED: Final = "sha256:"
_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key of a file: its principal, its SHA-256 digest in hex, and whether the file holds the key itself."""

    principal: str
    digest: str
    plain: bool


def new_key() -> str:
    """A random key of 43 characters."""
    return secrets.token_urlsafe(_KEY_BYTES)


def hashed(key: str) -> str:
    """The entry of a file in place of a key: `sha256:` and its digest."""
    return HASHED + _digest(key)


def _digest(entry: str) -> str:
    """In hex, of a key or of the entry that stands for one."""
    if entry.startswith(HASHED):
        return entry.removeprefix(HASHED).lower()
    return hashlib.sha256(entry.encode()).hexdigest()


def read_mapping(path: Path) -> dict[str, object]:
    """The entries of a file. Raises `OSError`; `ValueError` that shows nothing of its text."""
    return _parse(path, _read(path))


def who_may(act: Literal["read", "write"], path: Path) -> bool:
    """Whether every user of the machine may do this with a file."""
    return bool(path.stat().st_mode & (stat.S_IROTH if act == "read" else stat.S_IWOTH))


def _read(path: Path) -> bytes:
    if path.exists() and not path.is_file():  # a pipe would block for ever
        raise ValueError("expected a regular file, found none")
    return path.read_bytes()


def _parse(path: Path, data: bytes) -> dict[str, object]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"expected UTF-8, found another byte at offset {error.start}") from None
    return parse_json(text) if path.suffix == ".json" else parse_toml(text)


def list_keys(path: Path) -> list[ListedKey]:
    """The keys of a file, in its order. Raises as `read_mapping` does."""
    return [
        ListedKey(str(principal), _digest(key), not key.startswith(HASHED))
        for key, principal in read_mapping(path).items()
    ]


def add_entry(path: Path, entry: str, principal: str) -> None:
    """Add an entry to a file, or make the file. What it has stays as it is written, with its comments.

    Raises:
        OSError: The file cannot be read or replaced.
        ValueError: It is no file of keys, or another process has changed it since it was read.
    """
    path = path.resolve()
    before = _read(path) if path.exists() else None
    entries = {} if before is None else _parse(path, before)
    if path.suffix == ".json":
        _replace(path, before, _json(entries | {entry: principal}))
        return
    text = before or b""
    line = f"{json.dumps(entry)} = {json.dumps(principal, ensure_ascii=False)}\n".encode()
    _replace(path, before, text + (b"\n" if text and not text.endswith(b"\n") else b"") + line)


def remove_entries(path: Path, digests: Collection[str]) -> None:
    """Remove the keys with these digests from a file. The other lines stay as they are written.

    Raises:
        OSError: The file cannot be read or replaced.
        ValueError: It is no file of keys, an entry is not one line, or another process has changed it meanwhile.
    """
    path = path.resolve()
    before = _read(path)
    kept = {key: principal for key, principal in _parse(path, before).items() if _digest(key) not in digests}
    if path.suffix == ".json":
        _replace(path, before, _json(kept))
        return
    after = b"".join(line for line in before.splitlines(keepends=True) if not _is_removed(path, line, kept))
    with suppress(ValueError):
        if _parse(path, after) == kept:
            _replace(path, before, after)
            return
    raise ValueError("expected each key on a line of its own, found others: remove it by hand")


def _is_removed(path: Path, line: bytes, kept: Mapping[str, object]) -> bool:
    try:
        return any(key not in kept for key in _parse(path, line))
    except ValueError:
        return False


def _json(entries: Mapping[str, object]) -> bytes:
    return (json.dumps(entries, indent=2, ensure_ascii=False) + "\n").encode()


def _replace(path: Path, before: bytes | None, after: bytes) -> None:
    """Put a file in the place of another, durably: readers see the one or the other, with its owner and rights."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        if before is None:
            temporary.chmod(0o644)  # it holds digests of random keys, and the server may be another user's
        else:
            shutil.copymode(path, temporary)
            with suppress(PermissionError):
                os.chown(temporary, path.stat().st_uid, path.stat().st_gid)
        if (path.read_bytes() if path.exists() else None) != before:
            raise ValueError("expected the file as it was read, found it changed by another process: repeat this")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

"""Authentication by static API keys, in `x-api-key` or as a bearer token."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lance_namespace.errors import UnauthenticatedError

from namespace_server.rest.key_file import HASHED, read_mapping

MIN_KEY_LENGTH: Final = 8
"""Characters that a key has at least."""
MAX_PRINCIPAL_LENGTH: Final = 255
_INTERVAL = 1.0
_JOIN_TIMEOUT = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Principals by the SHA-256 digest of their key. A principal may have several keys."""

    principals: tuple[tuple[bytes, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, keys: Mapping[str, object]) -> KeyRing:
        """The ring of a mapping from keys to names of principals.

        A key is plain text of at least 8 printable characters, or `sha256:` and the hex digest of its UTF-8 bytes. A
        principal is 1 to 255 printable characters.

        Raises:
            ValueError: a key or a principal is none, or one key belongs to two principals. The message names the
                position of the entry and never holds a key or a principal.
        """
        found: dict[bytes, str] = {}
        for position, (key, principal) in enumerate(keys.items(), 1):
            try:
                digest, name = _digest(key), _principal(principal)
            except ValueError as error:
                raise ValueError(f"entry {position}: {error}") from None
            if found.setdefault(digest, name) != name:
                raise ValueError(f"entry {position}: expected one principal for each key, found a second one")
        return cls(tuple(found.items()))

    def find(self, key: bytes) -> str | None:
        """The principal of `key`, None if the key is empty or unknown.

        Each known digest is compared in constant time, and all of them are: the duration does not depend on how much
        of a key was right.
        """
        digest = hashlib.sha256(key).digest()
        found = [principal for known, principal in self.principals if hmac.compare_digest(known, digest)]
        return found[0] if found and key else None


class Authenticator:
    """The principal of a request, by API key. Without any key every request is anonymous and let in.

    `keys` are always valid. The keys in `file` can change while the process runs: between `start` and `stop` a thread
    looks at the file once a second, and reads it again when its modification time, size or inode has changed or
    `reload_soon` was called. A file that cannot be used changes nothing: the keys in force stay, and the log says why,
    without any key. `principal` may be called by any thread, with or without `start`.

    Raises:
        ValueError: a key is wrong (see `KeyRing.parse`), or `file` is no mapping of keys or holds none.
        OSError: `file` cannot be read.
    """

    def __init__(self, keys: Mapping[str, str], file: Path | None = None) -> None:
        self._keys = dict(keys)
        self._file = file
        self._seen = None if file is None else _signature(file)
        self._ring = self._read()
        self._wanted = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def required(self) -> bool:
        """Whether a request needs a key. Never changes: a file that holds no key is refused."""
        return bool(self._ring.principals)

    @property
    def ring(self) -> KeyRing:
        """The keys in force: another object after each reload. What was let in under one ring may not be under it."""
        return self._ring

    def principal(self, headers: Mapping[bytes, bytes]) -> str | None:
        """The principal of a request with these (lower-case) headers; None if no keys are configured.

        `x-api-key` wins over `authorization`: stock clients that are given both send both.

        Raises:
            UnauthenticatedError: the key is missing, empty or unknown.
        """
        ring = self._ring
        if not ring.principals:
            return None
        presented = headers.get(b"x-api-key")
        if presented is None:
            scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
            presented = token.strip()
            if scheme.lower() != b"bearer" or not presented:
                raise UnauthenticatedError("credentials: expected x-api-key or Authorization: Bearer, found neither")
        if (found := ring.find(presented)) is None:
            raise UnauthenticatedError("credentials: the key is not known")
        return found

    def start(self) -> None:
        """Watch the file in a daemon thread. Does nothing without a file, or when the thread runs already."""
        if self._file is None or self._thread is not None:
            return
        self._stopping.clear()
        self._thread = threading.Thread(target=self._watch, name="api-keys", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it. The keys in force stay valid."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join(_JOIN_TIMEOUT)
            self._thread = None

    def reload_soon(self) -> None:
        """Have the thread read the file again within a second. Safe in a signal handler."""
        self._wanted = True

    def reload(self) -> bool:
        """Read the file now and put its keys in force, all at once. False if it cannot be used: nothing changes."""
        try:
            ring = self._read()
        except (ValueError, OSError) as error:
            _log.error("%s; the API keys in force stay", error)
            return False
        self._ring = ring
        _log.info("API keys read again from %s: %d in force", self._file, len(ring.principals))
        return True

    def _watch(self) -> None:
        while not self._stopping.wait(_INTERVAL):
            assert self._file is not None
            found = _signature(self._file)
            if self._wanted or found != self._seen:
                self._wanted, self._seen = False, found
                self.reload()

    def _read(self) -> KeyRing:
        ring = KeyRing.parse(self._keys)
        if self._file is None:
            return ring
        try:
            if not (listed := read_mapping(self._file)):
                raise ValueError("expected at least one key, found none")
            added = KeyRing.parse(listed)
        except ValueError as error:
            raise ValueError(f"api_keys_file {self._file}: {error}") from None
        known = dict(ring.principals)
        if any(known.get(digest, name) != name for digest, name in added.principals):
            raise ValueError(f"api_keys_file {self._file}: a key belongs to another principal in api_keys")
        return KeyRing(tuple((known | dict(added.principals)).items()))


def _signature(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file does; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - follows links, as mounted secrets are
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _digest(key: str) -> bytes:
    if key.startswith(HASHED):
        return _parse_digest(key.removeprefix(HASHED))
    if len(key) < MIN_KEY_LENGTH:
        raise ValueError(f"expected a key of at least {MIN_KEY_LENGTH} characters, found {len(key)}")
    if not key.isprintable() or key != key.strip():
        raise ValueError("expected a key of printable characters without spaces at its ends")
    return hashlib.sha256(key.encode()).digest()


def _parse_digest(text: str) -> bytes:
    if re.fullmatch(r"[0-9a-fA-F]{64}", text) is None:
        raise ValueError(f"expected sha256: and 64 hex digits, found {len(text)} characters")
    return bytes.fromhex(text)


def _principal(name: object) -> str:
    if not isinstance(name, str):
        raise ValueError(f"expected the name of a principal as text, found {type(name).__name__}")
    if not name.strip() or len(name) > MAX_PRINCIPAL_LENGTH or not name.isprintable():
        raise ValueError(f"expected a principal of 1 to {MAX_PRINCIPAL_LENGTH} printable characters")
    return name

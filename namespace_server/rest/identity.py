"""Authentication by static API keys, in `x-api-key` or as a bearer token, and by tokens of OpenID Connect."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lance_namespace.errors import UnauthenticatedError

from lance_core.amounts import counted
from namespace_server.rest.key_file import HASHED, read_mapping, who_may
from namespace_server.rest.principals import MAX_PRINCIPAL_LENGTH, RequestIdentity, TokenRefused
from namespace_server.rest.wrong_keys import SHOWN_DIGITS, TooManyWrongKeys, WrongKeys

if TYPE_CHECKING:
    from namespace_server.rest.access_tokens import AccessTokens

MIN_KEY_LENGTH: Final = 8
"""Characters that a key has at least."""
SHORT_KEY: Final = 16
"""Characters below which a key is warned about."""
_DOTS: Final = 2
"""In a signed token, between its parts."""
_INTERVAL = 1.0
_JOIN_TIMEOUT = 5.0

_log = logging.getLogger(__name__)


class KeyRefused(UnauthenticatedError):
    """The key is not known. `key_digest` is the beginning of its SHA-256 digest in hex, for the log."""

    def __init__(self, digest: bytes) -> None:
        super().__init__("credentials: the key is not known")
        self.key_digest = digest.hex()[:SHOWN_DIGITS]


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Identities by the SHA-256 digest of their key. A principal may have several keys."""

    identities: Mapping[bytes, RequestIdentity] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, keys: Mapping[str, object]) -> KeyRing:
        """The ring of a mapping from keys to names of principals.

        A key is plain text of at least 8 printable characters, or `sha256:` and the hex digest of its UTF-8 bytes. A
        principal is 1 to 255 printable characters.

        Raises:
            ValueError: a key or a principal is none, or one key belongs to two principals. The message names the
                position of the entry and never holds a key or a principal.
        """
        found: dict[bytes, RequestIdentity] = {}
        for position, (key, principal) in enumerate(keys.items(), 1):
            try:
                digest, name = _digest(key), _principal(principal)
            except ValueError as error:
                raise ValueError(f"entry {position}: {error}") from None
            if found.setdefault(digest, RequestIdentity(name)).principal != name:
                raise ValueError(f"entry {position}: expected one principal for each key, found a second one")
        return cls(found)

    def find(self, key: bytes) -> str | None:
        """The principal of `key`, None if the key is empty or unknown."""
        found = self.of_digest(hashlib.sha256(key).digest()) if key else None
        return None if found is None else found.principal

    def of_digest(self, digest: bytes) -> RequestIdentity | None:
        """Who has the key with this digest, None if it is unknown.

        One look-up, whatever the number of keys. How long it takes may depend on the digest, which hides how much of
        a key was right.
        """
        return self.identities.get(digest)


class Authenticator:
    """The caller of a request, by API key or token. Without any key and issuer every request is anonymous and let in.

    `keys` are always valid. The keys in `file` can change while the process runs: between `start` and `stop` a thread
    looks at the file once a second, and reads it again when its modification time, size or inode has changed or
    `reload_soon` was called. A file that cannot be used changes nothing: the keys in force stay, and the log says why,
    without any key. Of one address, `wrong_keys` wrong keys and tokens are looked at per minute; 0: any number.
    `identify` is called by one thread, with or without `start`. `tokens` judges bearer tokens that are no API keys.

    Raises:
        ValueError: a key is wrong (see `KeyRing.parse`), `file` is no mapping of keys or holds none, or the principal
            of a key could be one of a token.
        OSError: `file` cannot be read.
    """

    def __init__(
        self,
        keys: Mapping[str, str],
        file: Path | None = None,
        wrong_keys: int = 0,
        tokens: AccessTokens | None = None,
    ) -> None:
        self._tokens = tokens
        self._wrong = WrongKeys(wrong_keys)
        self._keys = dict(keys)
        self._file = file
        self._seen = None if file is None else _signature(file)
        self._ring = self._read()
        self._wanted = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def required(self) -> bool:
        """Whether a request needs a key or a token. Never changes: a file that holds no key is refused."""
        return self._tokens is not None or bool(self._ring.identities)

    @property
    def ring(self) -> KeyRing:
        """The keys in force: another object after each reload. What was let in under one ring may not be under it."""
        return self._ring

    def identify(self, headers: Mapping[bytes, bytes], address: str | None = None) -> RequestIdentity | None:
        """The caller of a request with these (lower-case) headers; None if no keys and no issuers are configured.

        `x-api-key` wins over `authorization`: stock clients that are given both send both. `address` is that of the
        client.

        Raises:
            KeyRefused: the key is empty or unknown.
            TokenRefused: the token is not valid.
            TooManyWrongKeys: too many keys of this address were, and this one was not right from there before.
            UnauthenticatedError: the key is missing.
            KeysNeeded: the token can be judged after a look at the keys of its issuer.
            TokenNotJudged: it cannot be judged for now.
        """
        if not self.required:
            return None
        is_bearer = False
        presented = headers.get(b"x-api-key")
        if presented is None:
            scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
            presented, is_bearer = token.strip(), True
            if scheme.lower() != b"bearer" or not presented:
                raise UnauthenticatedError("credentials: expected x-api-key or Authorization: Bearer, found neither")
        digest = hashlib.sha256(presented).digest()
        if (seconds := self._wrong.wait(address, digest)) is not None:
            raise TooManyWrongKeys(seconds, digest)
        try:
            found = self._ring.of_digest(digest) if presented else None
            if found is None:
                if self._tokens is None or not is_bearer or presented.count(b".") != _DOTS:
                    raise KeyRefused(digest)
                found = self._tokens.judge(presented, digest)
        except KeyRefused:
            self._wrong.failed(address)
            raise
        except TokenRefused as refused:
            if refused.is_try:
                self._wrong.failed(address)
            raise
        self._wrong.succeeded(address, digest)
        return found

    def read_issuers(self) -> None:
        """Begin to read the keys of the issuers, on the running event loop: the first token need not wait for them."""
        if self._tokens is not None:
            self._tokens.begin()

    def weaknesses(self) -> list[str]:
        """Warnings about keys in force that are easy to guess, to read or to replace. No text has any of a key."""
        listed = {} if self._file is None else read_mapping(self._file)
        plain = [key for key in (*self._keys, *listed) if not key.startswith(HASHED)]
        found = []
        if short := sum(len(key) < SHORT_KEY for key in plain):
            found.append(f"{counted(short, 'API key')} of fewer than {SHORT_KEY} characters: make long random ones")
        if self._file is not None:
            if who_may("write", self._file):
                found.append(f"{self._file}: every user of this machine may write it, and add keys: chmod o-w")
            if any(not key.startswith(HASHED) for key in listed) and who_may("read", self._file):
                found.append(
                    f"{self._file}: every user of this machine may read the keys in it: chmod o-r, or hash them"
                )
        return found

    def warn(self) -> None:
        """Log what `weaknesses` finds. A file that cannot be read now has none that would be news."""
        with suppress(OSError, ValueError):
            for weakness in self.weaknesses():
                _log.warning("API keys: %s", weakness)

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
        self.warn()
        _log.info("API keys read again from %s: %d in force", self._file, len(ring.identities))
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
        self._check_names(ring, "api_keys")
        if self._file is None:
            return ring
        place = f"api_keys_file {self._file}"
        try:
            if not (listed := read_mapping(self._file)):
                raise ValueError("expected at least one key, found none")
            added = KeyRing.parse(listed)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        self._check_names(added, place)
        known = ring.identities
        if any(known.get(digest, found) != found for digest, found in added.identities.items()):
            raise ValueError(f"{place}: a key belongs to another principal in api_keys")
        return KeyRing({**known, **added.identities})

    def _check_names(self, ring: KeyRing, place: str) -> None:
        """Raise `ValueError` for a key whose principal could be that of a token."""
        prefixes = () if self._tokens is None else self._tokens.prefixes
        for found in ring.identities.values():
            if prefix := next(filter(found.principal.startswith, prefixes), None):
                raise ValueError(
                    f"{place}: expected no principal that begins as those of tokens do ({prefix}), found one"
                )


def _signature(path: Path) -> tuple[int, int, int] | None:
    """A value that changes when the file does; None if there is no file."""
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

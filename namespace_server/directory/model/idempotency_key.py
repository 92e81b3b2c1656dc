"""The form of an idempotency key (rule A1). Its use is checked by `planning.planner.replay_committed`."""

from __future__ import annotations

from typing import Final

from lance_namespace.errors import InvalidInputError

MAX_LENGTH: Final = 255


def check_idempotency_key(key: str) -> None:
    """Raise InvalidInputError (13) unless `key` is 1 to 255 printable ASCII characters."""
    if not 0 < len(key) <= MAX_LENGTH:
        raise InvalidInputError(
            f"idempotency key: expected 1 to {MAX_LENGTH} printable ASCII characters, found {len(key)}"
        )
    if not (key.isascii() and key.isprintable()):
        other = next(char for char in key if not (char.isascii() and char.isprintable()))
        raise InvalidInputError(f"idempotency key: expected printable ASCII characters, found {other!a}")

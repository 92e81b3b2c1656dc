"""Which strings may be an idempotency key."""

from __future__ import annotations

import pytest
from lance_namespace.errors import InvalidInputError

from namespace_server.directory.model.limits import check_idempotency_key


@pytest.mark.parametrize("key", ["k", " ", "~" * 255, "a key / of ours"])
def test_printable_ascii_up_to_255_characters(key: str) -> None:
    check_idempotency_key(key)


@pytest.mark.parametrize(
    ("key", "found"),
    [("", "found 0"), ("k" * 256, "found 256"), ("ключ", r"found '\\u043a'"), ("a\nb", r"found '\\n'")],
)
def test_a_refusal_names_what_was_found(key: str, found: str) -> None:
    with pytest.raises(InvalidInputError, match=found):
        check_idempotency_key(key)

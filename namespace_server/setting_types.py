"""Types of single settings: texts of a form, numbers within bounds, lists, secrets."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from namespace_server.directory.manifest_table.peer_secret import MIN_SECRET_LENGTH
from namespace_server.rest.identity import KeyRing


def split_list(value: object) -> object:
    """The items of a text: a JSON array, or items between commas."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return [item for part in value.split(",") if (item := part.strip())]
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("expected a JSON array, or items between commas") from None


def parse_list(value: object) -> object:
    """The items of a text that is a JSON array."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("expected a JSON array") from None


def check_keys(value: object) -> object:
    """Refuse wrong keys before pydantic sees them: its errors would name the key that they are about."""
    if not isinstance(value, Mapping):
        raise ValueError(f"expected keys and their principals, found {type(value).__name__}")
    KeyRing.parse(plain_keys(value))
    return value


def matching(pattern: str, expected: str) -> AfterValidator:
    """A check that a text has a form."""

    def check(item: str) -> str:
        if re.fullmatch(pattern, item) is None:
            raise ValueError(f"{item!r}: expected {expected}")
        return item

    return AfterValidator(check)


def _check_network(item: str) -> str:
    ipaddress.ip_network(item, strict=False)
    return item


Network = Annotated[str, AfterValidator(_check_network)]
Host = Annotated[str, matching(r"[^\s/@]+", "a host name without scheme and path")]
Origin = Annotated[str, matching(r"[a-z][a-z0-9+.-]*://[^\s/]+", "scheme://host or scheme://host:port")]
Location = Annotated[str, matching(r"/.*|[A-Za-z][A-Za-z0-9+.-]*://.+", "an absolute path or a URI")]
Url = Annotated[str, matching(r"https?://[^\s/@?#]+", "http://host:port or https://host:port")]
Principal = Annotated[str, Field(min_length=1, max_length=255)]
Items = BeforeValidator(split_list)
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Positive = Annotated[int, Field(gt=0)]
Secret = Annotated[SecretStr, Field(min_length=1)]


def _check_length(secret: SecretStr) -> SecretStr:
    if len(secret.get_secret_value()) < MIN_SECRET_LENGTH:
        raise ValueError(f"expected at least {MIN_SECRET_LENGTH} characters, found {len(secret.get_secret_value())}")
    return secret


SharedSecret = Annotated[SecretStr, AfterValidator(_check_length)]


def plain_keys(keys: Mapping[Any, Any]) -> dict[str, Any]:
    """Keys as texts, with their principals."""
    return {key.get_secret_value() if isinstance(key, SecretStr) else str(key): name for key, name in keys.items()}

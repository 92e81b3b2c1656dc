"""JSON and TOML texts that may hold secrets: errors state the position, and nothing of the text."""

from __future__ import annotations

import json
import re
import tomllib


def parse_json(text: str) -> dict[str, object]:
    """The object in a JSON text. Raises `ValueError` that shows positions, and nothing of the text."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"expected a JSON object, found malformed JSON at line {error.lineno} column {error.colno}"
        ) from None
    except RecursionError:
        raise ValueError("expected a JSON object, found deeply nested JSON") from None
    if not isinstance(found, dict):
        raise ValueError(f"expected a JSON object, found {type(found).__name__}")
    return found


def parse_toml(text: str) -> dict[str, object]:
    """The table in a TOML text. Raises `ValueError` that shows the position, and nothing of the text."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = re.search(r"\(at (line \d+, column \d+|end of document)\)$", str(error))
        raise ValueError(f"expected TOML, found malformed TOML{f' at {place[1]}' if place else ''}") from None

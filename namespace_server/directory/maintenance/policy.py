"""The maintenance policy of a table: properties of the table, of the namespaces above it, and defaults. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot

PREFIX: Final = "maintenance."
"""The prefix of the names of the properties; the rest is the name of an attribute of `Policy`."""


class WrongPolicy(ValueError):
    """A property has no such name, or its value is not of its kind. The text names it."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The maintenance that a table may get.

    Attributes:
        compact: Whether the table is compacted.
        target_rows: Rows that a fragment should have. Neighbours with fewer are joined.
        target_bytes: Bytes that a fragment should have at most: wide rows make fragments of fewer rows.
        rewrite_bytes: Bytes that one commit rewrites, about. The fragments that become one are never split.
        min_fragments: Number of fragments to join from which a table is compacted.
        deleted_share: Share of deleted rows, from 0 to 1, above which a fragment is rewritten without them.
        quiet_seconds: Time without other commits than appends, before the table is compacted.
        optimize_indices: Whether indices are extended to the rows that they do not cover.
        unindexed_rows: Number of rows that an index does not cover from which it is extended.
        unindexed_share: Share of the table's rows, from 0 to 1, that these must be, too.
        max_segments: Number of segments of an index above which they become one.
    """

    compact: bool = True
    target_rows: int = 1 << 20
    target_bytes: int = 512 << 20
    rewrite_bytes: int = 1 << 30
    min_fragments: int = 4
    deleted_share: float = 0.1
    quiet_seconds: int = 60
    optimize_indices: bool = True
    unindexed_rows: int = 1 << 14
    unindexed_share: float = 0.1
    max_segments: int = 4


def policy_of(snapshot: CatalogSnapshot, table_id: ObjectId, defaults: Mapping[str, str]) -> Policy:
    """The policy of a table: `defaults`, over them the properties of its namespaces, outermost first, over all its own.

    `defaults` has the names of the properties. Raises `WrongPolicy`.
    """
    given = dict(defaults)
    for depth in range(1, len(table_id)):
        namespace = snapshot.namespace(table_id[:depth])
        given |= {} if namespace is None else _ours(namespace.properties)
    table = snapshot.table(table_id)
    given |= {} if table is None else _ours(table.properties)
    return read_policy(given)


def read_policy(properties: Mapping[str, str]) -> Policy:
    """The policy that these properties state. Raises `WrongPolicy`."""
    values: dict[str, Any] = {}
    for name, text in properties.items():
        attribute = name.removeprefix(PREFIX)
        if not name.startswith(PREFIX) or attribute not in _READERS:
            known = ", ".join(PREFIX + each for each in _READERS)
            raise WrongPolicy(f"property {name}: expected one of {known}")
        try:
            values[attribute] = _READERS[attribute](text)
        except ValueError as error:
            raise WrongPolicy(f"property {name}: {error}") from None
    return Policy(**values)


def _ours(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name.startswith(PREFIX)}


def _boolean(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(f"expected true or false, found {text!r}")
    return text == "true"


def _at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= _MOST):
            raise ValueError(f"expected an integer from {least} to {_MOST}, found {text!r}")
        return int(text)

    return read


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"expected a number from 0 to 1, found {text!r}")
    return value


_MOST: Final = 1 << 50
_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "compact": _boolean,
    "target_rows": _at_least(1),
    "target_bytes": _at_least(1),
    "rewrite_bytes": _at_least(1),
    "min_fragments": _at_least(2),
    "deleted_share": _share,
    "quiet_seconds": _at_least(0),
    "optimize_indices": _boolean,
    "unindexed_rows": _at_least(1),
    "unindexed_share": _share,
    "max_segments": _at_least(1),
}
assert set(_READERS) == {field.name for field in fields(Policy)}

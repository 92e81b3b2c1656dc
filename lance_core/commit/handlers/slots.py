"""Slots: the names that are claimed, each identified by a base URI and a number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lance_core.format.naming import VERSIONS_DIRECTORY, parse_manifest_name
from lance_core.storage.keys import quote_path
from lance_core.storage.port import ObjectStore

OTHER = 0
"""The number of a name that is not a manifest. Versions begin with 1."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A name to be claimed, identified in the same way by all writers, however they opened the store.

    A manifest is version `number` of the table or branch at `base_uri`. Any other key is `OTHER` of its own URI.
    """

    key: str
    base_uri: str
    number: int
    uri: str

    @property
    def is_manifest(self) -> bool:
        """Whether it is the canonical name of a version."""
        return self.number != OTHER


def slot_number(key: str) -> int:
    """The version of which `key` is the canonical manifest name; `OTHER` for every other key."""
    directory, _, name = key.rpartition("/")
    if directory.rpartition("/")[2] != VERSIONS_DIRECTORY:
        return OTHER
    parsed = parse_manifest_name(name)
    return OTHER if parsed is None else parsed[0]


def find_slot(root: str, key: str) -> Slot:
    """The slot of a key in the store with the root URI `root` (see `root_of`)."""
    uri = uri_of(root, key)
    number = slot_number(key)
    base_uri = uri if number == OTHER else uri_of(root, key.rpartition("/")[0].rpartition("/")[0])
    return Slot(key, base_uri, number, uri)


def root_of(store: ObjectStore) -> str:
    """The URI of a store's root in an external manifest store. Symbolic links of a local directory are resolved."""
    if not store.uri.startswith("file://"):
        return f"az://{store.uri.removeprefix('abfs://')}" if store.uri.startswith("abfs://") else store.uri
    directory = Path(unquote(urlsplit(store.uri).path) or "/").resolve()
    return "file://" + quote_path(str(directory).rstrip("/"))


def uri_of(root: str, key: str) -> str:
    """The URI of a key, or of the root for the key ''."""
    return f"{root}/{quote_path(key)}" if key else root

"""The slots of names, and the root URI of a store in an external manifest store."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_core.commit.handlers.slots import OTHER, Slot, find_slot, root_of, slot_number
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore


@pytest.mark.parametrize("scheme", NamingScheme)
@pytest.mark.parametrize("base", ["", "t", "a b/%41/t$x", "t/tree/dev"])
def test_a_version_is_numbered(base: str, scheme: NamingScheme) -> None:
    key = manifest_path(base, 7, scheme)
    slot = find_slot("s3://bucket/x", key)
    assert (slot.number, slot.is_manifest, slot_number(key)) == (7, True, 7)
    assert slot.uri.startswith(f"{slot.base_uri}/_versions/")


@pytest.mark.parametrize(
    "key",
    [
        "t/_refs/tags/x.json",
        "t/_versions/7.manifest-0b2f5c9e-0000-4000-8000-000000000000",
        "t/_versions/d9223372036854775809.manifest",
        "t/_versions/latest_version_hint.json",
        "t/_versions/below/7.manifest",
        "7.manifest",
        "t_versions/7.manifest",
    ],
)
def test_other_keys_are_claimed_under_their_own_uri(key: str) -> None:
    slot = find_slot("s3://bucket/x", key)
    assert (slot.number, slot.is_manifest, slot.base_uri) == (OTHER, False, slot.uri)


def test_a_directory_has_one_uri(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a b")
    roots = [root_of(LocalStore(path, "none")) for path in (tmp_path / "a b", tmp_path / "link", tmp_path / "c/../a b")]
    assert set(roots) == {f"file://{tmp_path}/a%20b"}
    whole = find_slot(root_of(LocalStore(tmp_path, "none")), "a b/t/_versions/7.manifest")
    assert whole == Slot(whole.key, f"{roots[0]}/t", 7, f"{roots[0]}/t/_versions/7.manifest")
    assert find_slot(root_of(LocalStore("/", "none")), "t/_versions/7.manifest").base_uri == "file:///t"


def test_a_container_has_one_uri_by_either_scheme() -> None:
    store = MemoryStore()
    store.uri = "abfs://container/x"
    assert root_of(store) == "az://container/x"
    store.uri = "s3://bucket/x"
    assert root_of(store) == "s3://bucket/x"

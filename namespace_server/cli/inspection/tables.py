"""Inspects a path or URI: one file, or a version of a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from lance_core.errors import LanceCoreError, ReferenceNotFound
from lance_core.format.naming import TRANSACTIONS_DIRECTORY, branch_base, join_key, parse_transaction_name
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.tables.branches import Branches
from lance_core.tables.tags import Tags
from lance_core.versions import get_listed, list_versions
from namespace_server.cli.inspection.files import Description, file_format, inspect_file

__all__ = ["inspect_table", "inspect_uri"]


def inspect_uri(
    target: str | os.PathLike[str],
    *,
    version: int | None = None,
    ref: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Description:
    """Describe the file at `target`, or a version of the table there if its name is not that of a file.

    Args:
        target: The path or URI of a file or of a table's root.
        version: The version; the newest by default.
        ref: A tag or branch of the table; None for main.
        storage_options: Options of the store, by Lance's own keys.

    Raises:
        NotFound: There is no such file.
        ReferenceNotFound: There is no such table, version, tag or branch.
        CorruptFile: The file cannot be decoded.
        UnsupportedFeature: The file is of another kind.
        StorageError: The URI or the options are not valid for any store, or the store failed.
    """
    text = os.fspath(target).rstrip("/")
    if version is None and ref is None and file_format(text) is not None:
        directory, _, name = text.rpartition("/")
        if "://" in text and "/" not in unquote(name):
            name = unquote(name)
        store = open_store(directory or ("/" if text.startswith("/") else "."), storage_options)
        return {"uri": store.object_uri(name), **inspect_file(text, store.get(name))}
    return inspect_table(open_store(text, storage_options), "", version=version, ref=ref)


def inspect_table(
    store: ObjectStore, location: str, *, version: int | None = None, ref: str | None = None
) -> Description:
    """Describe a version of the table at the key `location`, with the table's references and version numbers.

    A transaction that is not inline is read from its file. Versions with unknown features are described, too. Raises
    as `inspect_uri` does.
    """
    tags, branches = Tags(store, location).list(), Branches(store, location).list()
    branch, number = _resolve(store, location, ref, version, tags, branches)
    base = branch_base(location, branch)
    locations = list_versions(store, base)
    found = [entry for entry in locations if number is None or entry.version == number][-1:]
    if not found:
        what = f"version {number}" if number is not None else "a version"
        there = f"versions {locations[0].version} to {locations[-1].version}" if locations else "none"
        raise ReferenceNotFound(f"{store.object_uri(base)}: expected {what}, found {there}")
    described = inspect_file(found[0].path, get_listed(store, found[0]))
    if described["transaction"] is None:
        _add_transaction(store, base, described)
    return {
        "uri": store.object_uri(found[0].path),
        **described,
        "versions": {"count": len(locations), "first": locations[0].version, "last": locations[-1].version},
        "tags": {name: {"version": tag.version, "branch": tag.branch} for name, tag in tags.items()},
        "branches": {
            name: {"parent_version": entry.parent_version, "parent_branch": entry.parent_branch}
            for name, entry in branches.items()
        },
    }


def _resolve(
    store: ObjectStore,
    location: str,
    ref: str | None,
    version: int | None,
    tags: Mapping[str, Any],
    branches: Mapping[str, Any],
) -> tuple[str | None, int | None]:
    if ref is None or ref == "main":
        return None, version
    if ref in tags and ref in branches:
        raise ReferenceNotFound(f"{ref} at {store.object_uri(location)}: expected a tag or a branch, found both")
    if ref in tags:
        tag = tags[ref]
        if version not in {None, tag.version}:
            raise ReferenceNotFound(f"version {version} of tag {ref}: it names version {tag.version}")
        return tag.branch, tag.version
    if ref in branches:
        return ref, version
    known = ", ".join(sorted({*tags, *branches})) or "none"
    raise ReferenceNotFound(f"{ref} at {store.object_uri(location)}: expected a tag or branch, found {known}")


def _add_transaction(store: ObjectStore, base: str, described: Description) -> None:
    name = described["transaction_file"]
    if name is None or parse_transaction_name(name) is None:
        return
    try:
        path = join_key(base, TRANSACTIONS_DIRECTORY, name)
        transaction = inspect_file(path, store.get(path))
    except LanceCoreError as error:
        described["findings"].append(f"the transaction cannot be read: {error}")
        return
    described["transaction"] = {key: transaction[key] for key in transaction if key not in {"kind", "findings"}}
    described["findings"] += transaction["findings"]

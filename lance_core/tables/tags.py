"""The tags of a table, as files below its root. Its branches are in `branches`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lance_core.errors import NotFound, ReferenceNotFound
from lance_core.format.naming import join_key
from lance_core.format.refs import (
    TAGS_DIRECTORY,
    TagContents,
    check_tag_name,
    decode_tag,
    encode_tag,
    format_timestamp,
    tag_path,
)
from lance_core.storage.port import ObjectStore
from lance_core.tables.branches import is_being_deleted
from lance_core.tables.ref_files import claim_ref, list_refs, read_ref
from lance_core.tables.references import FoundVersion, Reference, find_from, was_removed


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of the table at the key `location`; they may name versions of any of its branches.

    A reference means what it means on `branch`, and None the version number `version` there, or the latest if that is
    None too. `clock` gives nanoseconds since the epoch.
    """

    store: ObjectStore
    location: str
    branch: str | None = None
    version: int | None = None
    clock: Callable[[], int] = field(default=time.time_ns, kw_only=True)

    def list(self) -> dict[str, TagContents]:
        """All tags by name, in byte order of their file names. Raises `CorruptFile`."""
        return list_refs(self.store, join_key(self.location, TAGS_DIRECTORY), decode_tag)

    def get(self, name: str) -> TagContents:
        """One tag. Raises `ReferenceNotFound`, `CorruptFile`."""
        return read_ref(self.store, tag_path(self.location, name), f"tag {name}", decode_tag)

    def create(self, name: str, ref: Reference = None, *, metadata: Mapping[str, str] | None = None) -> TagContents:
        """Name a version that exists; of all concurrent callers one succeeds.

        Raises `ValueError` for a name that stock clients refuse, `ReferenceNotFound` for the version (also when it, or
        its branch, goes meanwhile), `AlreadyExists`, and `OutcomeUnknown` when the store never answered.
        """
        path = tag_path(self.location, check_tag_name(name))
        found = self._find(ref)
        now = format_timestamp(self.clock())
        size = found.file.size
        tag = TagContents(found.file.version, size, found.branch, now, now, dict(metadata or {}))
        claim_ref(self.store, path, f"tag {name}", encode_tag(tag))
        if (reason := self._reason_to_withdraw(found)) is not None:
            self.store.delete(path)
            raise ReferenceNotFound(f"tag {name}: {reason}")
        return tag

    def update(self, name: str, ref: Reference = None) -> TagContents:
        """Move a tag to another version that exists; of concurrent moves the last one stays.

        Raises `ReferenceNotFound` for the tag and for the version (also when it, or its branch, goes meanwhile).
        """
        path = tag_path(self.location, name)
        old = self.get(name)
        found = self._find(ref)
        now = format_timestamp(self.clock())
        tag = replace(
            old,
            version=found.file.version,
            branch=found.branch,
            manifest_size=found.file.size,
            updated_at=now,
        )
        self.store.put(path, encode_tag(tag))
        if (reason := self._reason_to_withdraw(found)) is not None:
            self.store.put(path, encode_tag(old))
            raise ReferenceNotFound(f"tag {name}: {reason}")
        return tag

    def delete(self, name: str) -> None:
        """Remove a tag. Raises `ReferenceNotFound`."""
        path = tag_path(self.location, name)
        try:
            self.store.head(path)
        except NotFound as error:
            raise ReferenceNotFound(f"tag {name} at {self.store.object_uri(path)}: expected a file") from error
        self.store.delete(path)

    def _find(self, ref: Reference) -> FoundVersion:
        return find_from(self.store, self.location, ref, self.branch, self.version)

    def _reason_to_withdraw(self, found: FoundVersion) -> str | None:
        """Asked once the tag is written: who removes the branch or the version looks for tags again before that."""
        if found.branch is not None and is_being_deleted(self.store, self.location, found.branch):
            return f"branch {found.branch} is being deleted"
        return f"version {found.file.version} was removed meanwhile" if was_removed(self.store, found) else None

"""Tags of a table: names for versions, stored as reference files below the table's root."""

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
    """The tags of the table at the key `location`. A tag may name a version of any branch.

    Attributes:
        store: The store that holds the table.
        location: The key of the table's root.
        branch: The branch on which references are resolved; None for main.
        version: The version that the reference None stands for; None for the latest.
        clock: Returns nanoseconds since the epoch.
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
        """Create a tag for an existing version; of all concurrent callers one succeeds.

        Raises:
            ValueError: Stock clients refuse the name.
            ReferenceNotFound: The version does not exist, or it or its branch was removed meanwhile.
            AlreadyExists: There is a tag of that name.
            OutcomeUnknown: The store did not answer.
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
        """Move a tag to another existing version. Of concurrent updates the last one wins.

        Raises `ReferenceNotFound` if the tag or the version does not exist, or if the version or its branch was
        removed meanwhile.
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
        """Delete a tag. Raises `ReferenceNotFound`."""
        path = tag_path(self.location, name)
        try:
            self.store.head(path)
        except NotFound as error:
            raise ReferenceNotFound(f"tag {name} at {self.store.object_uri(path)}: expected a file") from error
        self.store.delete(path)

    def _find(self, ref: Reference) -> FoundVersion:
        return find_from(self.store, self.location, ref, self.branch, self.version)

    def _reason_to_withdraw(self, found: FoundVersion) -> str | None:
        """Why a tag that was just written must be withdrawn; None if it is valid.

        Called after the tag is written. A deletion of the branch or version lists the tags again before it removes
        anything, so one of the two operations sees the other.
        """
        if found.branch is not None and is_being_deleted(self.store, self.location, found.branch):
            return f"branch {found.branch} is being deleted"
        return f"version {found.file.version} was removed meanwhile" if was_removed(self.store, found) else None

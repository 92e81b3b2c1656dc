"""Tags of a table: names for versions, stored as reference files below the table's root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lance_core.errors import NotFound, ReferenceNotFound
from lance_core.format.refs import (
    TAGS_DIRECTORY,
    TagContents,
    check_tag_name,
    decode_tag,
    encode_tag,
    format_timestamp,
    tag_path,
)
from lance_core.tables.branches import is_being_deleted
from lance_core.tables.ref_files import claim_ref
from lance_core.tables.references import FoundVersion, NamedReferences, Reference, was_removed


@dataclass(frozen=True, slots=True)
class Tags(NamedReferences[TagContents]):
    """The tags of the table at the key `location`. A tag may name a version of any branch."""

    _kind = "tag"
    _directory = TAGS_DIRECTORY

    def create(self, name: str, ref: Reference = None, *, metadata: Mapping[str, str] | None = None) -> TagContents:
        """Create a tag for an existing version; of all concurrent callers one succeeds.

        Raises:
            ValueError: Stock clients refuse the name.
            ReferenceNotFound: The version does not exist, or it or its branch was removed meanwhile.
            AlreadyExists: There is a tag of that name.
            StorageUnknown: The store did not answer.
        """
        path = self._path(check_tag_name(name, new=True))
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
        path = self._path(name)
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
        path = self._path(name)
        try:
            self.store.head(path)
        except NotFound as error:
            raise ReferenceNotFound(f"tag {name} at {self.store.object_uri(path)}: expected a file") from error
        self.store.delete(path)

    def _path(self, name: str) -> str:
        return tag_path(self.location, name)

    @staticmethod
    def _decode(data: bytes) -> TagContents:
        return decode_tag(data)

    def _reason_to_withdraw(self, found: FoundVersion) -> str | None:
        """Why a tag that was just written must be withdrawn; None if it is valid.

        Called after the tag is written. A deletion of the branch or version lists the tags again before it removes
        anything, so one of the two operations sees the other.
        """
        if found.branch is not None and is_being_deleted(self.store, self.location, found.branch):
            return f"branch {found.branch} is being deleted"
        return f"version {found.file.version} was removed meanwhile" if was_removed(self.store, found) else None

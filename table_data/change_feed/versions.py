"""`PublishedVersion`: a published version of a table or branch, its manifest, and what changes are found by."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

import pyarrow as pa
from pyroaring import BitMap

from lance_core import data
from lance_core.errors import ReferenceNotFound
from lance_core.format.features import check_readable
from lance_core.format.manifest import ManifestFile
from lance_core.format.schema import check_depth
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles
from lance_core.versions import read_version, with_transaction
from table_data.errors import VersionGone


class PublishedVersion:
    """A published version. `uri` is the root of its table or branch."""

    def __init__(self, uri: str, store: ObjectStore, file: ManifestFile, options: Mapping[str, str]) -> None:
        check_readable(file.outline)
        check_depth(file.outline.fields)
        self.uri = uri
        self.file = file
        self.options = options
        self._store = store

    @property
    def version(self) -> int:
        """The version number."""
        return self.file.version

    @property
    def manifest(self) -> pb.Manifest:
        """The manifest, which is shared. Raises `CorruptFile` for a fragment that cannot be decoded."""
        return self.file.manifest

    @cached_property
    def transaction(self) -> pb.Transaction | None:
        """The transaction that made this version, read from its file if it is not inline; None if it is lost."""
        return with_transaction(self._store, "", self.file).transaction

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        return data.arrow_schema(self.file.outline.fields, self.file.outline.schema_metadata)

    def deleted_rows(self, fragment: pb.DataFragment) -> BitMap:
        """The offsets of the deleted rows of a fragment of this version. Raises as `TableFiles.deleted_rows`."""
        files = TableFiles(self._store, "", partial(open_store, storage_options=self.options))
        return files.deleted_rows(self.manifest, fragment)


def read_published(
    name: str, uri: str, version: int, options: Mapping[str, str], store: ObjectStore | None = None
) -> PublishedVersion:
    """Read the manifest of a version. `store` has `uri` as its root; it is opened if there is none yet.

    Raises `VersionGone` if there is none, with `name` in the message, and other `LanceCoreError` if it cannot be read.
    """
    store = open_store(uri, options) if store is None else store
    try:
        return PublishedVersion(uri, store, read_version(store, "", version)[1], options)
    except ReferenceNotFound as error:
        raise VersionGone(f"{name}: version {version} was cleaned up before its changes were read") from error

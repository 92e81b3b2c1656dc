"""Read-only handles of pylance on a published version, or on a version that exists only in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any, Final, cast

import lance
import numpy as np

from lance_core.data import unpublished_uri
from lance_core.format.manifest import ManifestFile, serialized_manifest
from table_data.errors import InvalidCall
from table_data.sql.expressions import SameNames, SqlExpression, same_names_of, sql_expression

_COMMITTING = (
    *("add_bases", "add_columns", "alter_columns", "cleanup_old_versions", "commit_existing_index_segments"),
    *("create_branch", "create_index", "create_scalar_index", "delete", "delete_config_keys", "drop_columns"),
    *("drop_index", "initialize_mem_wal", "insert", "mem_wal_writer", "merge", "merge_insert"),
    *("migrate_manifest_paths_v2", "optimize", "replace_field_metadata", "replace_schema", "replace_schema_metadata"),
    *("restore", "truncate_table", "update", "update_config", "update_field_metadata", "update_metadata"),
    "update_schema_metadata",
)


class ReadOnlyTable(lance.LanceDataset):  # type: ignore[misc]
    """A dataset of pylance whose methods that commit raise `InvalidCall`.

    A commit through the handle would bypass the transaction. On an unpublished version it would make the table
    unreadable. `lance.write_dataset` commits without these methods, so it must not be given such a handle either.

    Filters and columns that are SQL are checked (`sql_expression`): what pylance would read as something else raises
    `InvalidCall`.
    """

    def scanner(self, columns: Any = None, filter: Any = None, *arguments: Any, **options: Any) -> lance.LanceScanner:  # noqa: A002 - the name in pylance
        """As that of pylance, which all of its reads go through."""
        if isinstance(columns, Mapping):
            columns = {name: expression_of(self, text, f"column {name}") for name, text in columns.items()}
        filter = self._filter(filter)  # noqa: A001 - as above
        if isinstance(filter, SqlExpression) and filter.bypasses_indices:
            options["use_scalar_index"] = False
        return super().scanner(columns, filter, *arguments, **options)

    def count_rows(self, filter: Any = None, **options: Any) -> int:  # noqa: A002 - the name in pylance
        """As that of pylance."""
        if isinstance(filter, str):
            return int(self.scanner(columns=[], with_row_id=True, filter=filter).count_rows())
        return int(super().count_rows(filter, **options))

    def get_fragments(self, filter: Any = None) -> list[lance.LanceFragment]:  # noqa: A002 - the name in pylance
        """As those of pylance, with checked filters."""
        return [_read_only(fragment) for fragment in super().get_fragments(filter)]

    def get_fragment(self, fragment_id: int) -> lance.LanceFragment | None:
        """As that of pylance, with checked filters."""
        found = super().get_fragment(fragment_id)
        return None if found is None else _read_only(found)

    @cached_property
    def same_names(self) -> SameNames:
        """Names of columns that differ in case only."""
        return same_names_of(self.schema)

    def _filter(self, given: Any) -> Any:
        return expression_of(self, given, "filter") if isinstance(given, str) else given

    def __copy__(self) -> ReadOnlyTable:
        """A copy, which `checkout_version` moves to another version: read-only as well."""
        copied = super().__copy__()
        copied.__class__ = ReadOnlyTable
        return cast("ReadOnlyTable", copied)


class _ReadOnlyFragment(lance.LanceFragment):  # type: ignore[misc]
    """A fragment of a `ReadOnlyTable`, whose filters and computed columns are checked as those of the table."""

    def scanner(self, *, columns: Any = None, filter: Any = None, **options: Any) -> lance.LanceScanner:  # noqa: A002 - the name in pylance
        """As that of pylance."""
        return self._ds.scanner(columns, filter, fragments=[self], **options)

    def count_rows(self, filter: Any = None) -> int:  # noqa: A002 - the name in pylance
        """As that of pylance."""
        if filter is None:
            return int(super().count_rows())
        return int(self.scanner(columns=[], with_row_id=True, filter=filter).count_rows())

    def delete(self, predicate: str) -> Any:
        """As that of pylance, which commits nothing."""
        where = expression_of(self._ds, predicate, "predicate")
        if not where.bypasses_indices:
            return super().delete(where)
        found = self.scanner(columns=[], filter=where, with_row_address=True).to_table()
        return self.delete_rows(found.column("_rowaddr").to_numpy().astype(np.uint32).tolist())


def _read_only(fragment: lance.LanceFragment) -> lance.LanceFragment:
    fragment.__class__ = _ReadOnlyFragment
    return fragment


def expression_of(dataset: lance.LanceDataset, text: str, what: str) -> SqlExpression:
    """An SQL expression over the columns of a dataset, checked. Raises `InvalidCall`, which begins with `what`."""
    if isinstance(text, SqlExpression):
        return text
    is_ours = isinstance(dataset, ReadOnlyTable)
    return sql_expression(text, what, dataset.same_names if is_ours else same_names_of(dataset.schema))


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> Any:
        raise InvalidCall(f"{name} on a dataset that is for reading; a transaction of the catalog has methods for it")

    return refuse


for _name in _COMMITTING:
    setattr(ReadOnlyTable, _name, property(_refusing(_name)) if _name == "optimize" else _refusing(_name))


_INDEX_CACHE: Final = 192 << 20
_METADATA_CACHE: Final = 64 << 20


_MOST_VERSIONS: Final = 10_000


class _Caches:
    """One bounded cache of indices and metadata for all handles of this process. Thread-safe.

    Pylance keeps a part of it by the URI and the number of a version. Another version may take both, so the cache is
    given up when that is seen.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._manifests: dict[tuple[str, int], str] = {}
        self._session = self._new()

    def session(self, uri: str, version: int, manifest_sha256: str) -> lance.Session:
        """The cache, for the version with this manifest."""
        with self._lock:
            known = self._manifests.get((uri, version), manifest_sha256)
            if known != manifest_sha256 or len(self._manifests) >= _MOST_VERSIONS:
                self._manifests.clear()
                self._session = self._new()
            self._manifests[uri, version] = manifest_sha256
            return self._session

    @staticmethod
    def _new() -> lance.Session:
        return lance.Session(index_cache_size_bytes=_INDEX_CACHE, metadata_cache_size_bytes=_METADATA_CACHE)


_caches = cache(_Caches)


def session_of(uri: str, version: int, manifest_sha256: str) -> lance.Session:
    """The cache of this process for a published version; see `open_version`."""
    return _caches().session(uri, version, manifest_sha256)


def open_version(uri: str, file: ManifestFile, options: Mapping[str, str]) -> lance.LanceDataset:
    """A read-only handle on a published version. `uri` is the root of the table or of the branch.

    Pylance takes the manifest from `file`, whose bytes the caller has compared, and does not read it again.
    """
    session = session_of(uri, file.version, file.identity.sha256)
    manifest, storage = file.encoded_manifest, dict(options) or None
    return ReadOnlyTable(uri, serialized_manifest=manifest, storage_options=storage, session=session)


def open_local(uri: str, file: ManifestFile, options: Mapping[str, str]) -> lance.LanceDataset:
    """A read-only handle on a version that exists only in this process. Indices are not visible through it."""
    return open_serialized(uri, serialized_manifest(file), options)


def open_serialized(uri: str, manifest: bytes, options: Mapping[str, str]) -> lance.LanceDataset:
    """See `open_local`; `manifest` is what `serialized_manifest` gives."""
    place = unpublished_uri(uri, manifest)
    return ReadOnlyTable(place, serialized_manifest=manifest, storage_options=dict(options) or None)

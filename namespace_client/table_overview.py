"""What the catalog tells of a table, in a few requests: columns, sizes, versions, references, indices, properties.

It needs no access to storage, so it is for all who look at a table through a server, and shows what they may see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from lance_core.amounts import counted, size
from namespace_client.access import CatalogAccess
from namespace_client.descriptions import BranchDescription, TagDescription
from namespace_client.display import html_table, when
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import AccessRefused, CommitRejected
from namespace_client.history import moment
from namespace_client.names import Name
from namespace_client.wire import present
from table_data.batch_operations import Json, TableId

VERSIONS: Final = 20
"""Versions that an overview has."""
FRAGMENTS: Final = 100
"""Fragments of one page."""
_POLICIES: Final = ("maintenance.", "gc.")
_BLOB_MARKS: Final = ((b"lance-encoding:blob", b"true"), (b"ARROW:extension:name", b"lance.blob.v2"))


@dataclass(frozen=True, slots=True)
class ColumnOverview:
    """A column: its name, its type as Arrow writes it, whether values may be null, and its metadata."""

    name: str
    type: str
    nullable: bool
    metadata: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, column: pa.Field) -> ColumnOverview:
        """That of a field of a schema. A column of blobs has descriptions of them in Arrow: it is called what it is."""
        metadata = {key.decode(errors="replace"): value.decode(errors="replace") for key, value in _metadata(column)}
        return cls(column.name, "blob" if is_blob(column) else str(column.type), column.nullable, metadata)


@dataclass(frozen=True, slots=True)
class IndexOverview:
    """An index of a table.

    Attributes:
        name: Its name.
        columns: Paths of the columns that it is over.
        kind: What it is: `BTree`, `IvfPq`, `Inverted`.
        rows: Rows that it covers.
        unindexed_rows: Rows that it does not cover: a search looks at each of them.
        bytes: Size of its files, None if it is not stated.
        segments: Number of its parts.
    """

    name: str
    columns: tuple[str, ...]
    kind: str
    rows: int
    unindexed_rows: int
    bytes: int | None
    segments: int

    @classmethod
    def of(cls, row: Json) -> IndexOverview:
        """A row of the list of indices. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        return cls(
            row["index_name"],
            tuple(row["columns"]),
            row.get("index_type") or "index",
            int(row.get("num_indexed_rows") or 0),
            int(row.get("num_unindexed_rows") or 0),
            None if row.get("size_bytes") is None else int(row["size_bytes"]),
            int(row.get("num_segments") or 1),
        )


@dataclass(frozen=True, slots=True)
class VersionOverview:
    """A version of a table: its number, when it was committed, and the size of its manifest if that is known."""

    version: int
    committed_at: datetime | None
    manifest_bytes: int | None

    @classmethod
    def of(cls, row: Json) -> VersionOverview:
        """A row of the list of versions. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        at, length = row.get("timestamp_millis"), row.get("manifest_size")
        return cls(int(row["version"]), moment(at) if at else None, None if length is None else int(length))


@dataclass(frozen=True, slots=True)
class FragmentSizes:
    """The fragments of a version: how many, how many of them small (below 1,048,576 rows), and their rows."""

    count: int
    small: int
    least_rows: int
    median_rows: int
    most_rows: int

    @classmethod
    def of(cls, row: Json) -> FragmentSizes:
        """Those in the statistics of a table. Raises `KeyError`, `TypeError` or `ValueError` if it has none."""
        lengths = row["lengths"]
        return cls(
            int(row["num_fragments"]),
            int(row["num_small_fragments"]),
            int(lengths["min"]),
            int(lengths["p50"]),
            int(lengths["max"]),
        )


@dataclass(frozen=True, slots=True)
class FragmentFile:
    """A data file of a fragment: its path below the table, the columns that it has, and its size if that is stated."""

    path: str
    columns: tuple[str, ...]
    bytes: int | None

    @classmethod
    def of(cls, row: Json) -> FragmentFile:
        """A file in the list of fragments. Raises `KeyError` or `TypeError` if it is none."""
        length = row.get("size_bytes")
        return cls(row["path"], tuple(row["columns"]), None if length is None else int(length))


@dataclass(frozen=True, slots=True)
class FragmentOverview:
    """A fragment: its id, its rows without deleted ones, how many are deleted, its files, and that of deletions."""

    id: int
    rows: int
    deleted_rows: int
    files: tuple[FragmentFile, ...]
    deletion_file: str | None

    @classmethod
    def of(cls, row: Json) -> FragmentOverview:
        """A row of the list of fragments. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        files = tuple(FragmentFile.of(each) for each in row["files"])
        deleted = int(row.get("num_deleted_rows") or 0)
        return cls(int(row["id"]), int(row["num_rows"]), deleted, files, row.get("deletion_file"))


@dataclass(frozen=True, slots=True)
class FragmentPage:
    """Fragments of a version, by their ids.

    Attributes:
        version: Number of the version of the table.
        count: How many fragments it has.
        fragments: Those of the page.
        next: What the next page is asked for with, None if this is the last.
    """

    version: int
    count: int
    fragments: tuple[FragmentOverview, ...]
    next: str | None

    @classmethod
    def of(cls, answer: Json) -> FragmentPage:
        """The answer of the catalog. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        fragments = tuple(FragmentOverview.of(row) for row in answer["fragments"])
        return cls(int(answer["version"]), int(answer["num_fragments"]), fragments, answer.get("page_token"))


@dataclass(frozen=True, slots=True)
class PolicyProperty:
    """A property that says how a table is looked after, and the table or namespace that has it."""

    name: str
    value: str
    of: Name


@dataclass(frozen=True, slots=True)
class TableOverview:
    """A table, or one of its branches, as of a catalog version.

    Attributes:
        name: Path of the table.
        location: URI of the table.
        catalog_version: The catalog version.
        readable: Whether the caller may read the table. If not, all that follows from its rows is absent.
        version: Number of the version, None if the table was only declared. So is all that follows from it.
        branch: Name of the branch, None for the main branch.
        versions: The newest versions, of which `version` is the first unless an earlier one was asked for.
        has_more_versions: Whether there are more.
        columns: The columns.
        rows: Number of rows.
        deleted_rows: Rows that are deleted and still have their place.
        bytes: Size of the columns on storage.
        fragments: Sizes of the fragments.
        indices: The indices, by name.
        tags: The tags by name; None where an earlier catalog version is shown: they have no history.
        branches: The branches by name, without main; None as `tags`.
        properties: Properties that the catalog stores with the table.
        metadata: Metadata of the table in its manifest.
        policy: Properties of the table and of the namespaces above that say how it is looked after; the first one of a
            name counts.
    """

    name: Name
    location: str
    catalog_version: int
    readable: bool = True
    version: int | None = None
    branch: str | None = None
    versions: tuple[VersionOverview, ...] = ()
    has_more_versions: bool = False
    columns: tuple[ColumnOverview, ...] = ()
    rows: int | None = None
    deleted_rows: int | None = None
    bytes: int | None = None
    fragments: FragmentSizes | None = None
    indices: tuple[IndexOverview, ...] = ()
    tags: Mapping[str, TagDescription] | None = None
    branches: Mapping[str, BranchDescription] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    policy: tuple[PolicyProperty, ...] = ()

    @property
    def committed_at(self) -> datetime | None:
        """When the version was committed, if that is known."""
        return next((each.committed_at for each in self.versions if each.version == self.version), None)

    def __repr__(self) -> str:
        columns = [f"  {name}  {kind}" for name, kind in self._columns()]
        return "\n".join([self._title(), *columns, *(f"{label}: {text}" for label, text in self._notes())])

    def _repr_html_(self) -> str:
        return html_table(("column", "type"), [*self._columns(), *self._notes()], self._title())

    def _title(self) -> str:
        place = "" if self.branch is None else f" (branch {self.branch})"
        at = f"catalog version {self.catalog_version}"
        if self.version is None:
            return f"{self.name}{place} at {at}: {'declared, without a version' if self.readable else 'not readable'}"
        count = None if self.fragments is None else self.fragments.count
        parts = (counted(self.rows, "row"), f"{size(self.bytes)} in {counted(count, 'fragment')}")
        return f"{self.name}{place} at {at}: version {self.version} of {when(self.committed_at)}, {', '.join(parts)}"

    def _columns(self) -> list[tuple[str, str]]:
        return [(each.name, each.type) for each in self.columns]

    def _notes(self) -> Iterator[tuple[str, str]]:
        told = {
            "indices": [
                f"{each.name} ({each.kind} over {', '.join(each.columns)}, {each.unindexed_rows:,} rows not)"
                for each in self.indices
            ],
            "tags": [f"{name} ({tag.version})" for name, tag in (self.tags or {}).items()],
            "branches": [f"{name} (from {each.parent_version})" for name, each in (self.branches or {}).items()],
            "properties": [f"{name}={value}" for name, value in self.properties.items()],
        }
        return ((label, ", ".join(texts)) for label, texts in told.items() if texts)


def table_overview(
    access: CatalogAccess,
    table_id: TableId,
    catalog_version: int,
    *,
    at: int | None = None,
    branch: str | None = None,
    version: int | None = None,
) -> TableOverview:
    """Ask the catalog for all of it: eight requests, and one for each namespace above the table.

    Args:
        access: The catalog.
        table_id: Path of the table.
        catalog_version: The catalog version that is shown.
        at: The same if an earlier one is asked for, None for the newest.
        branch: Name of a branch.
        version: Number of a version, the newest if None.

    Raises `NotFound`, `CommitRejected`, `AccessRefused` and `CatalogUnreachable`.
    """
    wanted = present(branch=branch, version=version)
    request: Json = {"id": list(table_id), "vend_credentials": False, "load_detailed_metadata": True, **wanted}
    readable = True
    try:
        described = access.read("describe_table", request, at=catalog_version)
    except AccessRefused as error:
        if error.code != ErrorCode.PERMISSION_DENIED:
            raise
        readable, described = False, access.read("describe_table", _bare(request), at=catalog_version)
    properties = {str(key): str(value) for key, value in (described.get("properties") or {}).items()}
    known: dict[str, Any] = {
        "name": Name(table_id),
        "location": str(described.get("location") or ""),
        "catalog_version": catalog_version,
        "readable": readable,
        "version": described.get("version"),
        "branch": branch,
        "properties": properties,
        "policy": tuple(_policy(access, table_id, properties, catalog_version)),
    }
    if not readable:
        return TableOverview(**known)
    if at is None:
        known["tags"] = {name: TagDescription.of(tag) for name, tag in access.tags(table_id).items()}
        known["branches"] = {name: BranchDescription.of(each) for name, each in access.branches(table_id).items()}
    if known["version"] is None:
        return TableOverview(**known)
    return TableOverview(**known, **_of_version(access, table_id, catalog_version, described, wanted))


def _of_version(access: CatalogAccess, table_id: TableId, at: int, described: Json, wanted: Json) -> Mapping[str, Any]:
    of_branch = {key: value for key, value in wanted.items() if key == "branch"}
    listed = access.read(
        "list_table_versions", {"id": list(table_id), "descending": True, "limit": VERSIONS, **of_branch}, at=at
    )
    stats = access.table_value("get_table_stats", table_id, wanted, at=at)
    indices = access.table_value("list_table_indices", table_id, wanted, at=at)
    return {
        "versions": tuple(VersionOverview.of(row) for row in listed["versions"]),
        "has_more_versions": bool(listed.get("page_token")),
        "columns": tuple(map(ColumnOverview.of, table_schema(access, table_id, at, wanted))),
        "rows": int(stats["num_rows"]),
        "deleted_rows": int((described.get("stats") or {}).get("num_deleted_rows") or 0),
        "bytes": int(stats["total_bytes"]),
        "fragments": FragmentSizes.of(stats["fragment_stats"]),
        "indices": tuple(IndexOverview.of(row) for row in indices["indexes"]),
        "metadata": dict(described.get("metadata") or {}),
    }


def table_schema(access: CatalogAccess, table_id: TableId, at: int | None, wanted: Json) -> pa.Schema:
    """The schema of a version, in one request: that of no rows. `wanted` may name `branch` and `version`."""
    with access.query(table_id, {"filter": "false", "k": 1, **wanted}, at=at) as reader:
        schema = reader.schema
        reader.read_all()
        return schema


def is_blob(column: pa.Field) -> bool:
    """Whether a column of an answer has descriptions of blobs, which are read one by one."""
    metadata = column.metadata or {}
    return any(metadata.get(key) == value for key, value in _BLOB_MARKS)


def _metadata(column: pa.Field) -> Iterator[tuple[bytes, bytes]]:
    return iter((column.metadata or {}).items())


def _bare(request: Json) -> Json:
    """The request for what all who may see the table are told."""
    return {key: value for key, value in request.items() if key in {"id", "vend_credentials"}}


def _policy(
    access: CatalogAccess, table_id: TableId, properties: Mapping[str, str], at: int
) -> Iterator[PolicyProperty]:
    of, found = table_id, properties
    seen: set[str] = set()
    while True:
        for name, value in sorted(found.items()):
            if name.startswith(_POLICIES) and name not in seen:
                seen.add(name)
                yield PolicyProperty(name, value, Name(of))
        if len(of) < 2:
            return
        of = of[:-1]
        try:
            found = dict(access.read("describe_namespace", {"id": list(of)}, at=at).get("properties") or {})
        except CommitRejected:  # a parent that is no namespace of the catalog
            found = {}


def fragment_page(
    access: CatalogAccess,
    table_id: TableId,
    at: int | None,
    *,
    branch: str | None = None,
    version: int | None = None,
    after: str | None = None,
    limit: int = FRAGMENTS,
) -> FragmentPage:
    """One page of the fragments of a version, in one request.

    Args:
        access: The catalog.
        table_id: Path of the table.
        at: Catalog version to read, the newest if None.
        branch: Name of a branch.
        version: Number of a version of the table, the newest if None.
        after: `FragmentPage.next` of the page before.
        limit: How many at most.

    Raises `NotFound`, `CommitRejected`, `AccessRefused` and `CatalogUnreachable`.
    """
    request = present(id=list(table_id), branch=branch, version=version, page_token=after, limit=limit)
    return FragmentPage.of(access.read("list_table_fragments", request, at=at))

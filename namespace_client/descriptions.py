"""Descriptions of tables: schema, size, branches, tags and indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow as pa

from lance_core.amounts import counted, size
from lance_core.data import arrow_schema
from lance_core.format.deletion import live_row_count
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.indices import SYSTEM_INDICES, covered_fragments
from namespace_client.display import html_table, when
from namespace_client.names import Name
from table_data.batch_operations import Json, TableState
from table_data.requests.schema_paths import canonical_path

_DETAILS = "IndexDetails"


@dataclass(frozen=True, slots=True)
class TagDescription:
    """A tag: a name for one version of a table or of one of its branches (None: the main branch)."""

    version: int
    branch: str | None = None

    @classmethod
    def of(cls, row: Json) -> TagDescription:
        """A tag in a list of the catalog. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        return cls(int(row["version"]), row.get("branch"))


@dataclass(frozen=True, slots=True)
class BranchDescription:
    """A branch: the version that it began at, and the branch of that (None: the main branch)."""

    parent_version: int
    parent_branch: str | None = None

    @classmethod
    def of(cls, row: Json) -> BranchDescription:
        """A branch in a list of the catalog. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        return cls(int(row["parentVersion"]), row.get("parentBranch"))


@dataclass(frozen=True, slots=True)
class IndexDescription:
    """An index of a table.

    Attributes:
        name: Its name.
        columns: Paths of the columns that it is over.
        kind: Kind of the index: `BTree`, `Vector`, `Inverted`; None if the table does not state it.
        rows: Rows of the table that it covers.
        bytes: Size of its files, None if the table does not state it.
    """

    name: str
    columns: tuple[str, ...]
    kind: str | None
    rows: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table, or one of its branches, at one version. A table that was only declared has no version.

    Attributes:
        name: Path of the table.
        location: URI of the table.
        version: Number of the version, None if the table was only declared. So is all that follows from it.
        branch: Name of the branch, None for the main branch.
        committed_at: When the version was committed.
        schema: Arrow schema.
        rows: Number of rows.
        bytes: Size of the data files of the version, None if the size of a file is not stated.
        fragments: Number of fragments.
        indices: Its indices, by name.
        tags: The tags of the table by name. Empty in a view of an earlier catalog version: they have no history.
        branches: The branches of the table by name, without main. Empty in a view, too.
        properties: Properties that the catalog stores with the table.
    """

    name: Name
    location: str
    version: int | None = None
    branch: str | None = None
    committed_at: datetime | None = None
    schema: pa.Schema | None = None
    rows: int | None = None
    bytes: int | None = None
    fragments: int | None = None
    indices: tuple[IndexDescription, ...] = ()
    tags: Mapping[str, TagDescription] = field(default_factory=dict)
    branches: Mapping[str, BranchDescription] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        columns = [f"  {name}  {kind}" for name, kind in self._columns()]
        notes = [f"{label}: {text}" for label, text in self._notes()]
        return "\n".join([self._title(), *columns, *notes])

    def _repr_html_(self) -> str:
        notes = [("", ""), *self._notes()] if self._columns() else self._notes()
        return html_table(("column", "type"), [*self._columns(), *notes], self._title())

    def _title(self) -> str:
        place = "" if self.branch is None else f" (branch {self.branch})"
        if self.version is None:
            return f"{self.name}{place}: declared, without a version"
        parts = (counted(self.rows, "row"), f"{size(self.bytes)} in {counted(self.fragments, 'fragment')}")
        return f"{self.name}{place}: version {self.version} of {when(self.committed_at)}, {', '.join(parts)}"

    def _columns(self) -> list[tuple[str, str]]:
        return [] if self.schema is None else [(each.name, str(each.type)) for each in self.schema]

    def _notes(self) -> list[tuple[str, str]]:
        indices = [f"{each.name} ({each.kind or 'index'} over {', '.join(each.columns)})" for each in self.indices]
        tags = [f"{name} ({tag.branch + ' ' if tag.branch else ''}{tag.version})" for name, tag in self.tags.items()]
        branches = [f"{name} (from {each.parent_version})" for name, each in self.branches.items()]
        properties = [f"{name}={value}" for name, value in self.properties.items()]
        told = {"indices": indices, "tags": tags, "branches": branches, "properties": properties}
        return [(label, ", ".join(texts)) for label, texts in told.items() if texts]


def describe(
    state: TableState, file: ManifestFile | None, tags: Mapping[str, Json], branches: Mapping[str, Json]
) -> TableDescription:
    """The description of a table from what the catalog says of it, and the manifest of the version.

    Raises `KeyError`, `TypeError` or `ValueError` for a tag or branch that is none, and errors of the engine for a
    manifest that this release cannot read.
    """
    known = TableDescription(
        Name(state.id),
        state.uri,
        state.version,
        state.branch,
        tags={name: TagDescription.of(tag) for name, tag in tags.items()},
        branches={name: BranchDescription.of(branch) for name, branch in branches.items()},
        properties=dict(state.properties),
    )
    return known if file is None else _with_version(known, file)


def _with_version(known: TableDescription, file: ManifestFile) -> TableDescription:
    manifest = file.manifest
    rows = {fragment.id: live_row_count(fragment) for fragment in manifest.fragments}
    return replace(
        known,
        committed_at=datetime.fromtimestamp(file.timestamp_ms / 1000, UTC) if file.timestamp_ms else None,
        schema=arrow_schema(manifest.fields, manifest.schema_metadata),
        rows=sum(rows.values()),
        bytes=_total(each.file_size_bytes for fragment in manifest.fragments for each in fragment.files),
        fragments=len(rows),
        indices=tuple(_indices(file, rows)),
    )


def _indices(file: ManifestFile, rows: Mapping[int, int]) -> Iterable[IndexDescription]:
    segments: dict[str, list[pb.IndexMetadata]] = {}
    for segment in () if file.indices is None else file.indices.indices:
        if segment.name not in SYSTEM_INDICES:
            segments.setdefault(segment.name, []).append(segment)
    for name, parts in sorted(segments.items()):
        columns = tuple(canonical_path(file.manifest.fields, field) for field in parts[0].fields)
        covered = {fragment for part in parts for fragment in covered_fragments(part)}
        kind = parts[0].index_details.type_url.rpartition(".")[2].removesuffix(_DETAILS)
        size = _total(each.size_bytes for part in parts for each in part.files) if parts[0].files else None
        yield IndexDescription(name, columns, kind or None, sum(rows.get(each, 0) for each in covered), size)


def _total(sizes: Iterable[int]) -> int | None:
    """The sum of the sizes of files; None if one is not known."""
    known = list(sizes)
    return sum(known) if all(known) else None

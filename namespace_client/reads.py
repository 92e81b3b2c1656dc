"""Reads of a catalog outside of a transaction: of the newest version, or of one catalog version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from namespace_client.access import CatalogAccess
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import InvalidCall, NotFound
from namespace_client.names import AnyName, Name, absolute
from namespace_client.read_point import MovingReadPoint
from table_data.batch_operations import TableId, TableState
from table_data.errors import require_count

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

    from namespace_client.blobs import BlobFile
    from namespace_client.descriptions import TableDescription
    from namespace_client.table_overview import TableOverview
    from namespace_client.wire import FoundTables
    from table_data.pinned_datasets import DatasetSource
    from table_data.table_changes import TableChanges


class CatalogReads:
    """Reads that `Catalog` and `CatalogView` have in common. Names are as `namespace_client.names` describes them.

    Every method raises `AccessRefused`, `CommitRejected` (`NotFound` in particular) and `CatalogUnreachable`.
    """

    def __init__(
        self,
        access: CatalogAccess,
        *,
        namespace: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        at: int | None = None,
    ) -> None:
        self.access = access
        self._namespace = tuple(namespace)
        self._storage_options = dict(storage_options or {})
        self._at = at

    def __repr__(self) -> str:
        below = f", namespace {Name(self._namespace)}" if self._namespace else ""
        version = "" if self._at is None else f" at catalog version {self._at}"
        return f"<{type(self).__name__} of {self.access.name}{version}{below}>"

    def namespaces(self, parent: AnyName | None = None, *, recursive: bool = False) -> list[Name]:
        """Paths of the namespaces in a namespace, in the order of their names.

        Args:
            parent: A namespace, the default namespace if None; `()` is the root.
            recursive: Whether to list those below them, too.
        """
        above = self._parent(parent)
        found: list[Name] = []
        for child in self.access.namespaces(above, at=self._at):
            found.append(Name((*above, child)))
            if recursive:
                found += self.namespaces((*above, child), recursive=True)
        return found

    def tables(self, namespace: AnyName | None = None, *, recursive: bool = False) -> list[Name]:
        """Paths of the tables in a namespace, in the order of their names. Those that are only declared are among them.

        Args:
            namespace: A namespace, the default namespace if None; `()` is the root.
            recursive: Whether to list the tables in the namespaces below it, too.
        """
        above = self._parent(namespace)
        if not recursive:
            return [Name((*above, name)) for name in self.access.tables(above, at=self._at)]
        self.access.tables(above, at=self._at)  # a namespace that is not there is an error, not an empty list
        return [Name(each) for each in self.access.all_tables(at=self._at) if each[: len(above)] == above]

    def find(self, text: str, *, limit: int = 20) -> FoundTables:
        """The tables whose paths have all words of a text, in any case and order, as one types it.

        Those that are called as its last word come first, then those whose name begins with it, then the others. The
        catalog finds them by an index, in milliseconds among a million tables.

        Args:
            text: Words, or parts of them; a dot separates them as a space does. All tables are found if it has none.
            limit: How many at most.
        """
        return self.access.find_tables(text, require_count("limit", limit, 1), at=self._at)

    def describe(
        self, table: AnyName, *, branch: str | None = None, tag: str | None = None, version: int | None = None
    ) -> TableDescription:
        """Schema, size, branches, tags and indices of a table.

        Args:
            table: Name of the table.
            branch: Name of a branch.
            tag: Name of a tag, for the version that it names. Not together with `branch` or `version`.
            version: Number of a version, the newest if None.
        """
        from namespace_client.descriptions import describe
        from table_data.pylance_errors import explained

        opened = self._open(table, branch, tag, version)
        table_id = opened.state.id
        tags, branches = ({}, {}) if self._at else (self.access.tags(table_id), self.access.branches(table_id))
        with explained(str(Name(table_id))):
            return describe(opened.state, opened.base, tags, branches)

    def show(self, table: AnyName, *, branch: str | None = None, version: int | None = None) -> TableOverview:
        """What the catalog tells of a table: as `describe`, with its versions and how it is looked after.

        The catalog is asked for all of it, so that it needs no access to storage: what the console shows, in a notebook
        or a terminal.

        Args:
            table: Name of the table.
            branch: Name of a branch.
            version: Number of a version, the newest if None.
        """
        from namespace_client.table_overview import table_overview

        shown = self.access.state().version if self._at is None else self._at
        return table_overview(self.access, self._path(table), shown, at=self._at, branch=branch, version=version)

    def read(
        self,
        table: AnyName,
        columns: Sequence[str] | None = None,
        *,
        filter: Any = None,  # noqa: A002 - the name in pylance
        limit: int | None = None,
        branch: str | None = None,
        tag: str | None = None,
        version: int | None = None,
    ) -> pa.Table:
        """Read rows into memory.

        A column of blobs comes as descriptions of them: place and size. `blob` and `blobs` have
        their bytes, and so has pylance: `dataset(table).scanner(blob_handling="all_binary")`.

        Args:
            table: Name of the table.
            columns: Names of the columns, all columns if None.
            filter: SQL expression or pyarrow expression.
            limit: How many rows at most.
            branch: Name of a branch.
            tag: Name of a tag, for the version that it names. Not together with `branch` or `version`.
            version: Number of a version, the newest if None.

        Raises:
            InvalidCall: The table has no version, or no such column, or the filter is none, or the limit is no whole
                number from 0 on.
        """
        from table_data.arrow.batch_sizes import table_of
        from table_data.errors import require_count
        from table_data.pylance_errors import explained

        limit = None if limit is None else require_count("limit", limit)
        opened = self._open(table, branch, tag, version)
        with explained(f"read of {Name(opened.state.id)}"):
            opened.require_head()
            chosen = None if columns is None else list(columns)
            return table_of(opened.dataset(), columns=chosen, filter=filter, limit=limit)

    def search(
        self,
        table: AnyName,
        query: str | Sequence[float] | Any,
        *,
        column: str | None = None,
        k: int = 10,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002 - the name in pylance
        branch: str | None = None,
        tag: str | None = None,
        version: int | None = None,
    ) -> pa.Table:
        """The rows nearest to a vector, or those that a full-text search finds, the best first.

        Args:
            table: Name of the table.
            query: A vector (a list or an array of numbers), or words. Words need a full-text index of the column.
            column: The column of vectors or of text; it may be left out where the table has one column of vectors, or
                for words, which are then looked for in all columns with such an index.
            k: How many rows at most.
            columns: Names of the columns, all columns if None. `_distance`, or `_score` for words, is added.
            filter: SQL expression or pyarrow expression; only rows that match are searched.
            branch: Name of a branch.
            tag: Name of a tag, for the version that it names. Not together with `branch` or `version`.
            version: Number of a version, the newest if None.

        Raises:
            InvalidCall: There is no such column, several could be meant, or the vector has another length.
        """
        from table_data.pylance_errors import explained
        from table_data.queries.searches import search_options

        opened = self._open(table, branch, tag, version)
        with explained(f"search of {Name(opened.state.id)}"):
            opened.require_head()
            dataset = opened.dataset()
            options, score = search_options(dataset.schema, query, column, k)
            chosen = None if columns is None else [*columns, score]
            return dataset.to_table(columns=chosen, filter=filter, prefilter=filter is not None, **options)

    def changes(
        self,
        table: AnyName,
        *,
        since: int | None = None,
        cursor: str | None = None,
        to: int | None = None,
        branch: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.RecordBatchReader:
        """Read the rows that changed after one catalog version, up to another: each insert, update and delete.

        They come version after version, as Spark's `CHANGES` has them. `_change_type` is `insert`, `delete`,
        `update_preimage` or `update_postimage`, `_row_id` the stable id of the row, `_commit_version` and
        `_commit_timestamp` are of the table version that changed it, `_catalog_version` is the one that published it.
        The changes, applied in this order to the rows at `since`, give the rows at `to`. The columns are those at `to`:
        before a column was there, or had its type, its values are null, and the version that adds it with values
        updates all rows. The server reads them from storage, and memory holds one batch.

        Example:
            ```python
            for event in catalog.events(cursor="indexer", follow=True):
                for changed in event.tables:
                    for batch in catalog.changes(changed.name, since=event.version - 1, to=event.version):
                        apply(batch)
            ```

        Args:
            table: What the table is called at `to`. It may have been renamed since.
            since: Catalog version whose rows are known; 0 for none.
            cursor: Name of a cursor, in place of `since`. It is not moved by this.
            to: Last catalog version, the newest if None: `reader.schema.metadata[b"lance.changes.to"]` says which.
            branch: Name of a branch.
            columns: Names of the columns, all columns if None.

        Returns:
            The changes; read them to the end, or drop the reader, to release the connection.

        Raises:
            EventsGone: A version was removed, or another table had this name at `since`: take a baseline.
            CommitRejected: The table has no stable row ids (13), or values of a version were replaced without a record
                of the rows (13).
        """
        return self.access.changes(
            self._path(table),
            since=since,
            cursor=cursor,
            to=self._at if to is None else to,
            branch=branch,
            columns=columns,
        )

    def dataset(
        self, table: AnyName, *, branch: str | None = None, tag: str | None = None, version: int | None = None
    ) -> lance.LanceDataset:
        """A table as a dataset of pylance, for engines that read those: at one version, whatever is committed later.

        It is for reading: its methods that commit raise `InvalidCall`. Storage options that the catalog hands out are
        renewed before they end. It can be pickled, secrets included, and reads the same version in another process.

        Args:
            table: Name of the table.
            branch: Name of a branch.
            tag: Name of a tag, for the version that it names. Not together with `branch` or `version`.
            version: Number of a version, the newest if None.

        Raises:
            InvalidCall: The table has no version.
        """
        if tag is None and version is None:
            point = self._point()
            state = self._state(table, branch, None, None, point)
        else:  # it may be adopted now, so the catalog version that has it is asked for after that
            state, point = self._state(table, branch, tag, version), self._point()
        return self._pin(state, point.version).open(self.access.namespace)

    def blob(
        self,
        table: AnyName,
        column: str,
        row: int | None = None,
        *,
        filter: str | None = None,  # noqa: A002 - the name in pylance
        branch: str | None = None,
        tag: str | None = None,
        version: int | None = None,
    ) -> BlobFile | None:
        """A value of a column of blobs as a file that can be sought in: it is read in parts, never held as a whole.

        A server reads it from storage and sends it, so that this process needs no access to storage. The file is of
        one version of the table, whatever is committed later.

        Args:
            table: Name of the table.
            column: The column, or the path of a field in one, with dots between names.
            row: The id of the row, as pylance's `with_row_id` gives it.
            filter: In its place, an SQL expression that one row matches, such as `id = 7`.
            branch: Name of a branch.
            tag: Name of a tag, for the version that it names. Not together with `branch` or `version`.
            version: Number of a version, the newest if None.

        Returns:
            The file; None if the value is null.

        Raises:
            InvalidCall: Neither a row nor a filter is given, or both.
            NotFound: There is no such row, or no row matches.
            CommitRejected: Several rows match (status 409), or it is no column of blobs.
            AccessRefused: The value is a file elsewhere, which the server does not read.
        """
        from namespace_client.blobs import WantedBlob, open_local, open_remote
        from namespace_client.http import CatalogServer
        from table_data.errors import require_count

        if (row is None) == (filter is None):
            raise InvalidCall("row, filter: expected one of them, found " + ("none" if row is None else "both"))
        row = None if row is None else require_count("row", row)
        access = self.access
        query = WantedBlob(self._path(table), column, row, filter, branch, tag, version, self._at)
        if isinstance(access, CatalogServer):
            return open_remote(access.client, query)
        return open_local(self._open(table, branch, tag, version), query, access.namespace.blob_refusal)

    def blobs(
        self,
        table: AnyName,
        column: str,
        rows: Iterable[int],
        *,
        branch: str | None = None,
        tag: str | None = None,
        version: int | None = None,
    ) -> Iterator[bytes | None]:
        """The values of a column of blobs of some rows, one after the other, each as a whole. See `blob`.

        All are of one version. At most 64 MiB of them, or one that is longer, are in memory at once.

        Args:
            table: Name of the table.
            column: The column, or the path of a field in one.
            rows: Ids of rows.
            branch: Name of a branch.
            tag: Name of a tag. Not together with `branch` or `version`.
            version: Number of a version, the newest if None.

        Yields:
            For each id the bytes; None if the value is null.

        Raises:
            NotFound: There is no such row.
        """
        from namespace_client.blobs import WantedBlob, read_local, read_remote
        from namespace_client.http import CatalogServer
        from table_data.errors import require_count

        access = self.access
        wanted = [require_count("row", row) for row in rows]
        if not isinstance(access, CatalogServer):
            opened = self._open(table, branch, tag, version)
            return read_local(opened, WantedBlob(opened.state.id, column), wanted, access.namespace.blob_refusal)
        if tag is not None:
            state = self._state(table, branch, tag, version)
            branch, version = state.branch, state.version
        query = WantedBlob(self._path(table), column, branch=branch, version=version, at=self._at)
        return read_remote(access.client, query, wanted)

    def datasets(self, tables: Iterable[AnyName]) -> dict[AnyName, lance.LanceDataset]:
        """Several tables as datasets, all of one catalog version: together they are one state of the catalog.

        Args:
            tables: Names of the tables.

        Returns:
            The datasets as `dataset` gives them, by the names that were given, in their order.
        """
        point = self._point()
        names = [name if isinstance(name, str) else tuple(name) for name in tables]
        states = {name: self._state(name, None, None, None, point) for name in names}
        return {name: self._pin(state, point.version).open(self.access.namespace) for name, state in states.items()}

    def _point(self) -> MovingReadPoint:
        """The catalog version that datasets are of: the newest one if there is no other."""
        if self._at is not None:
            return MovingReadPoint(self.access, self._at, fixed=True)
        return MovingReadPoint(self.access, self.access.state().version)

    def _pin(self, state: TableState, catalog_version: int) -> DatasetSource:
        from namespace_client.reading import source_of
        from table_data.pylance_errors import explained
        from table_data.table_changes import TableChanges

        with explained(str(Name(state.id))):
            changes = TableChanges(state, self._storage_options or state.storage_options)
            return source_of(self.access, changes, catalog_version)

    def _open(self, table: AnyName, branch: str | None, tag: str | None, version: int | None) -> TableChanges:
        from table_data.table_changes import TableChanges  # imports pylance

        state = self._state(table, branch, tag, version)
        return TableChanges(state, self._storage_options or state.storage_options)

    def _state(
        self,
        table: AnyName,
        branch: str | None,
        tag: str | None,
        version: int | None,
        point: MovingReadPoint | None = None,
    ) -> TableState:
        """The table at the version that is asked for; of a point, if one is given, the newest. Raises `NotFound`."""
        table_id = self._path(table)
        if tag is not None:
            if branch is not None or version is not None:
                raise InvalidCall(f"{Name(table_id)}: a tag goes without version and branch")
            named = self.access.tags(table_id).get(tag)
            if named is None:
                message = f"{Name(table_id)} has no tag {tag!r}"
                raise NotFound(message, code=ErrorCode.TABLE_TAG_NOT_FOUND)
            branch, version = named.get("branch"), int(named["version"])
        if point is None:
            state = self.access.table(table_id, at=self._at, branch=branch, version=version)
        else:
            state = point.table(table_id, branch=branch)
        if state is None:
            when = "" if self._at is None else f" at catalog version {self._at}"
            raise NotFound(f"Table not found: {Name(table_id)} does not exist{when}", code=ErrorCode.TABLE_NOT_FOUND)
        return state

    def _path(self, table: AnyName) -> TableId:
        return absolute(table, self._namespace)

    def _parent(self, namespace: AnyName | None) -> TableId:
        return self._namespace if namespace is None else absolute(namespace, self._namespace, "namespace")


class CatalogView(CatalogReads):
    """The catalog at one version, read-only. Made by `Catalog.at`.

    Its reads are of one moment, however long it is used: as long as the version is kept. `Catalog.keeping` and pins
    keep one longer. Tags have no history: `tag=` finds those of now, and `describe` returns neither tags nor branches.

    Attributes:
        version: The catalog version.
    """

    def __init__(
        self,
        access: CatalogAccess,
        version: int,
        *,
        namespace: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(access, namespace=namespace, storage_options=storage_options, at=version)
        self.version = version

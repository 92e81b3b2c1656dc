"""Changes of a catalog outside of a transaction: each is one batch by itself."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from namespace_client.error_codes import ErrorCode
from namespace_client.errors import AlreadyExists, InvalidCall, NotFound, TableTaken
from namespace_client.names import AnyName, Name
from namespace_client.reads import CatalogReads
from namespace_client.wire import CommittedBatch, present
from table_data.batch_operations import BatchOperation, Json

if TYPE_CHECKING:
    import pyarrow as pa

    from namespace_client.descriptions import BranchDescription, TagDescription
    from namespace_client.maintenance import MaintenanceResult
    from namespace_client.results import MergeCounts
    from namespace_client.staged_transaction import Isolation
    from namespace_client.transaction import MultiTableTransaction
    from table_data.arrow.vectors import Vectors
    from table_data.requests.merging import Matched, NotMatched, NotMatchedBySource


class CatalogChanges(CatalogReads):
    """Changes of namespaces, tables, tags and branches. Names are as `namespace_client.names` describes them.

    A change is made once, whatever is lost on the way. `message` is stored with it in the history.

    Every method raises `AccessRefused`, `CommitRejected` (`NotFound`, `AlreadyExists` in particular),
    `CatalogUnreachable` if nothing was sent, and `CommitUnknown` if the outcome is unknown.
    """

    def begin(self, *, message: str | None = None, isolation: Isolation = "snapshot") -> MultiTableTransaction:
        """See `Catalog.begin`."""
        raise NotImplementedError

    # -- namespaces

    def create_namespace(
        self,
        namespace: AnyName,
        *,
        properties: Mapping[str, str] | None = None,
        exist_ok: bool = False,
        message: str | None = None,
    ) -> bool:
        """Create a namespace, whose parent must exist.

        Args:
            namespace: Name of the namespace.
            properties: Properties that the catalog stores with it.
            exist_ok: Whether it is no error if it is there, with these properties and maybe others. It is left as it
                is.
            message: Text that is stored with the change.

        Returns:
            Whether it was created; false if it was there.

        Raises:
            AlreadyExists: It is there (code 2), with `exist_ok` without one of the properties or with another value; or
                a table has the name (5).
        """
        path, wanted = self._parent(namespace), dict(properties or {})
        try:
            self.access.change("create_namespace", {"id": list(path), "properties": wanted}, message=message)
        except AlreadyExists as error:
            if not exist_ok or error.code != ErrorCode.NAMESPACE_ALREADY_EXISTS:
                raise
            found = self.access.namespace_properties(path) if wanted else {}
            if differing := [name for name in wanted if found.get(name) != wanted[name]]:
                name = differing[0]
                raise AlreadyExists(
                    f"{Name(path)} is there: expected its property {name} = {wanted[name]!r}, found "
                    f"{repr(found[name]) if name in found else 'none'}; nothing was changed",
                    code=ErrorCode.NAMESPACE_ALREADY_EXISTS,
                ) from error
            return False
        return True

    def drop_namespace(
        self,
        namespace: AnyName,
        *,
        cascade: bool = False,
        missing_ok: bool = False,
        purge: bool = False,
        message: str | None = None,
    ) -> bool:
        """Drop a namespace. It can come back for a while, see `undrop_namespace`.

        Args:
            namespace: Name of the namespace.
            cascade: Whether to drop the namespaces and tables in it, too; else it must be empty.
            missing_ok: Whether it is no error if there is none.
            purge: Whether the files of its tables go with the next garbage collection.
            message: Text that is stored with the change.

        Returns:
            Whether it was there.
        """
        behavior = "Cascade" if cascade else "Restrict"
        request = {"id": list(self._parent(namespace)), "behavior": behavior, "purge": purge}
        return self._drop("drop_namespace", request, ErrorCode.NAMESPACE_NOT_FOUND, missing_ok, message)

    def undrop_namespace(self, namespace: AnyName, *, message: str | None = None) -> None:
        """Bring back a dropped namespace, with the namespaces and tables that were dropped with it."""
        self.access.change("undrop_namespace", {"id": list(self._parent(namespace))}, message=message)

    # -- tables

    def create(
        self,
        table: AnyName,
        data: Any = None,
        *,
        schema: pa.Schema | None = None,
        properties: Mapping[str, str] | None = None,
        stable_row_ids: bool = False,
        vectors: Vectors | None = None,
        message: str | None = None,
    ) -> int:
        """Create a table, see `MultiTableTransaction.create`. Returns the number of rows.

        Raises:
            AlreadyExists: There is a table of this name, with rows or a version without any.
        """
        try:
            with self.begin(message=message) as tx:
                return tx.create(
                    table, data, schema=schema, properties=properties, stable_row_ids=stable_row_ids, vectors=vectors
                )
        except TableTaken as error:
            raise AlreadyExists(str(error), code=ErrorCode.TABLE_ALREADY_EXISTS) from error

    def append(self, table: AnyName, data: Any, *, branch: str | None = None, message: str | None = None) -> int:
        """Add rows, see `MultiTableTransaction.append`. Returns the number of rows."""
        with self.begin(message=message) as tx:
            return tx.append(table, data, branch=branch)

    def overwrite(
        self,
        table: AnyName,
        data: Any,
        *,
        schema: pa.Schema | None = None,
        vectors: Vectors | None = None,
        branch: str | None = None,
        message: str | None = None,
    ) -> int:
        """Replace all rows and the schema, see `MultiTableTransaction.overwrite`. Returns the number of rows."""
        with self.begin(message=message) as tx:
            return tx.overwrite(table, data, schema=schema, vectors=vectors, branch=branch)

    def update(
        self,
        table: AnyName,
        values: Mapping[str, str],
        *,
        where: str | None = None,
        branch: str | None = None,
        message: str | None = None,
    ) -> int:
        """Set columns to new values, see `MultiTableTransaction.update`. Returns the number of rows updated."""
        with self.begin(message=message) as tx:
            return tx.update(table, values, where=where, branch=branch)

    def merge(
        self,
        table: AnyName,
        data: Any,
        on: str | Sequence[str],
        *,
        matched: Matched = "update",
        condition: str | None = None,
        not_matched: NotMatched = "insert",
        not_matched_by_source: NotMatchedBySource = "keep",
        delete_condition: str | None = None,
        branch: str | None = None,
        message: str | None = None,
    ) -> MergeCounts:
        """Merge rows by key, see `MultiTableTransaction.merge`. Without further arguments this is an upsert."""
        with self.begin(message=message) as tx:
            return tx.merge(
                table,
                data,
                on,
                matched=matched,
                condition=condition,
                not_matched=not_matched,
                not_matched_by_source=not_matched_by_source,
                delete_condition=delete_condition,
                branch=branch,
            )

    def delete(self, table: AnyName, where: str, *, branch: str | None = None, message: str | None = None) -> int:
        """Delete the rows that match, see `MultiTableTransaction.delete`. Returns the number of rows deleted."""
        with self.begin(message=message) as tx:
            return tx.delete(table, where, branch=branch)

    def register(
        self,
        table: AnyName,
        location: str,
        *,
        properties: Mapping[str, str] | None = None,
        message: str | None = None,
    ) -> None:
        """Take a dataset below the root of the catalog in as a table, with its versions, branches and tags.

        Nothing is copied. Afterwards only the catalog may change it.

        Args:
            table: Name of the table, which there must not be.
            location: Directory of the dataset: a path relative to the root, or its URI or absolute path.
            properties: Properties that the catalog stores with the table.
            message: Text that is stored with the change.

        Raises:
            CommitRejected: The catalog refused it: with code 13 if there is no dataset, it does not lie below the root
                in a directory of its own, or another table has or had it; 5 if the name is taken (`AlreadyExists`).
        """
        request: Json = {"id": list(self._path(table)), "location": self._below_root(location)}
        request |= {"properties": dict(properties)} if properties else {}
        self.access.change("register_table", request, message=message)

    def _below_root(self, location: str) -> str:
        """A location relative to the root, as the catalog takes it. One that lies elsewhere stays as it is."""
        if "://" not in location and not location.startswith("/"):
            return location.rstrip("/")
        root = self.access.state().root
        for prefix in (root, unquote(root.removeprefix("file://"))):
            if location.startswith(f"{prefix}/"):
                return unquote(location[len(prefix) + 1 :]) if "://" in location else location[len(prefix) + 1 :]
        return location

    def drop(
        self, table: AnyName, *, missing_ok: bool = False, purge: bool = False, message: str | None = None
    ) -> bool:
        """Drop a table. It can come back for a while, see `undrop`.

        Args:
            table: Name of the table.
            missing_ok: Whether it is no error if there is none.
            purge: Whether its files go with the next garbage collection.
            message: Text that is stored with the change.

        Returns:
            Whether it was there.
        """
        request = {"id": list(self._path(table)), "purge": purge}
        return self._drop("drop_table", request, ErrorCode.TABLE_NOT_FOUND, missing_ok, message)

    def rename(self, table: AnyName, new_name: AnyName, *, message: str | None = None) -> None:
        """Give a table another name, maybe in another namespace. Its versions, branches and tags stay."""
        source, target = self._path(table), self._path(new_name)
        if len(target) == 1 and len(source) > 1:
            raise InvalidCall(f"{Name(source)}: a table in a namespace cannot be moved to the root")
        request = {"id": list(source), "new_namespace_id": list(target[:-1]), "new_table_name": target[-1]}
        self.access.change("rename_table", request, message=message)

    def clone(
        self,
        table: AnyName,
        new_name: AnyName,
        *,
        version: int | None = None,
        tag: str | None = None,
        message: str | None = None,
    ) -> int:
        """Make a table that begins with a version of another one and refers to its files, so that nothing is copied.

        Afterwards each of both changes for itself. The files stay as long as one of them needs them, also if the other
        one is dropped. Tags, branches, and properties that the catalog stores are not cloned.

        Args:
            table: Name of the table.
            new_name: Name of the clone, which there must not be.
            version: Number of a version of the main branch, the newest if neither this nor a tag is given.
            tag: Name of a tag of such a version.
            message: Text that is stored with the change.

        Returns:
            The number of the clone's first version: that of the version that it was made from.

        Raises:
            InvalidCall: Both a version and a tag are given.
            NotFound: There is no such table (code 4), namespace of the clone (1), version (11) or tag (8).
            AlreadyExists: The name of the clone is taken (5).
            CommitRejected: The version has files of a branch, which would go with that (code 0).
        """
        if version is not None and tag is not None:
            raise InvalidCall(f"version, tag: expected one of them, found both ({version}, {tag!r})")
        location = self.access.read("describe_table", {"id": list(self._path(table))})["location"]
        named = list(self._path(new_name))
        request = present(id=named, source_location=location, source_version=version, source_tag=tag)
        return self.access.changed("clone_table", request, lambda made: int(made["version"]), message=message)

    def undrop(
        self,
        table: AnyName,
        new_name: AnyName | None = None,
        *,
        tombstone: str | None = None,
        message: str | None = None,
    ) -> None:
        """Bring back a dropped table, with its versions, branches, tags and indices.

        It is as it was before the batch that dropped it.

        Args:
            table: Name that the table had.
            new_name: Name under which it comes back; its own if None.
            tombstone: Which one, if several tables of this name were dropped; the last one if None.
            message: Text that is stored with the change.

        Raises:
            NotFound: None of that name can come back (code 4), or there is no such namespace (1).
            AlreadyExists: The name is taken (5).
        """
        new_id = None if new_name is None else list(self._path(new_name))
        request = present(id=list(self._path(table)), new_id=new_id, tombstone_id=tombstone)
        self.access.change("undrop_table", request, message=message)

    def maintain(
        self,
        table: AnyName,
        *,
        dry_run: bool = False,
        forced: bool = False,
        seconds: float | None = None,
        message: str | None = None,
    ) -> MaintenanceResult:
        """Compact the main branch of a table and extend its indices, where its policy says that it is worth it.

        Each commit is a batch of the caller, who needs `maintain` on the table. What was committed stays, whatever
        becomes of the rest: the result says what is left.

        Args:
            table: Name of the table.
            dry_run: Whether nothing is written, and what is worth work is told.
            forced: Whether it is done though other writers changed the table within `maintenance.quiet_seconds`.
            seconds: Time after which no more work is begun, 1 to 3600; 30 if None.
            message: Text that is stored with each commit, in place of one that says what the commit is.

        Raises:
            NotFound: There is no such table.
            CommitRejected: The catalog refused it: with code 13 a table without a version.
        """
        table_id = self._path(table)
        request = present(id=list(table_id), dry_run=dry_run, forced=forced, seconds=seconds)

        def parse(answer: Json) -> MaintenanceResult:
            from namespace_client.maintenance import MaintenanceResult

            return MaintenanceResult.of(table_id, answer)

        if dry_run:
            return self.access.asked("maintain_table", request, parse)
        return self.access.changed("maintain_table", request, parse, message=message)

    # -- tags

    def tags(self, table: AnyName) -> dict[str, TagDescription]:
        """The tags of a table, by name."""
        from namespace_client.descriptions import TagDescription

        found = self.access.tags(self._path(table))
        return {name: TagDescription.of(tag) for name, tag in found.items()}

    def create_tag(
        self,
        table: AnyName,
        tag: str,
        *,
        version: int | None = None,
        branch: str | None = None,
        message: str | None = None,
    ) -> None:
        """Give a version of a table, or of one of its branches, a name. It is kept as long as it has one.

        Args:
            table: Name of the table.
            tag: Name of the tag, which there must not be.
            version: Number of the version, the newest if None.
            branch: Name of the branch, the main branch if None.
            message: Text that is stored with the change.
        """
        self.access.change("create_table_tag", self._tagged(table, tag, version, branch), message=message)

    def move_tag(
        self,
        table: AnyName,
        tag: str,
        *,
        version: int | None = None,
        branch: str | None = None,
        message: str | None = None,
    ) -> None:
        """Have a tag name another version. Arguments as of `create_tag`."""
        self.access.change("update_table_tag", self._tagged(table, tag, version, branch), message=message)

    def delete_tag(self, table: AnyName, tag: str, *, message: str | None = None) -> None:
        """Remove a tag."""
        self.access.change("delete_table_tag", {"id": list(self._path(table)), "tag": tag}, message=message)

    def _tagged(self, table: AnyName, tag: str, version: int | None, branch: str | None) -> Json:
        state = self._state(table, branch, None, version)
        if state.version is None:
            raise InvalidCall(f"{Name(state.id)} has no version yet that {tag!r} could name")
        return present(id=list(state.id), tag=tag, version=state.version, branch=branch)

    # -- branches

    def branches(self, table: AnyName) -> dict[str, BranchDescription]:
        """The branches of a table by name, without main."""
        from namespace_client.descriptions import BranchDescription

        found = self.access.branches(self._path(table))
        return {name: BranchDescription.of(branch) for name, branch in found.items()}

    def create_branch(
        self,
        table: AnyName,
        branch: str,
        *,
        from_branch: str | None = None,
        from_version: int | None = None,
        message: str | None = None,
    ) -> None:
        """Begin a branch.

        Args:
            table: Name of the table.
            branch: Name of the branch, which there must not be.
            from_branch: Name of the branch that it begins at, the main branch if None.
            from_version: Number of the version that it begins at, the newest if None.
            message: Text that is stored with the change.
        """
        named = list(self._path(table))
        request = present(id=named, name=branch, from_branch=from_branch, from_version=from_version)
        self.access.change("create_table_branch", request, message=message)

    def delete_branch(self, table: AnyName, branch: str, *, message: str | None = None) -> None:
        """Remove a branch with its versions."""
        self.access.change("delete_table_branch", {"id": list(self._path(table)), "name": branch}, message=message)

    def _drop(self, operation: str, request: Json, missing: ErrorCode, missing_ok: bool, message: str | None) -> bool:
        """Whether what is to be dropped was there. Raises `NotFound` with another code than `missing`, too."""
        try:
            self.access.change(operation, request, message=message)
        except NotFound as error:
            if not missing_ok or error.code != missing:
                raise
            return False
        return True

    def _commit(self, operation: BatchOperation, *, message: str | None = None) -> CommittedBatch:
        return self.access.commit([operation], idempotency_key=str(uuid.uuid4()), message=message)

"""The catalog as of one version, as a connection of lancedb. It is read, and not changed.

Lancedb asks a namespace where tables are and which version is theirs: the one here answers as of the catalog version.
Each table is then checked out at that version of its own, from which lancedb itself refuses most changes. It does not
refuse all, and some only when their files are written: so what changes something is refused here, by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast, overload

import lance_namespace as spec
from lance_namespace.errors import from_error_code
from lancedb.namespace import LanceNamespaceDBConnection
from lancedb.table import LanceTable

from namespace_client.error_codes import ErrorCode
from namespace_client.errors import AccessRefused, CommitRejected, InvalidCall
from namespace_client.lancedb_transaction import TransactionDatabase
from namespace_client.transaction import MultiTableTransaction

if TYPE_CHECKING:
    import lance
    from lancedb.table import Branches, Tags

    from namespace_client.catalog import Catalog
    from namespace_client.reads import CatalogView
    from table_data.batch_operations import Json

T = TypeVar("T")

CHANGES_OF_CONNECTIONS: Final = (
    *("alter_secret", "cancel_job", "create_function", "create_function_async", "create_materialized_view"),
    *("create_materialized_view_async", "create_namespace", "create_secret", "create_table", "create_view"),
    *("drop_all_tables", "drop_database", "drop_function", "drop_function_async", "drop_materialized_view"),
    *("drop_materialized_view_async", "drop_namespace", "drop_secret", "drop_table", "drop_table_async", "drop_view"),
    *("drop_view_async", "pause_job", "rename_table", "resume_job"),
)
CHANGES_OF_TABLES: Final = (
    *("add", "add_columns", "alter_columns", "checkpoint_lsm", "cleanup_old_versions", "close_lsm_writers"),
    *("compact_files", "compact_lsm", "create_fts_index", "create_index", "create_index_async", "create_scalar_index"),
    *("delete", "drop_columns", "drop_index", "flush_lsm", "merge", "merge_insert", "migrate_v2_manifest_paths"),
    *("optimize", "refresh_column", "refresh_column_async", "replace_field_metadata", "restore"),
    *("set_lsm_write_spec", "set_unenforced_primary_key", "unset_lsm_write_spec", "update", "update_field_metadata"),
)
_CHANGES_OF_TAGS: Final = ("create", "delete", "update")
_CHANGES_OF_BRANCHES: Final = ("checkout", "cherry_pick", "create", "delete", "diff")


@overload
def lancedb(source: Catalog, *, at: int | datetime | str) -> LanceNamespaceDBConnection: ...


@overload
def lancedb(source: MultiTableTransaction) -> TransactionDatabase: ...


def lancedb(
    source: Catalog | MultiTableTransaction, *, at: int | datetime | str | None = None
) -> LanceNamespaceDBConnection | TransactionDatabase:
    """The catalog as of one version, or the tables of a transaction, for programs that use lancedb.

    Of a catalog: a connection of lancedb as of one version, all tables of which are of that moment. It is read-only:
    what changes something raises `InvalidCall`, and writes nothing. Names are those of lancedb: a `namespace_path` has
    the names before that of the table, from the root of the catalog, and without one a table is in the default
    namespace of the catalog. It reads for as long as the version is kept: `Catalog.keeping` and pins keep one longer.
    It asks through the connection of the catalog, and ends with it. Rows are read from storage by this process, as
    lancedb does it.

    Of a transaction: its tables with the methods that tables of lancedb have to change rows. They commit with the
    block, all at once. See `TransactionDatabase`.

    Example:
        ```python
        before = namespace_client.lancedb(catalog, at="release-7")
        before.open_table("embeddings", namespace_path=["lab"]).search([0.1, 0.9]).limit(5).to_arrow()

        with catalog.begin() as tx:
            db = namespace_client.lancedb(tx)
            db.open_table("samples").add([{"id": 4, "vector": [9.0, 9.0]}])
            db.open_table("labels").delete("id = 3")
        ```

    Args:
        source: The catalog, or a transaction in its block.
        at: For a catalog: a version, a time, or the name of a pin, as for `Catalog.at`.

    Returns:
        The connection, or the tables.

    Raises:
        InvalidCall: A catalog is given without `at`, or a transaction with it.
        NotFound: There is no such pin, or the version is not kept.
        CatalogUnreachable: The catalog did not respond.
    """
    if isinstance(source, MultiTableTransaction):
        if at is not None:
            raise InvalidCall(f"at {at!r}: a transaction is at the catalog version of its begin")
        return TransactionDatabase(source)
    if at is None:
        raise InvalidCall("lancedb: expected the version of the catalog as `at`, or a transaction")
    view = source.at(at)
    return _past_connection(view, source._namespace, source._storage_options)  # noqa: SLF001 - as views have them


class _PastNamespace(spec.LanceNamespace):
    """The reads of a namespace as of a catalog version. All others raise `UnsupportedOperationError`."""

    def __init__(self, view: CatalogView) -> None:
        self._access = view.access
        self._version = view.version

    def namespace_id(self) -> str:
        return f"{self._access.name} at catalog version {self._version}"

    def list_namespaces(self, request: Any) -> spec.ListNamespacesResponse:
        return spec.ListNamespacesResponse(**self._ask("list_namespaces", request))

    def describe_namespace(self, request: Any) -> spec.DescribeNamespaceResponse:
        return spec.DescribeNamespaceResponse(**self._ask("describe_namespace", request))

    def namespace_exists(self, request: Any) -> spec.NamespaceExistsResponse:
        self._ask("describe_namespace", request)
        return spec.NamespaceExistsResponse()

    def list_tables(self, request: Any) -> spec.ListTablesResponse:
        return spec.ListTablesResponse(**self._ask("list_tables", request))

    def describe_table(self, request: Any) -> spec.DescribeTableResponse:
        return spec.DescribeTableResponse(**self._ask("describe_table", request))

    def table_exists(self, request: Any) -> spec.TableExistsResponse:
        self._ask("describe_table", request)
        return spec.TableExistsResponse()

    def list_table_versions(self, request: Any) -> spec.ListTableVersionsResponse:
        return spec.ListTableVersionsResponse.model_validate(self._ask("list_table_versions", request))

    def describe_table_version(self, request: Any) -> spec.DescribeTableVersionResponse:
        return spec.DescribeTableVersionResponse.model_validate(self._ask("describe_table_version", request))

    def _ask(self, operation: str, request: Any) -> Json:
        given = request.model_dump()  # of a dict, too: lancedb's native code has it without arguments
        asked = {name: value for name, value in given.items() if value is not None}
        asked["id"] = asked.get("id") or []
        try:
            return self._access.read(operation, asked, at=self._version)
        except (CommitRejected, AccessRefused) as error:
            code = ErrorCode.INTERNAL if error.code is None else error.code
            raise from_error_code(int(code), str(error)) from error


def _past_connection(view: CatalogView, namespace: Sequence[str], storage_options: Json) -> LanceNamespaceDBConnection:
    """A connection as of a catalog version. Not a class of its own, since lancedb's enforces marks of its methods."""
    connection = LanceNamespaceDBConnection(_PastNamespace(view), storage_options=storage_options)
    open_newest = connection.open_table

    @wraps(open_newest)
    def open_table(name: str, **options: Any) -> LanceTable:
        if options.get("branch") is not None or options.get("version") is not None:
            raise InvalidCall(
                f"open_table {name!r}: expected no branch and no version: the connection is to catalog version "
                f"{view.version}"
            )
        return _pinned(cast("LanceTable", open_newest(name, **options)), view)

    for name in CHANGES_OF_CONNECTIONS:
        setattr(connection, name, _refusing(name, view.version))
    for name in ("list_namespaces", "list_tables", "table_names"):
        setattr(connection, name, _in_default(getattr(connection, name), namespace))
    setattr(connection, "open_table", _in_default(open_table, namespace))  # noqa: B010 - mypy takes no assignment to a method
    return connection


def _in_default(call: Callable[..., T], namespace: Sequence[str]) -> Callable[..., T]:
    """The method of a connection, with the default namespace of the catalog where it is given none."""
    first = next(iter(signature(call).parameters))

    @wraps(call)
    def called(*arguments: Any, **options: Any) -> T:
        if options.get("namespace_path") is None and not (arguments and first == "namespace_path"):
            options["namespace_path"] = list(namespace)
        return call(*arguments, **options)

    return called


class _PastTable(LanceTable):
    """A table as of a catalog version."""

    _view: CatalogView
    _newest: int

    def checkout_latest(self) -> None:
        """Go back to the version of then."""
        super().checkout(self._newest)

    def list_versions(self) -> list[dict[str, Any]]:
        """The versions up to that of then."""
        return [each for each in super().list_versions() if each["version"] <= self._newest]

    def to_lance(self, **options: Any) -> lance.LanceDataset:
        """The version as a dataset of pylance that commits nothing; see `CatalogReads.dataset`."""
        if options:
            raise InvalidCall(f"to_lance: expected no options, found {', '.join(options)}")
        return self._view.dataset((*self.namespace, self.name), version=self.version)

    @property
    def tags(self) -> Tags:
        """The tags of now, which have no history."""
        return _read_only(super().tags, "tags", _CHANGES_OF_TAGS, self._view.version)

    @property
    def branches(self) -> Branches:
        """The list of branches of now, which have no history."""
        return _read_only(super().branches, "branches", _CHANGES_OF_BRANCHES, self._view.version)


def _pinned(table: LanceTable, view: CatalogView) -> LanceTable:
    """A table that has just been opened, from now on read-only."""
    newest = table.version
    table.checkout(newest)
    table.__class__ = _PastTable
    past = cast("_PastTable", table)
    past._view, past._newest = view, newest  # noqa: SLF001 - it is one of our class now
    for name in CHANGES_OF_TABLES:
        setattr(past, name, _refusing(name, view.version))
    return past


def _read_only(found: T, what: str, changes: tuple[str, ...], catalog_version: int) -> T:
    for name in changes:
        setattr(found, name, _refusing(f"{what}.{name}", catalog_version))
    return found


def _refusing(name: str, catalog_version: int) -> Callable[..., NoReturn]:
    """What stands in the place of a method that changes something."""

    def refuse(*_arguments: object, **_named: object) -> NoReturn:
        raise InvalidCall(
            f"{name}: expected a read: the connection is to catalog version {catalog_version}; nothing was done"
        )

    return refuse

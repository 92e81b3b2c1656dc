"""Tables as Java holds them: their description, and the reference that names the version."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from lance_core.data import arrow_schema
from lance_core.format.deletion import live_row_count
from lance_core.format.manifest import ManifestFile, serialized_manifest
from lance_core.format.naming import branch_base
from lance_core.transaction.features import has_stable_row_ids
from spark_catalog.sql.errors import InvalidStatement, Unsupported
from spark_catalog.sql.schemas import shown_schema
from spark_catalog.sql.sessions import SqlSession
from spark_catalog.sql.transactions import SqlTransaction
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.types import arrow_schema as shown_arrow_schema
from table_data.batch_operations import DELIMITER, Json, TableId, TableState, VersionIdentity
from table_data.table_changes import TableChanges

PROVIDER = "lance"
STABLE_ROW_IDS = "lance.stable_row_ids"
MANAGED_LOCATION = "is_managed_location"
_COLLATION = "UTF8_BINARY"
_MAX_MANIFESTS = 64
_MAX_OPTIONS = 10_000
_EXPIRY = "expires_at_millis"
_TIME_LEFT = 300.0
"""Seconds for which credentials are valid when tasks get them, unless the catalog hands out none that are."""


class Versions:
    """Manifests of published versions, of which the last few that were used are kept. Thread-safe.

    Args:
        describe: Describes a table, for storage options that are about to expire.
        storage_options: Options of Lance for all tables. Without any, each table has those that the catalog hands out.
    """

    def __init__(self, describe: Callable[[TableId], TableState | None], storage_options: Mapping[str, str]) -> None:
        self._describe = describe
        self._given = dict(storage_options)
        self._handed_out: OrderedDict[str, Mapping[str, str]] = OrderedDict()
        self._read: OrderedDict[str, ManifestFile] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, state: TableState) -> None:
        """Keep the storage options that were handed out for a table."""
        with self._lock:
            self._handed_out[state.uri] = state.storage_options
            self._handed_out.move_to_end(state.uri)
            while len(self._handed_out) > _MAX_OPTIONS:
                self._handed_out.popitem(last=False)

    def storage_options(self, table: TableId, uri: str) -> Mapping[str, str]:
        """Options of Lance for the object store of a table. Those with an expiry are valid for some minutes at least.

        Raises what `describe` raises.
        """
        if self._given:
            return self._given
        with self._lock:
            found = self._handed_out.get(uri)
        if found is None or _expires_soon(found):
            state = self._describe(table)
            if state is not None and state.uri == uri:
                self.remember(state)
                return state.storage_options
        return found or {}

    def manifest(self, state: TableState) -> ManifestFile:
        """The manifest of the version of a table.

        It is kept by its SHA-256: another version may take its place and number. It is read by every call if the
        catalog does not know that.

        Raises:
            VersionGone: Another version took its place.
            ReferenceNotFound: There is none.
        """
        key = None if state.identity is None else state.identity.sha256
        with self._lock:
            found = None if key is None else self._read.get(key)
        if found is None:
            changes = TableChanges(state, self.storage_options(state.id, state.uri))
            found = changes.require_head()
        with self._lock:
            self._read[found.identity.sha256] = found
            self._read.move_to_end(found.identity.sha256)
            while len(self._read) > _MAX_MANIFESTS:
                self._read.popitem(last=False)
        return found


def describe(
    state: TableState,
    file: ManifestFile,
    *,
    at: int,
    steps: int,
    properties: Mapping[str, str],
    fixed: bool = False,
) -> Json:
    """A table as Java gets it.

    Args:
        state: The table and its version.
        file: The manifest.
        at: Catalog version at which the table was looked up.
        steps: Steps of a transaction that led to the version.
        properties: Properties of the table.
        fixed: Whether the query names this version, so that it is read whatever catalog version the others have.
    """
    name = ".".join(state.id)
    stored = arrow_schema(file.manifest.fields)
    seen = shown_schema(stored, name)
    ref = {
        "table": list(state.id),
        "uri": state.uri,
        "branch": state.branch,
        "version": file.version,
        "manifest_sha256": file.identity.sha256,
        "committed_ms": file.timestamp_ms,
        "steps": steps,
        "at": at,
    }
    # Spark leaves out a location that is managed where it shows how a table was created.
    shown = {**properties, "provider": PROVIDER, "location": state.uri, MANAGED_LOCATION: "true"}
    return {
        "ref": ref,
        "schema": seen.jsonValue(),
        "exact": [
            field.name for field, same in zip(stored, shown_arrow_schema(seen), strict=True) if field.type == same.type
        ],
        "properties": shown,
        "catalog_version": at,
        "stable_row_ids": has_stable_row_ids(file.manifest),
        "fixed": fixed,
        "read_only": fixed,
        "all_rows": True,
        "limited": False,
        "row_count": sum(map(live_row_count, file.manifest.fragments)),
    }


def only_declared(name: str) -> InvalidStatement:
    """The error of a statement on a table that has no version yet, neither in the catalog nor around it."""
    return InvalidStatement(
        f"{name} is declared and has no version yet: what declared it has to write the first one, or `create` of the "
        "Python client"
    )


def _expires_soon(options: Mapping[str, str]) -> bool:
    expires = options.get(_EXPIRY, "")
    return expires.isdigit() and int(expires) / 1000 < time.time() + _TIME_LEFT


def describe_changes(transaction: SqlTransaction, changes: TableChanges) -> Json:
    """A table as a transaction sees it. Raises `InvalidStatement` for a table without a version."""
    file = changes.head
    if file is None:
        raise only_declared(changes.name)
    return describe(
        changes.state,
        file,
        at=transaction.catalog_version,
        steps=len(changes.steps),
        properties=transaction.properties(changes),
    )


def resolve(versions: Versions, transaction: SqlTransaction | None, ref: Json) -> tuple[PinnedTable, ManifestFile]:
    """The version that a reference names. Raises `InvalidStatement` if it was of a transaction that is over."""
    uri = branch_base(ref["uri"], ref["branch"])
    steps = int(ref["steps"])
    options = versions.storage_options(tuple(ref["table"]), ref["uri"])
    if not steps:
        identity = VersionIdentity(ref["manifest_sha256"], ref["committed_ms"])
        state = TableState(tuple(ref["table"]), ref["uri"], int(ref["version"]), {}, ref["branch"], identity=identity)
        file = versions.manifest(state)
        return PinnedTable.published(uri, file, options), file
    changes = None if transaction is None else transaction.find(tuple(ref["table"]))
    if changes is None or len(changes.steps) < steps or changes.state.uri != ref["uri"]:
        raise InvalidStatement(
            f"{DELIMITER.join(ref['table'])}: this DataFrame shows changes of a transaction that is over; load it again"
        )
    file = changes.steps[steps - 1].after
    return PinnedTable(uri, file.version, options, manifest=serialized_manifest(file)), file


def check_property(table: str, name: str, value: str) -> None:
    """Raise `Unsupported` for a property that asks for what a table does not do; others are the user's own.

    Spark hands over clauses as properties, too: OPTIONS as `option.NAME`, STORED AS and ROW FORMAT as `hive.NAME`.
    """
    lower = name.lower()
    if lower.startswith("option."):
        raise Unsupported(
            f"{table}: OPTIONS ({name[len('option.') :]}): expected no options of a table: options are those of a read "
            "or a write; TBLPROPERTIES are kept with a table"
        )
    if lower.startswith("hive."):
        raise Unsupported(f"{table}: STORED AS, ROW FORMAT and SERDE: a table is stored as {PROVIDER}, found {name}")
    if lower == "collation" and value.upper() != _COLLATION:
        raise Unsupported(f"{table}: DEFAULT COLLATION {value}: expected {_COLLATION}")
    is_ours = lower.startswith(f"{PROVIDER}.") or lower.endswith("stable_row_ids")
    if is_ours and name != STABLE_ROW_IDS:
        raise Unsupported(f"{table}: property {name}: expected {STABLE_ROW_IDS}, or a name without lance. before it")


def checked_properties(name: str, given: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """The properties that are stored with a new table, and whether its rows have stable ids.

    Raises `Unsupported` for a provider or a location, and as `check_property`.
    """
    properties = dict(given)
    provider = properties.pop("provider", PROVIDER)
    if provider.lower() != PROVIDER:
        raise Unsupported(
            f"{name}: USING {provider}: expected {PROVIDER}; a DataFrame names it by format('{PROVIDER}') before "
            f"saveAsTable and toTable, or by writeTo, and spark.catalog.createTable by source='{PROVIDER}'"
        )
    for reserved, reason in (("location", "LOCATION"), ("external", "EXTERNAL")):
        if properties.pop(reserved, None) not in (None, "false"):
            raise Unsupported(f"{name}: {reason}: the catalog chooses the location of a table")
    properties.pop("owner", None)
    for given_name, value in properties.items():
        check_property(name, given_name, value)
    stable = properties.get(STABLE_ROW_IDS, "false").lower()
    if stable not in {"true", "false"}:
        raise InvalidStatement(f"{name}: property {STABLE_ROW_IDS}: expected true or false, found {stable}")
    return properties, stable == "true"


def transaction_of(session: SqlSession, statement: str | None) -> SqlTransaction | None:
    """The transaction of a statement, else the open one of the session, else None.

    Raises `InvalidStatement` if its outcome is unknown.
    """
    if statement is not None and statement in session.statements:
        return session.statements[statement].transaction
    session.require_known()
    return session.open

"""Requests as they come over the wire (JSON objects), made into typed operations; form is checked, nothing else.

Every function raises `InvalidInputError` (13) naming the field, what is expected and what was found. Field names are
those of the Lance namespace spec; `commit_transaction` and `assert_table_version` are ours.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from google.protobuf.message import DecodeError
from lance_namespace.errors import InvalidInputError, UnsupportedOperationError

from lance_core.format.decoding import decode_message
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.model import naming_rules
from namespace_server.directory.model.errors import shown
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import (
    AdvanceCursor,
    AssertTableVersion,
    CommitTransaction,
    CreateBranch,
    CreateMode,
    CreateNamespace,
    CreateTableVersion,
    DeclareTable,
    DeleteCursor,
    DeleteTableVersions,
    DeregisterTable,
    DropNamespace,
    DropTable,
    KeepAnswer,
    RegisterTable,
    RemovePin,
    RenameTable,
    SetPin,
    SetTableProperties,
    UndropNamespace,
    UndropTable,
)
from namespace_server.directory.model.request_fields import (
    OBJECTS,
    Request,
    branch,
    branch_name,
    check_known,
    choice,
    flag,
    integer,
    is_list,
    names,
    object_id,
    string_map,
    strings,
    table_id,
    text,
)
from namespace_server.directory.model.retention import check_properties

_FREE_MESSAGES: Final = 512
"""Messages that a transaction may hold whatever its length: a batch has up to ten thousand."""
_LONGEST_PIN = 30 * 86_400
"""Seconds that a pin may be asked for, unless it stays until it is removed."""
_DATA_FORMATS = ("2.0", "2.1", "2.2", "2.3")
_RANGE = frozenset({"start_version", "end_version"})
_WALKS = frozenset({".", ".."})
_SHA256 = re.compile(r"[0-9a-f]{64}")


class PathResolver:
    """Turns paths and locations as clients spell them into store keys (None: outside the catalog root)."""

    def __init__(self, object_path: Callable[[str], str | None], uri: str) -> None:
        self._object_path = object_path
        self._uri = uri.rstrip("/") + "/"

    def manifest_key(self, path: str) -> str | None:
        """The key of an object-store path. URIs and empty components are no object-store paths."""
        if "//" in path or not _WALKS.isdisjoint(path.split("/")):
            return None
        return self._object_path(path)

    def location_key(self, location: str) -> str | None:
        """The key of a table location given as a URI below the root, as an absolute path, or relative to the root."""
        location = location.rstrip("/")
        if location.startswith(self._uri):
            return location[len(self._uri) :]
        if "://" in location:
            return None
        return self._object_path(location) if location.startswith("/") else location


@dataclass(frozen=True, slots=True)
class RequestRules:
    """How one catalog reads requests: its `paths`, the `limits` of a request, and whether namespaces are implicit."""

    paths: PathResolver
    limits: Limits
    implicit_namespaces: bool = False


def create_namespace(request: Request, rules: RequestRules) -> CreateNamespace:
    """CreateNamespaceRequest."""
    target = object_id(request, "namespace")
    naming_rules.check_new_id(target, "namespace")
    modes = {"create": CreateMode.CREATE, "existok": CreateMode.EXIST_OK, "overwrite": CreateMode.OVERWRITE}
    return CreateNamespace(
        target,
        _properties(request, "properties", rules),
        choice(request, "mode", modes, CreateMode.CREATE),
    )


def drop_namespace(request: Request, _rules: RequestRules) -> DropNamespace:
    """DropNamespaceRequest, with `purge`, which is ours."""
    target = object_id(request, "namespace")
    if not target:
        raise InvalidInputError("the root namespace cannot be dropped")
    return DropNamespace(
        target,
        skip_missing=choice(request, "mode", {"fail": False, "skip": True}, default=False),
        cascade=choice(request, "behavior", {"restrict": False, "cascade": True}, default=False),
        purge=flag(request, "purge"),
    )


def declare_table(request: Request, rules: RequestRules) -> DeclareTable:
    """DeclareTableRequest. Without a location of the managed form from the client a new one is chosen (N1)."""
    target, properties = table_id(request), _properties(request, "properties", rules)
    vends = flag(request, "vend_credentials", default=True)
    return declared_table(target, text(request, "location"), properties, rules, vends=vends)


def declared_table(
    target: ObjectId, wanted: str | None, properties: Mapping[str, str], rules: RequestRules, *, vends: bool = True
) -> DeclareTable:
    """The declaration of a table at the location that is wanted, or at a new one."""
    naming_rules.check_new_id(target, "table", implicit_namespaces=rules.implicit_namespaces)
    if wanted is None:
        location = naming_rules.new_location(target)
    else:
        key = rules.paths.location_key(wanted)
        if key is None:
            raise InvalidInputError(f"table {join(target)}: location {shown(wanted)} lies outside the catalog root")
        naming_rules.check_location(key, target)
        location = key
    return DeclareTable(
        target,
        location,
        properties,
        chosen=wanted is not None,
        implicit_namespaces=rules.implicit_namespaces,
        vends=vends,
    )


def register_table(request: Request, rules: RequestRules) -> RegisterTable:
    """RegisterTableRequest."""
    target = table_id(request)
    naming_rules.check_new_id(target, "table")
    location = text(request, "location", required=True) or ""
    naming_rules.check_registered_location(location)
    overwrite = choice(request, "mode", {"create": False, "overwrite": True}, default=False)
    return RegisterTable(target, location, _properties(request, "properties", rules), overwrite)


def deregister_table(request: Request, _rules: RequestRules) -> DeregisterTable:
    """DeregisterTableRequest."""
    return DeregisterTable(table_id(request))


def drop_table(request: Request, _rules: RequestRules) -> DropTable:
    """DropTableRequest, with `purge`, which is ours."""
    return DropTable(table_id(request), flag(request, "purge"))


def undrop_table(request: Request, _rules: RequestRules) -> UndropTable:
    """Ours: `new_id` is the name under which the table comes back, `tombstone_id` says which one it is."""
    source = table_id(request)
    if request.get("new_id") is None:
        target = source
        naming_rules.check_id(target, "table")
    else:
        target = object_id(request, "new", "new_id")
        naming_rules.check_new_id(target, "table")
    return UndropTable(source, target, text(request, "tombstone_id"))


def undrop_namespace(request: Request, _rules: RequestRules) -> UndropNamespace:
    """Ours: a namespace that was dropped with its contents."""
    target = object_id(request, "namespace")
    naming_rules.check_id(target, "namespace")
    return UndropNamespace(target)


def pin_catalog_version(request: Request, _rules: RequestRules) -> SetPin:
    """Ours. Without `seconds` the pin stays until it is removed."""
    version, seconds = integer(request, "version"), integer(request, "seconds")
    if version is not None and version < 1:
        raise InvalidInputError(f"version: expected a catalog version, from 1 on, found {version}")
    if seconds is not None and not 0 < seconds <= _LONGEST_PIN:
        raise InvalidInputError(f"seconds: expected a number from 1 to {_LONGEST_PIN}, found {seconds}")
    return SetPin(_pin_name(request), version, seconds, text(request, "reason"))


def unpin_catalog_version(request: Request, _rules: RequestRules) -> RemovePin:
    """Ours."""
    return RemovePin(_pin_name(request))


def advance_cursor(request: Request, _rules: RequestRules) -> AdvanceCursor:
    """Ours. Without `version` the cursor is put at the one that the change makes."""
    version, expected = _position(request, "version"), _position(request, "expected")
    return AdvanceCursor(_pin_name(request), version, expected, flag(request, "backwards"))


def delete_cursor(request: Request, _rules: RequestRules) -> DeleteCursor:
    """Ours."""
    return DeleteCursor(_pin_name(request))


def _position(request: Request, field: str) -> int | None:
    """A catalog version up to which a consumer is done; 0: it has seen none."""
    version = integer(request, field)
    if version is not None and version < 0:
        raise InvalidInputError(f"{field}: expected a catalog version, from 0 on, found {version}")
    return version


def _pin_name(request: Request) -> str:
    """The name of a pin or a cursor."""
    name = text(request, "name", required=True) or ""
    if re.fullmatch(r"[A-Za-z0-9._-]{1,128}", name, re.ASCII) is None:
        raise InvalidInputError(f"name: expected 1 to 128 letters, digits, '.', '_' or '-', found {shown(name)}")
    return name


def rename_table(request: Request, _rules: RequestRules) -> RenameTable:
    """RenameTableRequest. Without `new_namespace_id` the table stays in its namespace.

    An empty list is an unset one: that is how the generated Java client sends it.
    """
    source = table_id(request)
    parent = source[:-1]
    if request.get("new_namespace_id") is not None:
        parent = object_id(request, "new", "new_namespace_id") or parent
    target = (*parent, text(request, "new_table_name", required=True) or "")
    naming_rules.check_new_id(target, "table")
    return RenameTable(source, target)


def create_table_version(request: Request, rules: RequestRules) -> CreateTableVersion:
    """CreateTableVersionRequest. A detached (negative) version is refused before anything else (N6)."""
    target = table_id(request)
    version = integer(request, "version", required=True) or 0
    if version < 0:
        raise UnsupportedOperationError(
            f"version {version} of {join(target)}: detached versions are not supported by this catalog"
        )
    if version == 0:
        raise InvalidInputError(f"version 0 of {join(target)}: versions begin at 1")
    size = integer(request, "manifest_size")
    if size is not None and size < 0:
        raise InvalidInputError(f"manifest_size: expected a size in bytes, found {size}")
    sent = text(request, "manifest_path", required=True) or ""
    scheme = text(request, "naming_scheme") or "V2"
    return CreateTableVersion(
        target,
        branch(request),
        version,
        rules.paths.manifest_key(sent),
        sent,
        size,
        text(request, "e_tag"),
        "V1" if scheme.upper() == "V1" else "V2",
        string_map(request, "metadata", rules.limits),
    )


def delete_table_versions(request: Request, _rules: RequestRules) -> DeleteTableVersions:
    """BatchDeleteTableVersionsRequest."""
    target = table_id(request)
    ranges = request.get("ranges")
    if not is_list(ranges) or not ranges:
        raise InvalidInputError(f"ranges: expected a non-empty list of version ranges, found {shown(ranges)}")
    parsed = []
    for item in ranges:
        if not isinstance(item, OBJECTS):
            raise InvalidInputError(f"ranges: expected objects with start_version and end_version, found {shown(item)}")
        check_known(item, _RANGE, "ranges")
        start, end = integer(item, "start_version", required=True), integer(item, "end_version", required=True)
        if start is None or end is None or start < 0 or 0 <= end < start:
            raise InvalidInputError(f"ranges: expected 0 <= start_version <= end_version, found {start} and {end}")
        parsed.append((start, end))
    return DeleteTableVersions(target, branch(request), tuple(parsed), naming_rules.new_location(target))


def commit_transaction(request: Request, rules: RequestRules) -> CommitTransaction:
    """Ours: a Lance Transaction message, base64-encoded."""
    target = table_id(request)
    encoded = text(request, "transaction", required=True) or ""
    try:
        transaction = decode_message(pb.Transaction, base64.b64decode(encoded, validate=True), _FREE_MESSAGES)
        uuid.UUID(transaction.uuid)
    except (binascii.Error, DecodeError, ValueError) as error:
        table = join(target)
        raise InvalidInputError(
            f"transaction on {table}: expected a base64-encoded Lance Transaction with a uuid ({error})"
        ) from error
    if transaction.WhichOneof("operation") is None:
        raise InvalidInputError(f"transaction {transaction.uuid} on {join(target)}: it has no known operation")
    return CommitTransaction(
        target,
        branch(request),
        transaction,
        flag(request, "stable_row_ids"),
        _data_format(request),
        _expected_location(request, rules),
        _expected_manifest(request),
    )


def assert_table_version(request: Request, rules: RequestRules) -> AssertTableVersion:
    """Ours: the read-set check."""
    target = table_id(request)
    version = integer(request, "version", required=True) or 0
    if version < 0:
        raise InvalidInputError(f"version {version} of {join(target)}: expected a version number or 0")
    location, manifest = _expected_location(request, rules), _expected_manifest(request)
    return AssertTableVersion(target, branch(request), version, location, manifest)


def create_table_branch(request: Request, _rules: RequestRules) -> CreateBranch:
    """CreateTableBranchRequest."""
    version = integer(request, "from_version")
    if version is not None and version < 1:
        raise InvalidInputError(f"from_version: expected a version from 1 on, found {version}")
    return CreateBranch(
        table_id(request), branch_name(request, new=True), branch(request, "from_branch"), version, str(uuid.uuid4())
    )


def set_table_properties(request: Request, rules: RequestRules) -> SetTableProperties:
    """Ours, in a batch: all properties of a table, or changes of some."""
    target = table_id(request)
    updates, removals = _properties(request, "updates", rules), strings(request, "removals", rules.limits)
    some = any(request.get(field) is not None for field in ("updates", "removals"))
    properties = None if some else _properties(request, "properties", rules)
    if some and request.get("properties") is not None:
        raise InvalidInputError("properties: expected either all properties, or updates and removals; found both")
    both = updates.keys() & removals
    if both:
        raise InvalidInputError(f"removals: expected none that updates set, found {names(sorted(both))}")
    location = _expected_location(request, rules)
    return SetTableProperties(target, properties, updates, removals, location, rules.limits)


def _properties(request: Request, field: str, rules: RequestRules) -> Mapping[str, str]:
    """Properties of a table or a namespace; those that the catalog reads are right."""
    properties = string_map(request, field, rules.limits)
    _check_known(properties, field)
    return properties


def check_table_properties(properties: Mapping[str, str], rules: RequestRules) -> None:
    """Check properties of a table: their sizes, and those that the catalog reads."""
    rules.limits.check_strings(properties, "properties")
    _check_known(properties, "properties")


def _check_known(properties: Mapping[str, str], field: str) -> None:
    try:
        check_properties(properties)
    except ValueError as error:
        raise InvalidInputError(f"{field}: {error}") from error


def keep_answer(operation: str, answer: Request, rules: RequestRules) -> KeepAnswer:
    """The answer of a call, for its record: a location becomes a key, since another server may see another root."""
    kept = {name: value for name, value in answer.items() if name != "location"}
    return KeepAnswer(operation, kept, _expected_location(answer, rules))


def _expected_location(request: Request, rules: RequestRules) -> str | None:
    """The location at which the client expects the table, as a store key."""
    return location_key(text(request, "location"), rules)


def location_key(sent: str | None, rules: RequestRules) -> str | None:
    """The store key of a location, given as an URI or relative to the root; None for none."""
    if sent is None:
        return None
    key = rules.paths.location_key(sent)
    if key is None:
        raise InvalidInputError(f"location {shown(sent)} lies outside the catalog root")
    return unquote(key)


def _data_format(request: Request) -> str | None:
    sent = text(request, "data_storage_version")
    check_data_format(sent)
    return sent


def check_data_format(version: str | None) -> None:
    """Check the version of the format of data files, if one is given."""
    if version is not None and version not in _DATA_FORMATS:
        raise InvalidInputError(
            f"data_storage_version: expected one of {', '.join(_DATA_FORMATS)}; found {shown(version)}"
        )


def _expected_manifest(request: Request) -> str | None:
    """The SHA-256 of the manifest that the client read (P11)."""
    sent = text(request, "manifest_sha256")
    if sent is not None and not _SHA256.fullmatch(sent):
        raise InvalidInputError(f"manifest_sha256: expected 64 lower-case hexadecimal digits, found {shown(sent)}")
    return sent

"""Requests as they come over the wire (JSON objects), made into typed operations; form is checked, nothing else.

Every function raises `InvalidInputError` (13) naming the field, what is expected and what was found. Field names are
those of the Lance namespace spec; `commit_transaction` and `assert_table_version` are ours.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard, TypeVar
from urllib.parse import unquote

from google.protobuf.message import DecodeError
from lance_namespace.errors import InvalidInputError, LanceNamespaceError, UnsupportedOperationError

from lance_core.format.refs import check_branch_name, check_tag_name
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.model import identifiers
from namespace_server.directory.model.errors import shown
from namespace_server.directory.model.integers import MAX_INT64, is_int64
from namespace_server.directory.model.limits import Limits, utf8_length
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import (
    AssertTableVersion,
    CommitTransaction,
    CreateBranch,
    CreateMode,
    CreateNamespace,
    CreateTableVersion,
    DeclareTable,
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
from namespace_server.directory.model.retention import check_properties

Request = Mapping[str, object]
T = TypeVar("T")
_MAX_DIGITS = len(str(MAX_INT64))
_MAX_PAGE = 2**31 - 1
_LONGEST_PIN = 30 * 86_400
"""Seconds that a pin may be asked for, unless it stays until it is removed."""
_DATA_FORMATS = ("2.0", "2.1", "2.2", "2.3")
_WALKS = frozenset({".", ".."})
OBJECTS = (dict, Mapping)
_SHA256 = re.compile(r"[0-9a-f]{64}")
"""What JSON makes of it goes first, here and in `_is_list`: to ask an abstract class takes several times as long."""


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


def table_id(request: Request, what: str = "table") -> ObjectId:
    """The id of a table: a list of at least one name."""
    parts = object_id(request, what)
    if not parts:
        raise InvalidInputError(f"{what} id: expected at least one name, found an empty list")
    return parts


def object_id(request: Request, what: str, field: str = "id") -> ObjectId:
    """An id: a list of strings. An absent id is an error; an empty list is the root namespace."""
    return _strings(request.get(field), f"{what} {field}")


def _strings(value: object, what: str) -> tuple[str, ...]:
    if not _are_strings(value):
        raise InvalidInputError(f"{what}: expected a list of strings, found {shown(value)}")
    return tuple(value)


def text(request: Request, field: str, *, required: bool = False) -> str | None:
    """An optional string."""
    value = request.get(field)
    if value is None and not required:
        return None
    if not isinstance(value, str):
        raise InvalidInputError(f"{field}: expected a string, found {shown(value)}")
    if not value.isascii():
        utf8_length(value, field)
    return value


def integer(request: Request, field: str, *, required: bool = False) -> int | None:
    """An optional 64-bit integer."""
    value = request.get(field)
    if value is None and not required:
        return None
    if not is_int64(value):
        raise InvalidInputError(f"{field}: expected a 64-bit integer, found {shown(value)}")
    return value


def flag(request: Request, field: str, *, default: bool = False) -> bool:
    """An optional boolean."""
    value = request.get(field)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InvalidInputError(f"{field}: expected true or false, found {shown(value)}")
    return value


def page_size(request: Request) -> int | None:
    """The limit of a paged read; None when unlimited (absent or negative)."""
    limit = integer(request, "limit")
    return None if limit is None or limit < 0 else min(limit, _MAX_PAGE)


def page_position(request: Request, what: str) -> int | None:
    """The page token of a read whose pages end with a number (`what` it is), or None on the first page."""
    token = text(request, "page_token")
    if token is None:
        return None
    if token.isascii() and token.isdigit() and len(token) <= _MAX_DIGITS:
        number = int(token)
        if number < MAX_INT64:
            return number
    raise InvalidInputError(f"page_token: expected {what}, found {shown(token)}")


def string_map(request: Request, field: str, limits: Limits) -> dict[str, str]:
    """An optional object of strings; absent is empty."""
    value = request.get(field)
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(key, str) and isinstance(item, str) for key, item in value.items()
    ):
        raise InvalidInputError(f"{field}: expected an object of strings, found {shown(value)}")
    limits.check_strings(value, field)
    return dict(value)


def check_common(request: Request, rules: RequestRules) -> None:
    """Check the fields that every operation may have, and that are read of whole requests only."""
    if request.get("context") is not None:
        string_map(request, "context", rules.limits)
    identity = request.get("identity")
    if identity is None:
        return
    if not isinstance(identity, OBJECTS):
        raise InvalidInputError(f"identity: expected an object, found {shown(identity)}")
    text(identity, "api_key")
    text(identity, "auth_token")


def strings(request: Request, field: str, limits: Limits) -> frozenset[str]:
    """An optional list of keys of an object of strings; absent is empty."""
    value = request.get(field)
    if value is None:
        return frozenset()
    keys = frozenset(_strings(value, field))
    limits.check_strings(dict.fromkeys(keys, ""), field)
    return keys


def branch(request: Request, field: str = "branch") -> str | None:
    """An optional branch; 'main' is the main chain, like None."""
    name = text(request, field)
    if name is None or name == "main":
        return None
    identifiers.check_branch(name)
    return name


def create_namespace(request: Request, rules: RequestRules) -> CreateNamespace:
    """CreateNamespaceRequest."""
    target = object_id(request, "namespace")
    identifiers.check_new_id(target, "namespace")
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
    target = table_id(request)
    identifiers.check_new_id(target, "table")
    wanted = text(request, "location")
    if wanted is None:
        location = identifiers.new_location(target)
    else:
        key = rules.paths.location_key(wanted)
        if key is None:
            raise InvalidInputError(f"table {join(target)}: location {shown(wanted)} lies outside the catalog root")
        identifiers.check_location(key, target)
        location = key
    return DeclareTable(
        target,
        location,
        _properties(request, "properties", rules),
        chosen=wanted is not None,
        implicit_namespaces=rules.implicit_namespaces,
        vends=flag(request, "vend_credentials", default=True),
    )


def register_table(request: Request, rules: RequestRules) -> RegisterTable:
    """RegisterTableRequest."""
    target = table_id(request)
    identifiers.check_new_id(target, "table")
    location = text(request, "location", required=True) or ""
    identifiers.check_registered_location(location)
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
    target = source if request.get("new_id") is None else object_id(request, "new", "new_id")
    identifiers.check_new_id(target, "table")
    return UndropTable(source, target, text(request, "tombstone_id"))


def undrop_namespace(request: Request, _rules: RequestRules) -> UndropNamespace:
    """Ours: a namespace that was dropped with what it held."""
    target = object_id(request, "namespace")
    identifiers.check_new_id(target, "namespace")
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


def _pin_name(request: Request) -> str:
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
    identifiers.check_new_id(target, "table")
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
    if not _is_list(ranges) or not ranges:
        raise InvalidInputError(f"ranges: expected a non-empty list of version ranges, found {shown(ranges)}")
    parsed = []
    for item in ranges:
        if not isinstance(item, OBJECTS):
            raise InvalidInputError(f"ranges: expected objects with start_version and end_version, found {shown(item)}")
        start, end = integer(item, "start_version", required=True), integer(item, "end_version", required=True)
        if start is None or end is None or start < 0 or 0 <= end < start:
            raise InvalidInputError(f"ranges: expected 0 <= start_version <= end_version, found {start} and {end}")
        parsed.append((start, end))
    return DeleteTableVersions(target, branch(request), tuple(parsed), identifiers.new_location(target))


def commit_transaction(request: Request, rules: RequestRules) -> CommitTransaction:
    """Ours: a Lance Transaction message, base64-encoded."""
    target = table_id(request)
    encoded = text(request, "transaction", required=True) or ""
    try:
        transaction = pb.Transaction.FromString(base64.b64decode(encoded, validate=True))
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


def create_branch(request: Request, _rules: RequestRules) -> CreateBranch:
    """CreateTableBranchRequest."""
    version = integer(request, "from_version")
    if version is not None and version < 1:
        raise InvalidInputError(f"from_version: expected a version from 1 on, found {version}")
    return CreateBranch(
        table_id(request), branch_name(request, new=True), branch(request, "from_branch"), version, str(uuid.uuid4())
    )


def branch_name(request: Request, *, new: bool = False) -> str:
    """The name of a branch other than main, as stock clients accept it."""
    name = text(request, "name", required=True) or ""
    try:
        return check_branch_name(name, new=new)
    except ValueError as error:
        raise InvalidInputError(f"name: {error}") from error


def tag_name(request: Request, *, new: bool = False) -> str:
    """The name of a tag, as stock clients accept it."""
    name = text(request, "tag", required=True) or ""
    try:
        return check_tag_name(name, new=new)
    except ValueError as error:
        raise InvalidInputError(f"tag: {error}") from error


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
    try:
        check_properties(properties)
    except ValueError as error:
        raise InvalidInputError(f"{field}: {error}") from error
    return properties


def keep_answer(operation: str, answer: Request, rules: RequestRules) -> KeepAnswer:
    """What a call answers, to be kept in its record: a location as a key, since another server may see another root."""
    kept = {name: value for name, value in answer.items() if name != "location"}
    return KeepAnswer(operation, kept, _expected_location(answer, rules))


def _expected_location(request: Request, rules: RequestRules) -> str | None:
    """The location at which the client expects the table, as a store key."""
    sent = text(request, "location")
    if sent is None:
        return None
    key = rules.paths.location_key(sent)
    if key is None:
        raise InvalidInputError(f"location {shown(sent)} lies outside the catalog root")
    return unquote(key)


def _data_format(request: Request) -> str | None:
    sent = text(request, "data_storage_version")
    if sent is not None and sent not in _DATA_FORMATS:
        raise InvalidInputError(
            f"data_storage_version: expected one of {', '.join(_DATA_FORMATS)}; found {shown(sent)}"
        )
    return sent


def _expected_manifest(request: Request) -> str | None:
    """The SHA-256 of the manifest that the client read (P11)."""
    sent = text(request, "manifest_sha256")
    if sent is not None and not _SHA256.fullmatch(sent):
        raise InvalidInputError(f"manifest_sha256: expected 64 lower-case hexadecimal digits, found {shown(sent)}")
    return sent


def located(place: str, error: InvalidInputError | UnsupportedOperationError) -> LanceNamespaceError:
    """The same error, with the place in front of its message."""
    return type(error)(f"{place}: {error}")


def names(fields: Sequence[object]) -> str:
    """Names of fields as they stand in an error text."""
    names = ", ".join(map(str, fields[:8])) or "none"
    return names if len(names) <= 200 else f"{names[:200]}…"


def objects(request: Request, field: str) -> Sequence[Request]:
    """A list of at least one object."""
    items = request.get(field)
    if not _is_list(items) or not items:
        raise InvalidInputError(f"{field}: expected a non-empty list, found {shown(items)}")
    found: list[Request] = []
    for index, item in enumerate(items):
        if not isinstance(item, OBJECTS):
            raise InvalidInputError(f"{field}[{index}]: expected an object, found {shown(item)}")
        found.append(item)
    return found


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, (list, Sequence)) and not isinstance(value, str)


def _are_strings(value: object) -> TypeGuard[Sequence[str]]:
    return _is_list(value) and all(isinstance(part, str) for part in value)


def choice(request: Request, field: str, choices: Mapping[str, T], default: T) -> T:
    """The choice that a string names, in any case, with underscores or without; absent is `default`."""
    value = text(request, field)
    if value is None:
        return default
    chosen = choices.get(value.replace("_", "").lower())
    if chosen is None:
        raise InvalidInputError(f"{field}: expected one of {', '.join(choices)}; found {shown(value)}")
    return chosen

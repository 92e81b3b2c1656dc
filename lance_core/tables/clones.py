"""Clones of a table at another root: shallow (refers to the files of the original) or deep (copies them)."""

from __future__ import annotations

import uuid

from lance_core.commit.copying import Origin
from lance_core.commit.loop import Committed, commit_transaction
from lance_core.errors import AlreadyExists, IncompatibleTransaction
from lance_core.storage.port import ObjectStore
from lance_core.table_files import root_path
from lance_core.transaction.operations import Clone, encode_transaction


def clone_table(origin: Origin, target: ObjectStore, base: str, *, is_shallow: bool) -> Committed:
    """Create a new table at the key `base` of `target` from a version. As in stock pylance, it keeps its number.

    A deep clone's files are copied, and durable, before the first manifest is written: a crash leaves no table. A call
    may be repeated, even after later commits to the clone: the uuid of the transaction is derived from the origin and
    the target.

    Raises:
        AlreadyExists: There is a table that this clone did not make.
        ReferenceNotFound: A file of the version no longer exists.
        UnsupportedFeature: The version cannot be continued or copied.
        TransactionUnknown: The clone may have been created, or may still be.
    """
    version = origin.file.version
    operation = Clone(root_path(origin.store, origin.base), version, origin.file.branch, None, is_shallow=is_shallow)
    name = _uuid(operation, origin, target.object_uri(base))
    try:
        return commit_transaction(
            target, base, encode_transaction(operation, read_version=version, uuid=name), origin=origin
        )
    except IncompatibleTransaction as error:
        raise AlreadyExists(f"{target.object_uri(base)}: expected no table, found version {error.version}") from error


def _uuid(operation: Clone, origin: Origin, target: str) -> str:
    kind = "shallow" if operation.is_shallow else "deep"
    named = "\n".join((kind, operation.ref_path, str(operation.ref_version), origin.file.identity.sha256, target))
    return str(uuid.uuid5(uuid.NAMESPACE_URL, named))

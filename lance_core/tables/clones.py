"""Clones of a table at another root: shallow, leaning on the files of the first, or deep, with copies of them."""

from __future__ import annotations

import uuid

from lance_core.commit.copying import Origin
from lance_core.commit.loop import Committed, commit_transaction
from lance_core.commit.table_files import root_path
from lance_core.errors import AlreadyExists, IncompatibleTransaction
from lance_core.storage.port import ObjectStore
from lance_core.transaction.operations import Clone, encode_transaction


def clone_table(origin: Origin, target: ObjectStore, base: str, *, is_shallow: bool) -> Committed:
    """Make a version the first one of a new table at the key `base` of `target`. As in stock pylance, its number stays.

    What a deep clone copies is there, and durable, before the first manifest is; a crash leaves no table, and the same
    call completes it. The transaction's uuid follows from what is cloned and to where, so a call may be repeated, also
    when the clone went on since.

    Raises `AlreadyExists` when there is a table that this clone did not make; `ReferenceNotFound` when a file of the
    version is gone; `UnsupportedFeature` for a version that cannot be continued or copied; `CommitUnknown`.
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

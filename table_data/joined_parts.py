"""The transactions of parts that were uploaded by themselves, joined into one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import Append, Overwrite, decode_operation, encode_transaction
from table_data.batch_operations import TransactionCommit
from table_data.errors import InvalidCall


def join_parts(parts: Sequence[TransactionCommit], name: str) -> TransactionCommit:
    """One commit of the rows of all parts of a table, in their order, whose transaction has the uuid `name`.

    Each part appends rows, or each replaces all rows: then their rows are the table. It is built on the lowest version
    that a part was written for, so that each part is compared with all commits since its own. Raises `InvalidCall` for
    parts that make no one version, and where there is none.
    """
    if not parts:
        raise InvalidCall("expected at least one part, found none")
    first = min(parts, key=lambda part: part.transaction.read_version)
    for part in parts:
        is_alike = (part.location, part.branch, part.stable_row_ids, part.data_storage_version) == (
            (first.location, first.branch, first.stable_row_ids, first.data_storage_version)
        )
        replaced = (
            part.transaction.read_version == first.transaction.read_version
            and part.manifest_sha256 != first.manifest_sha256
        )
        if replaced or not is_alike:
            raise _differ("tables")
    operations = [decode_operation(part.transaction) for part in parts]
    appends = [each for each in operations if isinstance(each, Append)]
    overwrites = [each for each in operations if isinstance(each, Overwrite)]
    joined: Append | Overwrite
    if len(appends) == len(parts):
        joined = Append(_fragments(appends))
    elif len(overwrites) == len(parts):
        if any(replace(each, fragments=()) != replace(overwrites[0], fragments=()) for each in overwrites):
            raise _differ("schemas")
        joined = replace(overwrites[0], fragments=_fragments(overwrites))
    else:
        raise InvalidCall("parts: expected all of them to append rows, or all to be the table, found both; begin anew")
    transaction = encode_transaction(joined, read_version=first.transaction.read_version, uuid=name)
    return replace(first, transaction=transaction)


def _fragments(operations: Sequence[Append] | Sequence[Overwrite]) -> tuple[pb.DataFragment, ...]:
    return tuple(chain.from_iterable(each.fragments for each in operations))


def _differ(what: str) -> InvalidCall:
    return InvalidCall(f"parts: expected those of one table with one schema, found different {what}; begin anew")

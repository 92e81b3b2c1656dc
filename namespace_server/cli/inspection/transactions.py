"""Describes a transaction: a summary in one line, and every field."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lance_core.proto import lance_table_pb2 as pb
from namespace_server.cli.inspection.messages import UNKNOWN_FIELDS, message_values, unknown_fields


def describe_transaction(transaction: pb.Transaction) -> dict[str, Any]:
    """Describe a transaction: `operation` by field name (None if unknown), `summary`, every field under `content`."""
    name = transaction.WhichOneof("operation")
    return {
        "operation": name,
        "summary": summarise_operation(transaction),
        "uuid": transaction.uuid,
        "read_version": transaction.read_version,
        "properties": dict(transaction.transaction_properties),
        "content": message_values(transaction),
    }


def summarise_operation(transaction: pb.Transaction) -> str:
    """The effect of the operation, in one line."""
    name = transaction.WhichOneof("operation")
    if name is None:
        numbers = [entry["field"] for entry in unknown_fields(transaction)]
        return f"an unknown operation: field {', '.join(map(str, numbers))}" if numbers else "no operation"
    operation = getattr(transaction, name)
    if isinstance(operation, bytes):  # an operation whose message is not defined here
        return f"{len(operation)} bytes that this engine does not read"
    summary = _SUMMARIES[name](operation) if name in _SUMMARIES else ""
    unknown = unknown_fields(operation)
    if unknown:
        summary += f"; {UNKNOWN_FIELDS.replace('_', ' ')} {', '.join(str(entry['field']) for entry in unknown)}"
    return summary.removeprefix("; ")


def _fragments(fragments: Iterable[pb.DataFragment]) -> str:
    listed = list(fragments)
    return f"{len(listed)} fragments of {sum(fragment.physical_rows for fragment in listed)} rows"


def _update(operation: pb.Transaction.Update) -> str:
    said = f"{len(operation.updated_fragments)} fragments changed, {len(operation.removed_fragment_ids)} removed"
    said += f", {_fragments(operation.new_fragments)} added"
    if operation.fields_modified:
        said += f", fields {', '.join(map(str, operation.fields_modified))} rewritten"
    return said + (", with a filter of inserted keys" if operation.HasField("inserted_rows") else "")


def _rewrite(operation: pb.Transaction.Rewrite) -> str:
    old = sum(len(group.old_fragments) for group in operation.groups) + len(operation.old_fragments)
    new = sum(len(group.new_fragments) for group in operation.groups) + len(operation.new_fragments)
    groups, segments = len(operation.groups) or 1, len(operation.rewritten_indices)
    return f"{old} fragments became {new}, in {groups} groups, {segments} index segments rewritten"


def _update_config(operation: pb.Transaction.UpdateConfig) -> str:
    parts = []
    for name in ("config_updates", "table_metadata_updates", "schema_metadata_updates"):
        if operation.HasField(name):
            update = getattr(operation, name)
            keys = ", ".join(repr(entry.key) for entry in update.update_entries)
            parts.append(
                f"{name.removesuffix('_updates')} {'replaced by' if update.replace else 'of'} {keys or 'none'}"
            )
    if operation.field_metadata_updates:
        parts.append(f"metadata of fields {', '.join(map(str, sorted(operation.field_metadata_updates)))}")
    old = [*operation.upsert_values, *operation.delete_keys, *operation.schema_metadata]
    return "; ".join([*parts, f"older form, keys {', '.join(map(repr, old))}"] if old else parts)


def _clone(operation: pb.Transaction.Clone) -> str:
    depth = "shallow" if operation.is_shallow else "deep"
    branch = f" as branch {operation.branch_name!r}" if operation.HasField("branch_name") else ""
    return f"{depth}, of version {operation.ref_version} at {operation.ref_path!r}{branch}"


def _names(indices: Iterable[pb.IndexMetadata]) -> str:
    return ", ".join(repr(index.name) for index in indices) or "none"


_SUMMARIES: dict[str, Callable[[Any], str]] = {
    "append": lambda operation: f"{_fragments(operation.fragments)} added",
    "delete": lambda operation: (
        f"{len(operation.updated_fragments)} fragments changed, {len(operation.deleted_fragment_ids)} removed, "
        f"where {operation.predicate!r}"
    ),
    "overwrite": lambda operation: (
        f"{_fragments(operation.fragments)}, {len(operation.schema)} fields, replacing the table"
    ),
    "create_index": lambda operation: (
        f"segments of {_names(operation.new_indices)} added, of {_names(operation.removed_indices)} removed"
    ),
    "rewrite": _rewrite,
    "merge": lambda operation: f"now {_fragments(operation.fragments)}, {len(operation.schema)} fields",
    "restore": lambda operation: f"back to version {operation.version}",
    "reserve_fragments": lambda operation: f"{operation.num_fragments} fragment ids",
    "update": _update,
    "project": lambda operation: f"now {len(operation.schema)} fields",
    "update_config": _update_config,
    "data_replacement": lambda operation: f"{len(operation.replacements)} files replaced",
    "update_mem_wal_state": lambda operation: f"{len(operation.compacted_sstables)} log generations merged",
    "clone": _clone,
    "update_bases": lambda operation: f"base paths {', '.join(repr(base.path) for base in operation.new_bases)} added",
    "data_overlay": lambda operation: f"{len(operation.groups)} fragments overlaid",
}

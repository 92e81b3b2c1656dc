"""Entry point of the conflict rules: may a transaction follow one that was committed after its read version?

The rules are those of the transaction specification of the table format as stock writers apply them, always with row
information for Delete and Update. They deviate deliberately where stock writers lose or corrupt data:

* a `replace` of the config against any other change of it conflicts (stock writers lose one of them);
* metadata for a field that a Project dropped is incompatible (stock writers fail while building the manifest);
* a CreateIndex over a schema change that dropped the indexed field is retryable (stock writers leave an index on
  nothing);
* an Append over a Merge that replaced columns, as the cast of one does, is retryable (in what stock writers commit the
  new rows have nulls in place of their values);
* a Project over new metadata of a field is retryable (stock writers lose the metadata);
* an unknown operation, or a transaction that cannot be read, is incompatible with everything (stock writers
  commit added base paths after it).

Two things are rebased. The deletions of a Delete or Update are merged with concurrent deletions in the same fragments.
A CreateIndex over a column that was rewritten in some fragments no longer covers those fragments.
"""

from __future__ import annotations

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.indices import judge_create_index
from lance_core.transaction.conflicts.layout import judge_data_replacement, judge_rewrite
from lance_core.transaction.conflicts.rows import (
    Context,
    judge_append,
    judge_overwrite,
    judge_row_change,
    shared_fragments,
)
from lance_core.transaction.conflicts.verdicts import Outcome, Verdict, incompatible
from lance_core.transaction.conflicts.whole_tables import (
    judge_config,
    judge_log_state,
    judge_merge,
    judge_project,
    judge_table_change,
)
from lance_core.transaction.operations import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)

__all__ = ["Context", "Outcome", "Verdict", "judge", "shared_fragments"]


def judge(ours: Operation, theirs: pb.Transaction | None, context: Context | None = None) -> Verdict:
    """Judge an operation against one transaction that was committed after its read version.

    Args:
        ours: The operation to be committed.
        theirs: The committed transaction; None if it cannot be found.
        context: The rows and the schema that the verdict may depend on.

    Returns:
        The verdict on `ours`.
    """
    name = None if theirs is None else theirs.WhichOneof("operation")
    context = context or Context()
    if theirs is None or name is None or name in _OPAQUE:
        return incompatible(f"its transaction is {_OPAQUE.get(name or '', 'of an unknown kind')}")
    match ours:
        case Append():
            return judge_append(ours, name, theirs)
        case Overwrite():
            return judge_overwrite(ours, name, theirs)
        case Delete() | Update():
            return judge_row_change(ours, name, theirs, context)
        case UpdateConfig():
            return judge_config(ours, name, theirs)
        case Project():
            return judge_project(ours, name, theirs)
        case Merge():
            return judge_merge(name, theirs)
        case CreateIndex():
            return judge_create_index(ours, name, theirs, context.fields)
        case DataReplacement():
            return judge_data_replacement(ours, name, theirs, context.fields)
        case Rewrite():
            return judge_rewrite(ours, name, theirs)
        case UpdateMemWalState():
            return judge_log_state(ours, name, theirs)
        case Restore() | ReserveFragments() | UpdateBases():
            return judge_table_change(ours, name, theirs)
        case Clone():
            return incompatible("a Clone can only be the first version")


_OPAQUE = {
    "clone": "a Clone, which can only be a first version",
    "composite_operation": "a composite operation, which is not supported",
}

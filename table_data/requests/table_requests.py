"""The requests of the operations on the rows of one table, as the Lance namespace specification has them.

A request is checked against its type once, where it comes in: fields that a type does not name are refused, and the
types hold from there on. What else must hold is checked by the operation.

Compared with the specification, a scan needs no `k` and no `vector`, and `data_type` may be the name of a type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Required

from pydantic import ConfigDict, FailFast, Field, StrictBool, StrictFloat, StrictInt, StrictStr
from typing_extensions import TypedDict  # pydantic takes that of `typing` from Python 3.12 on only

from table_data.errors import InvalidCall

if TYPE_CHECKING:
    from lance_core.compaction import CompactionOptions
    from table_data.batch_operations import TableState
    from table_data.change_feed.ranges import ChangeRange

Name = Annotated[StrictStr, Field(min_length=1)]
Count = Annotated[StrictInt, Field(ge=0)]
RowId = Annotated[StrictInt, Field(ge=0, lt=2**64)]
Positive = Annotated[StrictInt, Field(ge=1)]
Real = StrictFloat | StrictInt
Texts = dict[StrictStr, StrictStr]


class _Strict(TypedDict, total=False):
    """Fields that a type does not name are refused: an ignored field loses what it asks for."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]


class TableRequest(_Strict, total=False):
    """Fields of every request. A `timeout` bounds the tries of a change."""

    id: list[StrictStr] | None
    branch: StrictStr | None
    context: Texts | None
    timeout: StrictStr | None


class ReadRequest(TableRequest, total=False):
    """Fields of every read: the version that is read, the newest one without."""

    version: Count | None


class CreateTable(TableRequest, total=False):
    """The fields of a creation of a table from rows."""

    mode: StrictStr | None
    properties: Texts | None
    storage_options: Texts | None


class Insert(TableRequest, total=False):
    """The fields of an insert of rows."""

    mode: StrictStr | None


class BeginMultipartWrite(_Strict, total=False):
    """The table that rows are uploaded for in parts, and the branch."""

    id: list[StrictStr] | None
    branch: StrictStr | None


class AbortMultipartWrite(_Strict, total=False):
    """The upload that is given up."""

    id: list[StrictStr] | None
    upload_id: Required[StrictStr]


class CompleteMultipartWrite(AbortMultipartWrite, total=False):
    """The upload that is committed; `parts` are the ids of all its parts, in the order of their rows."""

    branch: StrictStr | None
    parts: list[StrictStr] | None


class MergeInsert(TableRequest, total=False):
    """The fields of a merge of rows."""

    on: list[Name] | None
    when_matched_update_all: StrictBool | None
    when_matched_update_all_filt: StrictStr | None
    when_not_matched_insert_all: StrictBool | None
    when_not_matched_by_source_delete: StrictBool | None
    when_not_matched_by_source_delete_filt: StrictStr | None
    use_index: StrictBool | None


class UpdateRows(TableRequest, total=False):
    """UpdateTableRequest: pairs of column and expression."""

    predicate: StrictStr | None
    updates: Required[list[Annotated[list[StrictStr], Field(min_length=2, max_length=2)]]]
    properties: Texts | None


class DeleteRows(TableRequest):
    """DeleteFromTableRequest."""

    predicate: StrictStr


class AddColumn(_Strict, total=False):
    """A new column. `computed` and `virtual_column` are refused by name."""

    name: Required[StrictStr]
    expression: StrictStr | None
    computed: StrictStr | None
    virtual_column: dict[StrictStr, object] | None


class AddColumns(TableRequest, total=False):
    """AlterTableAddColumnsRequest, or the schema of columns of nulls: an Arrow IPC stream, base64-encoded."""

    new_columns: Required[list[AddColumn]]
    arrow_schema: StrictStr | None


class AlterColumn(_Strict, total=False):
    """A change of a column. `virtual_column` is refused by name."""

    path: Required[Name]
    data_type: StrictStr | dict[StrictStr, object] | None
    rename: StrictStr | None
    nullable: StrictBool | None
    virtual_column: dict[StrictStr, object] | None


class AlterColumns(TableRequest):
    """AlterTableAlterColumnsRequest."""

    alterations: Annotated[list[AlterColumn], FailFast()]


class DropColumns(TableRequest):
    """AlterTableDropColumnsRequest."""

    columns: list[Name]


class SchemaMetadata(TableRequest, total=False):
    """UpdateTableSchemaMetadataRequest."""

    metadata: Texts | None


class FieldMetadataEntry(_Strict, total=False):
    """New metadata of a field; a key is removed by null."""

    path: Required[Name]
    metadata: Required[dict[StrictStr, StrictStr | None]]
    replace: StrictBool | None


class FieldMetadata(TableRequest):
    """UpdateFieldMetadataRequest."""

    updates: list[FieldMetadataEntry]


class RestoreTable(TableRequest):
    """RestoreTableRequest."""

    version: Count


class CreateTableIndex(TableRequest, total=False):
    """CreateTableIndexRequest, and that of a scalar index."""

    column: Required[Name]
    index_type: Required[StrictStr]
    name: StrictStr | None
    distance_type: StrictStr | None
    num_partitions: Positive | None
    num_sub_vectors: Positive | None
    num_bits: Positive | None
    sample_rate: Positive | None
    max_iterations: Positive | None
    target_partition_size: Positive | None
    m: Positive | None
    ef_construction: Positive | None
    with_position: StrictBool | None
    base_tokenizer: StrictStr | None
    language: StrictStr | None
    max_token_length: Count | None
    lower_case: StrictBool | None
    stem: StrictBool | None
    remove_stop_words: StrictBool | None
    ascii_folding: StrictBool | None
    custom_stop_words: list[StrictStr] | None
    min_ngram_length: Positive | None
    max_ngram_length: Positive | None
    prefix_only: StrictBool | None
    block_size: Positive | None
    index_operators: StrictBool | None
    preserve_original: StrictBool | None
    split_identifiers: StrictBool | None
    split_on_numerics: StrictBool | None
    replace: StrictBool | None


class DropIndex(TableRequest):
    """DropTableIndexRequest."""

    index_name: StrictStr


class DescribeIndex(ReadRequest):
    """DescribeTableIndexStatsRequest."""

    index_name: StrictStr


class PrewarmPages(ReadRequest, total=False):
    """A hint that columns will be read soon. It and that of an index are of some clients, not of the specification."""

    columns: list[Name] | None


class ListIndices(ReadRequest, total=False):
    """ListTableIndicesRequest."""

    page_token: StrictStr | None
    limit: StrictInt | None


class CountRows(ReadRequest, total=False):
    """CountTableRowsRequest."""

    predicate: StrictStr | None


class MatchQuery(_Strict, total=False):
    """Rows with words."""

    terms: Required[StrictStr]
    column: Name | None
    boost: Real | None
    fuzziness: Count | None
    max_expansions: Count | None
    operator: StrictStr | None
    prefix_length: Count | None


class PhraseQuery(_Strict, total=False):
    """Rows with words one after another."""

    terms: Required[StrictStr]
    column: Name | None
    slop: Count | None


class BoostQuery(_Strict, total=False):
    """Rows that one query finds; those that another finds, too, count less."""

    positive: Required[TextQuery]
    negative: Required[TextQuery]
    negative_boost: Real | None


class MultiMatchQuery(_Strict):
    """The best of several matches."""

    match_queries: list[MatchQuery]


class BooleanQuery(_Strict):
    """Queries of which all must, must not or should find a row."""

    must: list[TextQuery]
    must_not: list[TextQuery]
    should: list[TextQuery]


class TextQuery(_Strict, total=False):
    """One of these."""

    match: MatchQuery | None
    phrase: PhraseQuery | None
    boost: BoostQuery | None
    multi_match: MultiMatchQuery | None
    boolean: BooleanQuery | None


class StringQuery(_Strict, total=False):
    """Words to look for in columns."""

    query: Required[StrictStr]
    columns: list[Name] | None


class StructuredQuery(_Strict):
    """A tree of queries."""

    query: TextQuery


class FullTextQuery(_Strict, total=False):
    """One of these."""

    string_query: StringQuery | None
    structured_query: StructuredQuery | None


class QueryColumns(_Strict, total=False):
    """Names of columns, or expressions by name."""

    column_names: list[Name] | None
    column_aliases: dict[StrictStr, Name] | None


class QueryVector(_Strict, total=False):
    """One vector, or several."""

    single_vector: list[Real] | None
    multi_vector: list[list[Real]] | None


class QueryOrder(_Strict, total=False):
    """A column by which rows are ordered."""

    column_name: Required[Name]
    ascending: StrictBool | None
    nulls_first: StrictBool | None


class QueryTable(ReadRequest, total=False):
    """QueryTableRequest, and that of the analysis of a plan."""

    bypass_vector_index: StrictBool | None
    columns: QueryColumns | None
    distance_type: StrictStr | None
    ef: Count | None
    fast_search: StrictBool | None
    filter: StrictStr | None
    full_text_query: FullTextQuery | None
    k: Count | None
    lower_bound: Real | None
    maximum_nprobes: Positive | None
    minimum_nprobes: Positive | None
    nprobes: Count | None
    offset: Count | None
    order_by: list[QueryOrder] | None
    prefilter: StrictBool | None
    refine_factor: Count | None
    upper_bound: Real | None
    vector: QueryVector | None
    vector_column: Name | None
    with_row_id: StrictBool | None


class FetchBlobs(ReadRequest):
    """The rows, by their ids, whose values of a column of blobs are read as a whole."""

    column: Name
    row_ids: list[RowId]


class ReadTableBlob(ReadRequest):
    """The row, by its id, whose value of a column of blobs is read."""

    column: Name
    row_id: RowId


class FindTableBlob(ReadRequest):
    """The row, by a filter that it alone matches, whose value of a column of blobs is read."""

    column: Name
    filter: Name


class LocateBlobs(ReadRequest, total=False):
    """The rows whose values are looked for: those with these ids, or the first two that match a filter."""

    column: Required[Name]
    row_ids: list[RowId]
    filter: StrictStr


class ReadBlobs(ReadRequest):
    """Rows whose values are read as a whole, with their sizes in bytes."""

    column: Name
    row_ids: list[RowId]
    sizes: list[Count]


class ReadBlob(ReadRequest):
    """Bytes of one value: at most `length` from `offset` on."""

    column: Name
    row_id: RowId
    offset: Count
    length: Count


class Explain(ReadRequest, total=False):
    """ExplainTableQueryPlanRequest. Version and branch are those of the query."""

    query: Required[QueryTable]
    verbose: StrictBool | None


class ReadChanges(_Strict, total=False):
    """Ours: the changes of rows after one catalog version, or that of a cursor, up to another, the newest without."""

    id: list[StrictStr] | None
    branch: StrictStr | None
    since: Count | None
    cursor: Name | None
    to: Count | None
    columns: list[Name] | None


class ChangesOfVersions(ReadRequest, total=False):
    """What a `ReadChanges` means, for the worker that reads them: no client sends it."""

    span: Required[ChangeRange]
    columns: list[str] | None


class DiffBranch(ReadRequest):
    """Ours: what the branch `from_branch` changed since it began, beside main."""

    from_branch: Name


class DiffOfBranch(DiffBranch):
    """The same for the worker, with the version of the branch: no client sends it."""

    source: TableState


class PickBranch(TableRequest, total=False):
    """Ours: main with what the branch `from_branch` changed. With `dry_run` it is only said whether that can be."""

    from_branch: Required[Name]
    dry_run: StrictBool | None


class PickOfBranch(PickBranch, total=False):
    """The same for the worker, with the version of the branch: no client sends it."""

    source: Required[TableState]


class ReserveFragmentIds(TableRequest):
    """How many fragment ids are reserved. This request and those below are of maintenance: no client sends them."""

    count: int


class ReservedIds(TypedDict):
    """So many fragment ids, from the first one on."""

    first: int
    count: int


class CompactTable(TableRequest):
    """The fragments to rewrite, and the reserved ids that new fragments of an indexed table get."""

    options: CompactionOptions
    reserved: ReservedIds


class OptimizeIndices(TableRequest):
    """The names of the indices of which each gets one segment over all rows."""

    names: list[str]


CHANGES: Final[Mapping[str, type[TableRequest]]] = {
    "create_table": CreateTable,
    "insert_into_table": Insert,
    "merge_insert_into_table": MergeInsert,
    "update_table": UpdateRows,
    "delete_from_table": DeleteRows,
    "alter_table_add_columns": AddColumns,
    "alter_table_alter_columns": AlterColumns,
    "alter_table_drop_columns": DropColumns,
    "update_table_schema_metadata": SchemaMetadata,
    "update_field_metadata": FieldMetadata,
    "restore_table": RestoreTable,
    "create_table_index": CreateTableIndex,
    "create_table_scalar_index": CreateTableIndex,
    "drop_table_index": DropIndex,
    "cherry_pick_table_branch": PickBranch,
}
"""The types of the requests of changes, by the names of the methods of `LanceNamespace`."""
READS: Final[Mapping[str, type[ReadRequest]]] = {
    "describe_table_index_stats": DescribeIndex,
    "list_table_indices": ListIndices,
    "prewarm_table_index": DescribeIndex,
    "prewarm_table_pages": PrewarmPages,
    "get_table_stats": ReadRequest,
    "count_table_rows": CountRows,
    "query_table": QueryTable,
    "analyze_table_query_plan": QueryTable,
    "explain_table_query_plan": Explain,
    "fetch_table_blobs": FetchBlobs,
    "read_table_blob": ReadTableBlob,
    "find_table_blob": FindTableBlob,
    "diff_table_branch": DiffBranch,
}
"""As `CHANGES`, of reads."""


def mode_of(wanted: str | None, modes: Sequence[str]) -> str:
    """One of `modes`, which are in snake case; the first if none is wanted. Its name may be in Pascal case, too.

    Raises `InvalidCall`.
    """
    given = modes[0] if wanted is None else wanted
    found = given.replace("_", "").lower()
    for mode in modes:
        if mode.replace("_", "") == found:
            return mode
    raise InvalidCall(f"mode {given[:80]!r}: expected one of {', '.join(modes)}")

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.context import Context
    from ..models.identity import Identity
    from ..models.query_order import QueryOrder
    from ..models.query_table_request_columns import QueryTableRequestColumns
    from ..models.query_table_request_full_text_query import QueryTableRequestFullTextQuery
    from ..models.query_table_request_vector import QueryTableRequestVector


T = TypeVar("T", bound="QueryTableRequest")


@_attrs_define
class QueryTableRequest:
    """Without `vector` and `full_text_query` a scan; with both, the rows of both searches, merged by reciprocal rank.

    Attributes:
        identity (Identity | Unset): Credentials as a client was given them. The server looks at the headers only.
        context (Context | Unset): Free entries that accompany a request.
        id (list[str] | Unset): A path of names, outermost first; empty is the root.
        branch (str | Unset): Absent is the main branch.
        version (int | Unset): Absent is the newest.
        k (int | Unset): Rows to return after `offset`. Zero or absent is no bound for a scan, ten for a search.
        offset (int | Unset): Rows to skip.
        columns (QueryTableRequestColumns | Unset): One of the two. Absent or empty is all columns.
        with_row_id (bool | Unset): Whether to return the row id as column `_rowid`.
        filter_ (str | Unset): SQL expression over the columns.
        prefilter (bool | Unset): Whether the filter applies before a search, not to its result (default).
        vector (QueryTableRequestVector | Unset): One of the two. Absent or empty is no vector search.
        vector_column (str | Unset): Path of the column to search. Absent is the only column of vectors, of several the
            one named `vector`.
        distance_type (str | Unset): `l2`, `cosine`, `dot` or `hamming`, in any case. Absent is that of the index, else
            `l2`.
        lower_bound (float | Unset): Least distance.
        upper_bound (float | Unset): The distance is less than this.
        nprobes (int | Unset): Partitions to search; ignored if one of the two below is given.
        minimum_nprobes (int | Unset): Partitions to search first.
        maximum_nprobes (int | Unset): Most partitions to search.
        refine_factor (int | Unset): Candidates for each row to return, whose exact distance is computed.
        ef (int | Unset): Candidates that a search in an HNSW index keeps.
        bypass_vector_index (bool | Unset): Whether to compute the distance to every row.
        fast_search (bool | Unset): Whether to leave out rows that are in no index.
        full_text_query (QueryTableRequestFullTextQuery | Unset): One of the two. Absent or empty is no full-text
            search.
        order_by (list[QueryOrder] | Unset): Ours. The order of the rows of a scan; a search has an order of its own.
    """

    identity: Identity | Unset = UNSET
    context: Context | Unset = UNSET
    id: list[str] | Unset = UNSET
    branch: str | Unset = UNSET
    version: int | Unset = UNSET
    k: int | Unset = UNSET
    offset: int | Unset = UNSET
    columns: QueryTableRequestColumns | Unset = UNSET
    with_row_id: bool | Unset = UNSET
    filter_: str | Unset = UNSET
    prefilter: bool | Unset = UNSET
    vector: QueryTableRequestVector | Unset = UNSET
    vector_column: str | Unset = UNSET
    distance_type: str | Unset = UNSET
    lower_bound: float | Unset = UNSET
    upper_bound: float | Unset = UNSET
    nprobes: int | Unset = UNSET
    minimum_nprobes: int | Unset = UNSET
    maximum_nprobes: int | Unset = UNSET
    refine_factor: int | Unset = UNSET
    ef: int | Unset = UNSET
    bypass_vector_index: bool | Unset = UNSET
    fast_search: bool | Unset = UNSET
    full_text_query: QueryTableRequestFullTextQuery | Unset = UNSET
    order_by: list[QueryOrder] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        identity: dict[str, Any] | Unset = UNSET
        if not isinstance(self.identity, Unset):
            identity = self.identity.to_dict()

        context: dict[str, Any] | Unset = UNSET
        if not isinstance(self.context, Unset):
            context = self.context.to_dict()

        id: list[str] | Unset = UNSET
        if not isinstance(self.id, Unset):
            id = self.id

        branch = self.branch

        version = self.version

        k = self.k

        offset = self.offset

        columns: dict[str, Any] | Unset = UNSET
        if not isinstance(self.columns, Unset):
            columns = self.columns.to_dict()

        with_row_id = self.with_row_id

        filter_ = self.filter_

        prefilter = self.prefilter

        vector: dict[str, Any] | Unset = UNSET
        if not isinstance(self.vector, Unset):
            vector = self.vector.to_dict()

        vector_column = self.vector_column

        distance_type = self.distance_type

        lower_bound = self.lower_bound

        upper_bound = self.upper_bound

        nprobes = self.nprobes

        minimum_nprobes = self.minimum_nprobes

        maximum_nprobes = self.maximum_nprobes

        refine_factor = self.refine_factor

        ef = self.ef

        bypass_vector_index = self.bypass_vector_index

        fast_search = self.fast_search

        full_text_query: dict[str, Any] | Unset = UNSET
        if not isinstance(self.full_text_query, Unset):
            full_text_query = self.full_text_query.to_dict()

        order_by: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.order_by, Unset):
            order_by = []
            for order_by_item_data in self.order_by:
                order_by_item = order_by_item_data.to_dict()
                order_by.append(order_by_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if identity is not UNSET:
            field_dict["identity"] = identity
        if context is not UNSET:
            field_dict["context"] = context
        if id is not UNSET:
            field_dict["id"] = id
        if branch is not UNSET:
            field_dict["branch"] = branch
        if version is not UNSET:
            field_dict["version"] = version
        if k is not UNSET:
            field_dict["k"] = k
        if offset is not UNSET:
            field_dict["offset"] = offset
        if columns is not UNSET:
            field_dict["columns"] = columns
        if with_row_id is not UNSET:
            field_dict["with_row_id"] = with_row_id
        if filter_ is not UNSET:
            field_dict["filter"] = filter_
        if prefilter is not UNSET:
            field_dict["prefilter"] = prefilter
        if vector is not UNSET:
            field_dict["vector"] = vector
        if vector_column is not UNSET:
            field_dict["vector_column"] = vector_column
        if distance_type is not UNSET:
            field_dict["distance_type"] = distance_type
        if lower_bound is not UNSET:
            field_dict["lower_bound"] = lower_bound
        if upper_bound is not UNSET:
            field_dict["upper_bound"] = upper_bound
        if nprobes is not UNSET:
            field_dict["nprobes"] = nprobes
        if minimum_nprobes is not UNSET:
            field_dict["minimum_nprobes"] = minimum_nprobes
        if maximum_nprobes is not UNSET:
            field_dict["maximum_nprobes"] = maximum_nprobes
        if refine_factor is not UNSET:
            field_dict["refine_factor"] = refine_factor
        if ef is not UNSET:
            field_dict["ef"] = ef
        if bypass_vector_index is not UNSET:
            field_dict["bypass_vector_index"] = bypass_vector_index
        if fast_search is not UNSET:
            field_dict["fast_search"] = fast_search
        if full_text_query is not UNSET:
            field_dict["full_text_query"] = full_text_query
        if order_by is not UNSET:
            field_dict["order_by"] = order_by

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.context import Context
        from ..models.identity import Identity
        from ..models.query_order import QueryOrder
        from ..models.query_table_request_columns import QueryTableRequestColumns
        from ..models.query_table_request_full_text_query import QueryTableRequestFullTextQuery
        from ..models.query_table_request_vector import QueryTableRequestVector

        d = dict(src_dict)
        _identity = d.pop("identity", UNSET)
        identity: Identity | Unset
        if isinstance(_identity, Unset):
            identity = UNSET
        else:
            identity = Identity.from_dict(_identity)

        _context = d.pop("context", UNSET)
        context: Context | Unset
        if isinstance(_context, Unset):
            context = UNSET
        else:
            context = Context.from_dict(_context)

        id = cast(list[str], d.pop("id", UNSET))

        branch = d.pop("branch", UNSET)

        version = d.pop("version", UNSET)

        k = d.pop("k", UNSET)

        offset = d.pop("offset", UNSET)

        _columns = d.pop("columns", UNSET)
        columns: QueryTableRequestColumns | Unset
        if isinstance(_columns, Unset):
            columns = UNSET
        else:
            columns = QueryTableRequestColumns.from_dict(_columns)

        with_row_id = d.pop("with_row_id", UNSET)

        filter_ = d.pop("filter", UNSET)

        prefilter = d.pop("prefilter", UNSET)

        _vector = d.pop("vector", UNSET)
        vector: QueryTableRequestVector | Unset
        if isinstance(_vector, Unset):
            vector = UNSET
        else:
            vector = QueryTableRequestVector.from_dict(_vector)

        vector_column = d.pop("vector_column", UNSET)

        distance_type = d.pop("distance_type", UNSET)

        lower_bound = d.pop("lower_bound", UNSET)

        upper_bound = d.pop("upper_bound", UNSET)

        nprobes = d.pop("nprobes", UNSET)

        minimum_nprobes = d.pop("minimum_nprobes", UNSET)

        maximum_nprobes = d.pop("maximum_nprobes", UNSET)

        refine_factor = d.pop("refine_factor", UNSET)

        ef = d.pop("ef", UNSET)

        bypass_vector_index = d.pop("bypass_vector_index", UNSET)

        fast_search = d.pop("fast_search", UNSET)

        _full_text_query = d.pop("full_text_query", UNSET)
        full_text_query: QueryTableRequestFullTextQuery | Unset
        if isinstance(_full_text_query, Unset):
            full_text_query = UNSET
        else:
            full_text_query = QueryTableRequestFullTextQuery.from_dict(_full_text_query)

        _order_by = d.pop("order_by", UNSET)
        order_by: list[QueryOrder] | Unset = UNSET
        if _order_by is not UNSET:
            order_by = []
            for order_by_item_data in _order_by:
                order_by_item = QueryOrder.from_dict(order_by_item_data)

                order_by.append(order_by_item)

        query_table_request = cls(
            identity=identity,
            context=context,
            id=id,
            branch=branch,
            version=version,
            k=k,
            offset=offset,
            columns=columns,
            with_row_id=with_row_id,
            filter_=filter_,
            prefilter=prefilter,
            vector=vector,
            vector_column=vector_column,
            distance_type=distance_type,
            lower_bound=lower_bound,
            upper_bound=upper_bound,
            nprobes=nprobes,
            minimum_nprobes=minimum_nprobes,
            maximum_nprobes=maximum_nprobes,
            refine_factor=refine_factor,
            ef=ef,
            bypass_vector_index=bypass_vector_index,
            fast_search=fast_search,
            full_text_query=full_text_query,
            order_by=order_by,
        )

        query_table_request.additional_properties = d
        return query_table_request

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.context import Context
    from ..models.identity import Identity


T = TypeVar("T", bound="CreateTableIndexRequest")


@_attrs_define
class CreateTableIndexRequest:
    """
    Attributes:
        column (str): Names from the outermost field inward, with dots between them. A name with a dot or a backtick is
            in backticks, which are doubled in it.
        index_type (str): In any case: BTREE (SCALAR), BITMAP, LABEL_LIST, INVERTED (FTS), NGRAM, ZONEMAP (ZONE_MAP),
            BLOOMFILTER (BLOOM_FILTER), RTREE, MINHASHLSH, IVF_FLAT, IVF_SQ, IVF_PQ (VECTOR), IVF_RQ, IVF_HNSW_FLAT,
            IVF_HNSW_SQ, IVF_HNSW_PQ. Options that a type does not have are refused.
        identity (Identity | Unset): Credentials as a client was given them. The server looks at the headers only.
        context (Context | Unset): Free entries that accompany a request.
        id (list[str] | Unset): A path of names, outermost first; empty is the root.
        branch (str | Unset):
        name (str | Unset): The path of the column with `_idx` appended if there is none.
        distance_type (str | Unset): l2 (default), cosine, dot or hamming.
        num_partitions (int | Unset):
        num_sub_vectors (int | Unset):
        num_bits (int | Unset):
        sample_rate (int | Unset):
        max_iterations (int | Unset):
        target_partition_size (int | Unset):
        m (int | Unset):
        ef_construction (int | Unset):
        with_position (bool | Unset):
        base_tokenizer (str | Unset):
        language (str | Unset):
        max_token_length (int | Unset):
        lower_case (bool | Unset):
        stem (bool | Unset):
        remove_stop_words (bool | Unset):
        ascii_folding (bool | Unset):
        custom_stop_words (list[str] | Unset): Ours. In the place of those of the language.
        min_ngram_length (int | Unset): Ours, for the tokenizer `ngram`.
        max_ngram_length (int | Unset): Ours, for the tokenizer `ngram`.
        prefix_only (bool | Unset): Ours, for the tokenizer `ngram`.
        block_size (int | Unset): Ours. Documents of a compressed block: 128 or 256.
        index_operators (bool | Unset): Ours, for source code.
        preserve_original (bool | Unset): Ours. Whether a word that is split is kept as a whole, too.
        split_identifiers (bool | Unset): Ours. Whether names such as `fooBar` are split.
        split_on_numerics (bool | Unset): Ours. Whether words are split at digits.
        replace (bool | Unset): Ours. Whether an index of this name is replaced; else it is error 7.
    """

    column: str
    index_type: str
    identity: Identity | Unset = UNSET
    context: Context | Unset = UNSET
    id: list[str] | Unset = UNSET
    branch: str | Unset = UNSET
    name: str | Unset = UNSET
    distance_type: str | Unset = UNSET
    num_partitions: int | Unset = UNSET
    num_sub_vectors: int | Unset = UNSET
    num_bits: int | Unset = UNSET
    sample_rate: int | Unset = UNSET
    max_iterations: int | Unset = UNSET
    target_partition_size: int | Unset = UNSET
    m: int | Unset = UNSET
    ef_construction: int | Unset = UNSET
    with_position: bool | Unset = UNSET
    base_tokenizer: str | Unset = UNSET
    language: str | Unset = UNSET
    max_token_length: int | Unset = UNSET
    lower_case: bool | Unset = UNSET
    stem: bool | Unset = UNSET
    remove_stop_words: bool | Unset = UNSET
    ascii_folding: bool | Unset = UNSET
    custom_stop_words: list[str] | Unset = UNSET
    min_ngram_length: int | Unset = UNSET
    max_ngram_length: int | Unset = UNSET
    prefix_only: bool | Unset = UNSET
    block_size: int | Unset = UNSET
    index_operators: bool | Unset = UNSET
    preserve_original: bool | Unset = UNSET
    split_identifiers: bool | Unset = UNSET
    split_on_numerics: bool | Unset = UNSET
    replace: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        column = self.column

        index_type = self.index_type

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

        name = self.name

        distance_type = self.distance_type

        num_partitions = self.num_partitions

        num_sub_vectors = self.num_sub_vectors

        num_bits = self.num_bits

        sample_rate = self.sample_rate

        max_iterations = self.max_iterations

        target_partition_size = self.target_partition_size

        m = self.m

        ef_construction = self.ef_construction

        with_position = self.with_position

        base_tokenizer = self.base_tokenizer

        language = self.language

        max_token_length = self.max_token_length

        lower_case = self.lower_case

        stem = self.stem

        remove_stop_words = self.remove_stop_words

        ascii_folding = self.ascii_folding

        custom_stop_words: list[str] | Unset = UNSET
        if not isinstance(self.custom_stop_words, Unset):
            custom_stop_words = self.custom_stop_words

        min_ngram_length = self.min_ngram_length

        max_ngram_length = self.max_ngram_length

        prefix_only = self.prefix_only

        block_size = self.block_size

        index_operators = self.index_operators

        preserve_original = self.preserve_original

        split_identifiers = self.split_identifiers

        split_on_numerics = self.split_on_numerics

        replace = self.replace

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "column": column,
                "index_type": index_type,
            }
        )
        if identity is not UNSET:
            field_dict["identity"] = identity
        if context is not UNSET:
            field_dict["context"] = context
        if id is not UNSET:
            field_dict["id"] = id
        if branch is not UNSET:
            field_dict["branch"] = branch
        if name is not UNSET:
            field_dict["name"] = name
        if distance_type is not UNSET:
            field_dict["distance_type"] = distance_type
        if num_partitions is not UNSET:
            field_dict["num_partitions"] = num_partitions
        if num_sub_vectors is not UNSET:
            field_dict["num_sub_vectors"] = num_sub_vectors
        if num_bits is not UNSET:
            field_dict["num_bits"] = num_bits
        if sample_rate is not UNSET:
            field_dict["sample_rate"] = sample_rate
        if max_iterations is not UNSET:
            field_dict["max_iterations"] = max_iterations
        if target_partition_size is not UNSET:
            field_dict["target_partition_size"] = target_partition_size
        if m is not UNSET:
            field_dict["m"] = m
        if ef_construction is not UNSET:
            field_dict["ef_construction"] = ef_construction
        if with_position is not UNSET:
            field_dict["with_position"] = with_position
        if base_tokenizer is not UNSET:
            field_dict["base_tokenizer"] = base_tokenizer
        if language is not UNSET:
            field_dict["language"] = language
        if max_token_length is not UNSET:
            field_dict["max_token_length"] = max_token_length
        if lower_case is not UNSET:
            field_dict["lower_case"] = lower_case
        if stem is not UNSET:
            field_dict["stem"] = stem
        if remove_stop_words is not UNSET:
            field_dict["remove_stop_words"] = remove_stop_words
        if ascii_folding is not UNSET:
            field_dict["ascii_folding"] = ascii_folding
        if custom_stop_words is not UNSET:
            field_dict["custom_stop_words"] = custom_stop_words
        if min_ngram_length is not UNSET:
            field_dict["min_ngram_length"] = min_ngram_length
        if max_ngram_length is not UNSET:
            field_dict["max_ngram_length"] = max_ngram_length
        if prefix_only is not UNSET:
            field_dict["prefix_only"] = prefix_only
        if block_size is not UNSET:
            field_dict["block_size"] = block_size
        if index_operators is not UNSET:
            field_dict["index_operators"] = index_operators
        if preserve_original is not UNSET:
            field_dict["preserve_original"] = preserve_original
        if split_identifiers is not UNSET:
            field_dict["split_identifiers"] = split_identifiers
        if split_on_numerics is not UNSET:
            field_dict["split_on_numerics"] = split_on_numerics
        if replace is not UNSET:
            field_dict["replace"] = replace

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.context import Context
        from ..models.identity import Identity

        d = dict(src_dict)
        column = d.pop("column")

        index_type = d.pop("index_type")

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

        name = d.pop("name", UNSET)

        distance_type = d.pop("distance_type", UNSET)

        num_partitions = d.pop("num_partitions", UNSET)

        num_sub_vectors = d.pop("num_sub_vectors", UNSET)

        num_bits = d.pop("num_bits", UNSET)

        sample_rate = d.pop("sample_rate", UNSET)

        max_iterations = d.pop("max_iterations", UNSET)

        target_partition_size = d.pop("target_partition_size", UNSET)

        m = d.pop("m", UNSET)

        ef_construction = d.pop("ef_construction", UNSET)

        with_position = d.pop("with_position", UNSET)

        base_tokenizer = d.pop("base_tokenizer", UNSET)

        language = d.pop("language", UNSET)

        max_token_length = d.pop("max_token_length", UNSET)

        lower_case = d.pop("lower_case", UNSET)

        stem = d.pop("stem", UNSET)

        remove_stop_words = d.pop("remove_stop_words", UNSET)

        ascii_folding = d.pop("ascii_folding", UNSET)

        custom_stop_words = cast(list[str], d.pop("custom_stop_words", UNSET))

        min_ngram_length = d.pop("min_ngram_length", UNSET)

        max_ngram_length = d.pop("max_ngram_length", UNSET)

        prefix_only = d.pop("prefix_only", UNSET)

        block_size = d.pop("block_size", UNSET)

        index_operators = d.pop("index_operators", UNSET)

        preserve_original = d.pop("preserve_original", UNSET)

        split_identifiers = d.pop("split_identifiers", UNSET)

        split_on_numerics = d.pop("split_on_numerics", UNSET)

        replace = d.pop("replace", UNSET)

        create_table_index_request = cls(
            column=column,
            index_type=index_type,
            identity=identity,
            context=context,
            id=id,
            branch=branch,
            name=name,
            distance_type=distance_type,
            num_partitions=num_partitions,
            num_sub_vectors=num_sub_vectors,
            num_bits=num_bits,
            sample_rate=sample_rate,
            max_iterations=max_iterations,
            target_partition_size=target_partition_size,
            m=m,
            ef_construction=ef_construction,
            with_position=with_position,
            base_tokenizer=base_tokenizer,
            language=language,
            max_token_length=max_token_length,
            lower_case=lower_case,
            stem=stem,
            remove_stop_words=remove_stop_words,
            ascii_folding=ascii_folding,
            custom_stop_words=custom_stop_words,
            min_ngram_length=min_ngram_length,
            max_ngram_length=max_ngram_length,
            prefix_only=prefix_only,
            block_size=block_size,
            index_operators=index_operators,
            preserve_original=preserve_original,
            split_identifiers=split_identifiers,
            split_on_numerics=split_on_numerics,
            replace=replace,
        )

        create_table_index_request.additional_properties = d
        return create_table_index_request

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

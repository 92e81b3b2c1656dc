"""Types of indices and the parameters that each of them has, as pylance and requests name them. Pure.

`PARAMETERS` is the one table of both. Pylance itself ignores most parameters that a type does not have. Those that
have no effect on any index that is built here are not in it, such as `filter_nan` and `index_cache_size`. Pylance
takes those of scalar indices, of all but text, in an `IndexConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from table_data.errors import InvalidCall

SCALAR: Final = (
    *("BTREE", "BITMAP", "LABEL_LIST", "INVERTED", "NGRAM", "ZONEMAP", "BLOOMFILTER"),
    *("RTREE", "MINHASHLSH"),
)
VECTOR: Final = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
_OTHER_NAMES: Final = {
    "FTS": "INVERTED",
    "SCALAR": "BTREE",
    "VECTOR": "IVF_PQ",
    "ZONE_MAP": "ZONEMAP",
    "BLOOM_FILTER": "BLOOMFILTER",
}
_TEXT: Final = ("INVERTED",)
_PQ: Final = ("IVF_PQ", "IVF_HNSW_PQ")
_RQ: Final = ("IVF_RQ",)
_HNSW: Final = ("IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
_HASHES: Final = ("MINHASHLSH",)
_METRICS: Final = ("l2", "euclidean", "cosine", "dot", "hamming")
_MOST: Final = (1 << 31) - 1
_SAMPLE_RATE: Final = 256
"""That of pylance if none is given."""

Names = Literal["keyword", "field"]


@dataclass(frozen=True, slots=True)
class IndexParameter:
    """A parameter of some types of indices.

    Attributes:
        keyword: Its name in pylance.
        types: The types that have it.
        expected: The values that it takes, in words.
        takes: Whether it takes a value.
        field: Its name in a request; None if requests do not have it.
        takes_none: Whether None is a value of its own. Of others it says that none is given.
    """

    keyword: str
    types: tuple[str, ...]
    expected: str
    takes: Callable[[Any], bool]
    field: str | None = None
    takes_none: bool = False


def _number(
    keyword: str, types: tuple[str, ...], least: int = 1, most: int = _MOST, field: str | None = None
) -> IndexParameter:
    def takes(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return IndexParameter(keyword, types, f"a whole number from {least} to {most}", takes, field)


def _choice(keyword: str, types: tuple[str, ...], *choices: object, field: str | None = None) -> IndexParameter:
    def takes(value: object) -> bool:
        return isinstance(value, int | str) and not isinstance(value, bool) and value in choices

    return IndexParameter(keyword, types, f"one of {', '.join(map(str, choices))}", takes, field)


def _share(keyword: str, types: tuple[str, ...], least: float, most: float) -> IndexParameter:
    def takes(value: object) -> bool:
        return isinstance(value, float) and least <= value <= most

    return IndexParameter(keyword, types, f"a fraction from {least} to {most}", takes)


def _flag(keyword: str, types: tuple[str, ...], field: str | None = None) -> IndexParameter:
    return IndexParameter(keyword, types, "true or false", lambda value: isinstance(value, bool), field)


def _text(keyword: str, types: tuple[str, ...], field: str | None = None) -> IndexParameter:
    return IndexParameter(keyword, types, "a text", lambda value: isinstance(value, str) and value != "", field)


def _array(keyword: str, types: tuple[str, ...]) -> IndexParameter:
    expected = "vectors as an array of numpy or pyarrow"
    return IndexParameter(keyword, types, expected, lambda value: hasattr(value, "__array__"))


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


PARAMETERS: Final = (
    IndexParameter(
        "metric",
        VECTOR,
        f"one of {', '.join(_METRICS)}",
        lambda value: isinstance(value, str) and value.lower() in _METRICS,
        "distance_type",
    ),
    _number("num_partitions", VECTOR, field="num_partitions"),
    _number("target_partition_size", VECTOR, field="target_partition_size"),
    _number("sample_rate", VECTOR, field="sample_rate"),
    _number("max_iters", VECTOR, field="max_iterations"),
    _number("streaming_sample_rate", VECTOR),
    _number("streaming_coreset_rate", VECTOR),
    _number("streaming_refine_passes", VECTOR),
    _number("shuffle_partition_concurrency", VECTOR, most=1024),
    _array("ivf_centroids", VECTOR),
    _text("ivf_centroids_file", VECTOR),
    _number("num_sub_vectors", _PQ, field="num_sub_vectors"),
    _choice("num_bits", _PQ, 4, 8, field="num_bits"),
    _number("num_bits", _RQ, most=9, field="num_bits"),
    _array("pq_codebook", _PQ),
    _text("accelerator", ("IVF_PQ",)),
    _text("rabitq_model", _RQ),
    _flag("skip_transpose", (*_PQ, *_RQ)),
    # Pylance allocates memory for these before it looks at the rows.
    _number("m", _HNSW, least=4, most=1024, field="m"),
    _number("ef_construction", _HNSW, most=1 << 16, field="ef_construction"),
    _number("max_level", _HNSW, most=255),
    _flag("with_position", _TEXT, "with_position"),
    _text("base_tokenizer", _TEXT, "base_tokenizer"),
    _text("language", _TEXT, "language"),
    IndexParameter(
        "max_token_length",
        _TEXT,
        f"a whole number from 0 to {_MOST}, or None for no bound",
        _number("max_token_length", _TEXT, least=0).takes,
        "max_token_length",
        takes_none=True,
    ),
    _flag("lower_case", _TEXT, "lower_case"),
    _flag("stem", _TEXT, "stem"),
    _flag("remove_stop_words", _TEXT, "remove_stop_words"),
    _flag("ascii_folding", _TEXT, "ascii_folding"),
    IndexParameter("custom_stop_words", _TEXT, "a list of texts", _are_words, "custom_stop_words"),
    _number("min_ngram_length", _TEXT, field="min_ngram_length"),
    _number("max_ngram_length", _TEXT, field="max_ngram_length"),
    _flag("prefix_only", _TEXT, "prefix_only"),
    _choice("analyzer", _TEXT, "text", "code"),
    _flag("split_identifiers", _TEXT, "split_identifiers"),
    _flag("split_on_numerics", _TEXT, "split_on_numerics"),
    _flag("preserve_original", _TEXT, "preserve_original"),
    _flag("index_operators", _TEXT, "index_operators"),
    _choice("document_granularity", _TEXT, "row", "list_element"),
    _choice("block_size", _TEXT, 128, 256, field="block_size"),
    _choice("format_version", _TEXT, 1, 2, 3, "1", "2", "3", "v1", "v2", "v3"),
    _number("memory_limit", _TEXT),
    # An index of no rows per page is built, and has no pages.
    _number("zone_size", ("BTREE",)),
    _number("rows_per_zone", ("ZONEMAP",)),
    # Of these depends how much memory pylance allocates for each zone.
    _number("number_of_items", ("BLOOMFILTER",), most=1 << 20),
    _share("probability", ("BLOOMFILTER",), least=1e-06, most=0.99),
    _number("page_size", ("RTREE",), least=2, most=(1 << 16) - 1),
    _number("num_hashes", _HASHES, most=4096),
    _number("num_bands", _HASHES, most=256),
    _number("shingle_size", _HASHES, most=1024),
)
FIELDS: Final = frozenset(each.field for each in PARAMETERS if each.field is not None)
"""The fields of a request that are parameters of its index."""


def index_type_of(name: str) -> str:
    """The type of an index as pylance names it, of one of its names in any case. Raises `InvalidCall`."""
    given = name.upper() if isinstance(name, str) else ""
    found = _OTHER_NAMES.get(given, given)
    if found not in SCALAR and found not in VECTOR:
        known = ", ".join((*SCALAR, *VECTOR, *_OTHER_NAMES))
        raise InvalidCall(f"index_type {str(name)[:80]!r}: expected one of {known}")
    return found


def index_arguments(index_type: str, given: Mapping[str, object], names: Names) -> dict[str, Any]:
    """The arguments of pylance for an index of a type with the parameters that are given, by one kind of names.

    Raises `InvalidCall` for a parameter that the type does not have, a value that it does not take, and one without
    an effect beside the others.
    """
    known = {getattr(each, names): each for each in PARAMETERS if index_type in each.types}
    known.pop(None, None)
    arguments: dict[str, Any] = {}
    shown: dict[str, str] = {}
    for name, value in given.items():
        parameter = known.get(name)
        if parameter is None:
            expected = f"some of {', '.join(known)}" if known else "no parameters"
            raise InvalidCall(f"{name[:80]}: not a parameter of an index of type {index_type}; expected {expected}")
        if value is None and not parameter.takes_none:
            continue
        if value is not None and not parameter.takes(value):
            found = repr(value)[:80]
            raise InvalidCall(f"{name} of an index of type {index_type}: expected {parameter.expected}, found {found}")
        arguments[parameter.keyword] = value
        shown[parameter.keyword] = name
    for keyword, refusal in _without_effect(arguments):
        raise InvalidCall(f"{shown[keyword]} of an index of type {index_type}: {refusal}")
    return arguments


def _without_effect(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Those of the arguments that pylance ignores beside the others, each with what it takes to have an effect."""
    found = []
    sizes = [name for name in ("ivf_centroids", "ivf_centroids_file", "num_partitions") if name in arguments]
    if "target_partition_size" in arguments and sizes:
        found.append(("target_partition_size", f"expected none beside {sizes[0]}, which has precedence"))
    if "ivf_centroids_file" in arguments and "num_partitions" in arguments:
        found.append(("num_partitions", "expected none beside ivf_centroids_file, which has as many as it has vectors"))
    if "streaming_sample_rate" in arguments:
        rate = arguments.get("sample_rate", _SAMPLE_RATE)
        if arguments["streaming_sample_rate"] >= rate:
            found.append(("streaming_sample_rate", f"expected less than sample_rate, which is {rate}"))
    else:
        streaming = ("streaming_coreset_rate", "streaming_refine_passes")
        found += [(name, "expected streaming_sample_rate beside it") for name in streaming if name in arguments]
    if arguments.get("base_tokenizer") != "ngram":
        ngrams = ("min_ngram_length", "max_ngram_length", "prefix_only")
        found += [(name, "expected base_tokenizer='ngram' beside it") for name in ngrams if name in arguments]
    removes = arguments.get("base_tokenizer") not in {"ngram", "code"} and arguments.get("analyzer") != "code"
    if "custom_stop_words" in arguments and not arguments.get("remove_stop_words", removes):
        found.append(("custom_stop_words", "expected remove_stop_words=True beside it"))
    return found

"""Parameters of indices, type by type: each that is taken has an effect on the index, all others are refused."""

from __future__ import annotations

import inspect
import json
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.lance import indices as lance_indices

from namespace_client import Catalog, InvalidCall, WorkFailed
from table_data.staging.index_parameters import FIELDS, PARAMETERS, SCALAR, VECTOR, index_arguments, index_type_of

COUNT, DIMENSION = 600, 16
NUMBERS = np.random.default_rng(7).random((COUNT, DIMENSION), dtype=np.float32)
ROWS = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "labels": [[f"a{number % 3}", "b"] for number in range(COUNT)],
        "text": [f"Wörd{number % 7} running the fooBar12 {'x' * 50} {number}" for number in range(COUNT)],
        "texts": [["a fox", "a whale"]] * COUNT,
        "long": [" ".join(f"w{word}" for word in range(20_000))] + [None] * (COUNT - 1),
        "place": pa.array([struct.pack("<BIdd", 1, 1, number, number) for number in range(COUNT)]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(NUMBERS.ravel()), DIMENSION),
    }
)
COLUMNS = {"LABEL_LIST": "labels", "INVERTED": "text", "NGRAM": "text", "MINHASHLSH": "text", "RTREE": "place"}
CENTROIDS = NUMBERS[:3]
CENTROIDS_FILE = "centroids.npy"
CODEBOOK = np.zeros((4, 256, 4), np.float32)
TYPES = (*SCALAR, *VECTOR)


@dataclass(frozen=True)
class Built:
    """An index of a committed version."""

    dataset: lance.LanceDataset
    index: Any
    stats: Any


def _column(index_type: str) -> str:
    return COLUMNS.get(index_type, "vector" if index_type in VECTOR else "id")


Build = Callable[..., Built]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Build]:
    """Builds an index in place of the one before, commits it, and reads it by stock pylance."""
    place = tmp_path_factory.mktemp("indices")
    np.save(place / CENTROIDS_FILE, CENTROIDS)
    with Catalog.connect(str(place / "root")) as catalog:
        with catalog.begin() as tx:
            tx.create("t", ROWS)

        def builder(index_type: str, column: str | None = None, **parameters: Any) -> Built:
            if "ivf_centroids_file" in parameters:
                parameters["ivf_centroids_file"] = (place / CENTROIDS_FILE).as_uri()
            wanted = column or _column(index_type.upper())
            with catalog.begin() as tx:
                tx.create_index("t", wanted, index_type, name="i", replace=True, **parameters)
            state = catalog.access.table(("t",))
            assert state is not None
            dataset = lance.dataset(state.uri)
            [index] = dataset.describe_indices()
            return Built(dataset, index, dataset.stats.index_stats("i")["indices"][0])

        yield builder


@dataclass(frozen=True)
class Effect:
    """What a parameter does.

    Attributes:
        value: A value that is not that of an index without it.
        seen: What is looked at.
        wanted: What is seen then.
        beside: Other parameters, with which the index is built with it and without it.
        column: The column, if it is not that of the type.
    """

    value: Any
    seen: Callable[[Built], Any]
    wanted: Any
    beside: dict[str, Any] = field(default_factory=dict)
    column: str | None = None


def _detail(name: str, value: Any, *, column: str | None = None, **beside: Any) -> Effect:
    return Effect(value, lambda built: built.index.details.get(name), value, beside, column)


def _stat(name: str, value: Any) -> Effect:
    return Effect(value, lambda built: built.stats[name], value)


def _within(name: str, part: str, value: Any) -> Effect:
    return Effect(value, lambda built: built.index.details[name][part], value)


def _hint(name: str, value: Any) -> Effect:
    wanted = str(value).lower()
    return Effect(value, lambda built: built.index.details["runtime_hints"][f"lance.{name}"], wanted)


def _found(value: Any, words: str, wanted: int, **beside: Any) -> Effect:
    """How many rows have some words."""

    def seen(built: Built) -> int:
        return built.dataset.to_table(full_text_query=words, columns=["id", "_score"]).num_rows

    return Effect(value, seen, wanted, beside)


def _loss(value: int, is_as_wanted: Callable[[float], bool], **beside: Any) -> Effect:
    """How far vectors are from the centroids of their partitions, taken together."""
    return Effect(value, lambda built: is_as_wanted(built.stats["loss"]), True, beside)


def _distances(built: Built) -> int:
    """The number of different distances of ten rows."""
    query = {"column": "vector", "q": NUMBERS[0], "k": 10}
    rows = built.dataset.to_table(nearest=query, columns=["id", "_distance"])
    return len(set(rows["_distance"].to_pylist()))


FEW = {"num_partitions": 300, "sample_rate": 2}
MODEL = lance_indices.build_rq_model(DIMENSION, 5)
EFFECTS: dict[str, Effect] = {
    "metric": Effect("Cosine", lambda built: built.index.details["metric_type"], "COSINE"),
    "num_partitions": Effect(2, lambda built: built.stats["num_partitions"], 2),
    "target_partition_size": _detail("target_partition_size", 100),
    "sample_rate": _hint("ivf.sample_rate", 64),
    "max_iters": _hint("ivf.max_iters", 3),
    "streaming_sample_rate": _loss(1, lambda loss: loss > 1100),
    "streaming_coreset_rate": _loss(2, lambda loss: loss < 280, streaming_sample_rate=1, **FEW),
    "streaming_refine_passes": _loss(20, lambda loss: loss < 280, streaming_sample_rate=1, **FEW),
    "shuffle_partition_concurrency": _hint("ivf.shuffle_partition_concurrency", 3),
    "ivf_centroids": Effect(CENTROIDS, lambda built: built.stats["centroids"], CENTROIDS.tolist()),
    "ivf_centroids_file": Effect(CENTROIDS_FILE, lambda built: built.stats["centroids"], CENTROIDS.tolist()),
    "num_sub_vectors": _within("compression", "num_sub_vectors", 8),
    "num_bits": _within("compression", "num_bits", 4),
    "pq_codebook": Effect(CODEBOOK, _distances, 1, {"ivf_centroids": CENTROIDS, "num_sub_vectors": 4}),
    "rabitq_model": Effect(
        MODEL,
        lambda built: built.stats["sub_index"]["fast_rotation_signs"],
        json.loads(MODEL)["fast_rotation_signs"],
    ),
    "skip_transpose": _hint("skip_transpose", True),
    "m": _within("hnsw", "max_connections", 5),
    "ef_construction": _within("hnsw", "construction_ef", 33),
    "max_level": _within("hnsw", "max_level", 3),
    "with_position": _detail("with_position", True),
    "base_tokenizer": _detail("base_tokenizer", "whitespace"),
    "language": _detail("language", "German"),
    "max_token_length": _found(None, "x" * 50, COUNT),
    "lower_case": _found(False, "foobar12", 0),
    "stem": _found(False, "run", 0),
    "remove_stop_words": _found(False, "the", COUNT),
    "ascii_folding": _found(False, "word1", 0),
    "custom_stop_words": _found(["run", "running"], "running", 0),
    "min_ngram_length": _detail("min_ngram_length", 2, base_tokenizer="ngram"),
    "max_ngram_length": _detail("max_ngram_length", 5, base_tokenizer="ngram"),
    "prefix_only": _found(True, "oob", 0, base_tokenizer="ngram"),
    "analyzer": Effect("code", lambda built: built.index.details["base_tokenizer"], "code"),
    "split_identifiers": _detail("split_identifiers", True, analyzer="code"),
    "split_on_numerics": _detail("split_on_numerics", False, analyzer="code"),
    "preserve_original": _detail("preserve_original", False, analyzer="code"),
    "index_operators": _detail("index_operators", True, analyzer="code"),
    "document_granularity": _detail("document_granularity", "list_element", column="texts"),
    "block_size": _detail("block_size", 256),
    "format_version": Effect("v1", lambda built: built.index.segments[0].index_version, 1),
    "zone_size": Effect(100, lambda built: built.stats["num_pages"], 6),
    "rows_per_zone": Effect(100, lambda built: built.stats["num_zones"], 6),
    "number_of_items": Effect(100, lambda built: built.stats["num_blocks"], 6),
    "probability": _stat("probability", 0.5),
    "page_size": Effect(100, lambda built: built.stats["num_pages"], 7),
    "num_hashes": _detail("num_hashes", 64),
    "num_bands": _detail("num_bands", 8),
    "shingle_size": _detail("shingle_size", 2),
}
REFUSED_BY_PYLANCE = {
    "accelerator": ("cuda", {}, "torch|cuda"),
    "memory_limit": (1, {"column": "long"}, "exceeds worker memory limit"),
}
"""Parameters whose effect is seen by what pylance says: there is no GPU here; a document is too large for the limit."""
CASES = [
    (each.keyword, index_type)
    for each in PARAMETERS
    # What trains the partitions is the same for all types, and takes longest.
    for index_type in (each.types[:1] if each.keyword.startswith("streaming") else each.types)
    if each.keyword not in REFUSED_BY_PYLANCE
]


@pytest.mark.parametrize(("keyword", "index_type"), CASES)
def test_a_parameter_has_an_effect(build: Build, keyword: str, index_type: str) -> None:
    effect = EFFECTS[keyword]
    assert effect.seen(build(index_type, effect.column, **effect.beside)) != effect.wanted
    built = build(index_type, effect.column, **{keyword: effect.value}, **effect.beside)
    assert built.index.index_type.upper().replace("_", "") == index_type.replace("_", "")
    assert effect.seen(built) == effect.wanted


@pytest.mark.parametrize("keyword", REFUSED_BY_PYLANCE)
def test_a_parameter_reaches_pylance(build: Build, keyword: str) -> None:
    value, others, text = REFUSED_BY_PYLANCE[keyword]
    [parameter] = [each for each in PARAMETERS if each.keyword == keyword]
    for index_type in parameter.types:
        build(index_type, **others)
        with pytest.raises((InvalidCall, WorkFailed), match=text):
            build(index_type, **others, **{keyword: value})


@pytest.mark.parametrize("index_type", TYPES)
def test_a_parameter_of_other_types_is_refused_by_name(build: Build, index_type: str) -> None:
    own = [each.keyword for each in PARAMETERS if index_type in each.types]
    expected = f"some of {', '.join(own)}" if own else "no parameters"
    build(index_type.lower())
    others = {each.keyword for each in PARAMETERS if index_type not in each.types} - set(own)
    for keyword in (*others, "nonsense", "train", "num_workers", "index_uuid", "range_id", "shard_id"):
        effect = EFFECTS.get(keyword)
        with pytest.raises(InvalidCall) as refused:
            build(index_type, **{keyword: 1 if effect is None else effect.value})
        assert str(refused.value) == (
            f"t: {keyword}: not a parameter of an index of type {index_type}; expected {expected}"
        )


def test_every_parameter_of_pylance_is_judged() -> None:
    """Those that no type has are without effect, or say what the catalog decides: rows, files, names."""
    decided = {"self", "column", "index_type", "name", "replace", "train", "fragment_ids", "index_uuid", "kwargs"}
    decided |= {"storage_options", "precomputed_partition_dataset"}
    without_effect = {"index_cache_size", "filter_nan", "shuffle_partition_batches"}
    ours = {each.keyword for each in PARAMETERS}
    named = set(inspect.signature(lance.LanceDataset.create_index_uncommitted).parameters)
    assert named - decided - without_effect <= ours
    assert not (decided | without_effect) & ours


WRONG: dict[str, list[Any]] = {
    "metric": ["far", "", 3, True],
    "num_partitions": [0, -1, 2.5, "x", True, 2**31, [1]],
    "sample_rate": [0, "256"],
    "max_iters": [0, 1.5],
    "streaming_sample_rate": [0, 256],
    "ivf_centroids": ["x", [1.0], CENTROIDS.astype(np.int32), CENTROIDS[:, :3]],
    "num_bits": [0, 3, "8", 10],
    "num_sub_vectors": [0, -1, 5, 32, "4"],
    "m": [0, 3, 1025, 8.0],
    "ef_construction": [0, 19, 65_537],
    "max_level": [0, 256],
    "skip_transpose": ["yes", 1],
    "rabitq_model": ["{}", "", 5],
    "with_position": ["yes", 1],
    "base_tokenizer": ["", "../../etc/passwd", 1],
    "language": ["Klingon", ""],
    "max_token_length": [-1, "40"],
    "custom_stop_words": ["the", [1], ("a",)],
    "min_ngram_length": [0, 9],
    "analyzer": ["x", "Code"],
    "document_granularity": ["row ", "list_element"],
    "block_size": [100, True],
    "format_version": [0, 4, True, "v9"],
    "memory_limit": [0, "1"],
    "zone_size": [0, -1, 1.5, "10"],
    "rows_per_zone": [0, 2.5, True],
    "number_of_items": [0, (1 << 20) + 1],
    "probability": [0, 0.0, 1, 1.0, -0.5, "0.5", float("nan"), True],
    "page_size": [1, 65_536],
    "num_hashes": [0, 4097, 100],
    "num_bands": [0, 257, 3],
    "shingle_size": [0, "3"],
}


@pytest.mark.parametrize("keyword", WRONG)
def test_a_wrong_value_is_refused_by_name(build: Build, keyword: str) -> None:
    parameter = next(each for each in PARAMETERS if each.keyword == keyword)
    beside = EFFECTS[keyword].beside if keyword in EFFECTS else {}
    for value in WRONG[keyword]:
        with pytest.raises(InvalidCall) as refused:
            build(parameter.types[-1], **{keyword: value}, **beside)
        assert str(refused.value).startswith("t: ")
        if not parameter.takes(value):
            assert f"{keyword} of an index of type " in str(refused.value)
            assert f"expected {parameter.expected}, found {repr(value)[:10]}" in str(refused.value)


@pytest.mark.parametrize(
    ("index_type", "parameters", "text"),
    [
        (
            "IVF_PQ",
            {"target_partition_size": 9, "num_partitions": 2},
            "none beside num_partitions, which has prece",
        ),
        ("IVF_PQ", {"target_partition_size": 9, "ivf_centroids": CENTROIDS}, "none beside ivf_centroids"),
        (
            "IVF_PQ",
            {"num_partitions": 3, "ivf_centroids_file": "file:///x"},
            "num_partitions of .*none beside ivf",
        ),
        ("IVF_PQ", {"streaming_sample_rate": 64, "sample_rate": 64}, "less than sample_rate, which is 64"),
        ("IVF_PQ", {"streaming_coreset_rate": 2}, "expected streaming_sample_rate beside it"),
        ("IVF_PQ", {"streaming_refine_passes": 2}, "expected streaming_sample_rate beside it"),
        ("IVF_PQ", {"pq_codebook": CODEBOOK}, "ivf_centroids must be specified"),
        ("INVERTED", {"min_ngram_length": 2}, "expected base_tokenizer='ngram' beside it"),
        ("INVERTED", {"prefix_only": True, "base_tokenizer": "simple"}, "expected base_tokenizer='ngram' beside it"),
        ("INVERTED", {"custom_stop_words": ["a"], "remove_stop_words": False}, "expected remove_stop_words=True"),
        ("INVERTED", {"custom_stop_words": ["a"], "analyzer": "code"}, "expected remove_stop_words=True"),
        ("INVERTED", {"split_identifiers": True}, "require analyzer='code'"),
    ],
)
def test_what_has_no_effect_beside_others_is_refused(
    build: Build, index_type: str, parameters: dict[str, Any], text: str
) -> None:
    with pytest.raises(InvalidCall, match=text):
        build(index_type, **parameters)


def test_no_value_is_none_that_is_given() -> None:
    given = {"num_partitions": None, "num_sub_vectors": None, "ivf_centroids": None}
    assert index_arguments("IVF_PQ", given, "keyword") == {}
    assert index_arguments("INVERTED", {"max_token_length": None}, "keyword") == {"max_token_length": None}


@pytest.mark.parametrize(("given", "found"), [("fts", "INVERTED"), ("Scalar", "BTREE"), ("vector", "IVF_PQ")])
def test_types_have_other_names(build: Build, given: str, found: str) -> None:
    assert index_type_of(given) == found
    build(given, column=_column(found))
    for wrong in ("", "JSON", 3, None):
        with pytest.raises(InvalidCall, match=r"index_type .*: expected one of BTREE, .*BLOOM_FILTER"):
            build(wrong, column="id")  # type: ignore[arg-type]


def test_an_index_over_another_column_is_replaced(build: Build) -> None:
    for column in ("id", "text"):
        assert build("BTREE", column).index.field_names == [column]


def test_the_guide_names_all_of_them() -> None:
    page = Path("docs/guide/rows.md").read_text(encoding="utf-8").partition("## Indices\n")[2].partition("\n#")[0]
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| `")]

    def named(column: int) -> set[str]:
        return {word for row in rows for word in re.findall(r"`([a-z]\w*)`", row[column])}

    own = {each.keyword for each in PARAMETERS}
    other = {each.field for each in PARAMETERS if each.field not in {None, each.keyword}}
    assert named(1) == {each.keyword for each in PARAMETERS if each.field is None}
    assert named(2) == {each.field for each in PARAMETERS if each.field is not None} & own
    assert named(3) == {each.keyword for each in PARAMETERS if each.field in other} | other
    assert other <= FIELDS

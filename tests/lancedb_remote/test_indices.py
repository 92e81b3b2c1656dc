"""Indices of lancedb's remote client."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lancedb.index import FTS, Bitmap, BTree, HnswFlat, HnswSq, IvfFlat, IvfPq, IvfRq, IvfSq, LabelList

from tests.cli.commands import invoke
from tests.lancedb_remote.remote import ROWS, VECTOR, Shop, connect, refused, rows
from tests.running import running

SOON = timedelta(seconds=30)


@pytest.mark.parametrize(
    ("column", "config", "kind"),
    [
        ("id", BTree(), "BTree"),
        ("id", Bitmap(), "Bitmap"),
        ("tags", LabelList(), "LabelList"),
        ("text", FTS(), "FTS"),
        ("vector", IvfFlat(num_partitions=2), "IvfFlat"),
        ("vector", IvfSq(num_partitions=2), "IvfSq"),
        ("vector", IvfPq(num_partitions=2, num_sub_vectors=2), "IvfPq"),
        ("vector", IvfRq(num_partitions=2), "IvfRq"),
        ("vector", HnswSq(num_partitions=1), "IvfHnswSq"),
        ("vector", HnswFlat(num_partitions=1), "IvfHnswFlat"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_is_created_and_described(shop: Shop, column: str, config: Any, kind: str) -> None:
    table = shop.table()
    table.create_index(column, config=config, name="own")
    assert [(each.name, list(each.columns), each.index_type) for each in table.list_indices()] == [
        ("own", [column], kind)
    ]
    found = table.index_stats("own")
    assert (found.num_indexed_rows, found.num_unindexed_rows) == (ROWS, 0)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_the_metric_is_the_one_that_was_asked_for(shop: Shop, metric: str) -> None:
    table = shop.table()
    table.create_index("vector", config=IvfFlat(distance_type=metric, num_partitions=2), name="own")
    assert table.index_stats("own").distance_type == metric


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning", "ignore:The create_index.*:DeprecationWarning")
def test_older_calls(shop: Shop) -> None:
    table = shop.table()
    table.create_index(
        metric="dot", vector_column_name="vector", num_partitions=2, num_sub_vectors=2, index_type="IVF_PQ"
    )
    assert table.index_stats("vector_idx").distance_type == "dot"
    table.create_scalar_index("id", index_type="BITMAP")
    table.create_fts_index("text")
    assert sorted(each.name for each in table.list_indices()) == ["id_idx", "text_idx", "vector_idx"]


def test_one_is_replaced_unless_it_must_not_be(shop: Shop) -> None:
    table = shop.table()
    table.create_index("id", config=BTree())
    table.add(rows(5, 1000))
    assert table.index_stats("id_idx").num_unindexed_rows == 5
    table.create_index("id", config=BTree())
    assert table.index_stats("id_idx").num_unindexed_rows == 0
    with refused("exists", table=table):
        table.create_index("id", config=BTree(), replace=False)


def test_options_of_text_have_their_effect(shop: Shop) -> None:
    table = shop.table(pa.table({"text": ["running dogs", "Straße", "the end", "foo"]}))

    def found(query: str, **options: Any) -> int:
        table.create_index("text", config=FTS(**options))
        return len(table.search(query, query_type="fts").limit(5).to_list())

    plain = {"stem": False, "remove_stop_words": False, "ascii_folding": False, "base_tokenizer": "whitespace"}
    assert [found(word, **plain) for word in ("run", "the", "running")] == [0, 1, 1]
    assert (found("foo"), found("foo", custom_stop_words=["foo"])) == (1, 0)
    parts = {"base_tokenizer": "ngram", "ngram_min_length": 2, "ngram_max_length": 3, "stem": False}
    assert (found("unn", **parts), found("unn", **parts, prefix_only=True)) == (1, 0)


def test_one_is_waited_for(shop: Shop) -> None:
    table = shop.table()
    table.create_index("id", config=BTree(), name="a", wait_timeout=SOON)
    table.wait_for_index(["a"], SOON)
    table.create_index_async("text", config=FTS(), name="b").wait()
    assert sorted(each.name for each in table.list_indices()) == ["a", "b"]


def test_one_is_dropped(shop: Shop) -> None:
    table = shop.table()
    table.create_index("id", config=BTree(), name="my index")
    assert table.index_stats("my index") is not None
    assert table.index_stats("nope") is None
    table.drop_index("my index")
    assert list(table.list_indices()) == []
    with pytest.raises(RuntimeError, match="Index 'my index' was not found"):
        table.drop_index("my index")


def test_errors_name_the_column(shop: Shop) -> None:
    table = shop.table()
    with refused("nope", table=table):
        table.create_index("nope", config=BTree())


def test_hints_that_queries_will_come(shop: Shop) -> None:
    table = shop.table()
    table.create_index("id", config=BTree(), name="own")
    table.prewarm_index("own")
    table.prewarm_data(["id", "text"])
    table.prewarm_data()
    with pytest.raises(RuntimeError, match="Index 'nope' was not found"):
        table.prewarm_index("nope")
    with refused("nope", table=table):
        table.prewarm_data(["nope"])


def test_of_too_few_rows_product_quantization_makes_an_index_over_none_as_locally(tmp_path: Path) -> None:
    root, few, config = tmp_path / "catalog", rows(100), IvfPq(distance_type="cosine")
    local = lancedb.connect(tmp_path / "local").create_table("t", few)
    local.create_index("vector", config=config)
    with running(root) as url:
        table = connect(url).create_table("t", few)
        table.create_index("vector", config=config)
        found, expected = table.index_stats("vector_idx"), local.index_stats("vector_idx")
        assert (found.num_indexed_rows, found.num_unindexed_rows, found.distance_type) == (0, 100, "cosine")
        assert (expected.num_indexed_rows, expected.num_unindexed_rows, expected.distance_type) == (0, 100, "cosine")
        near = [each.search(VECTOR).limit(5).to_arrow()["id"].to_pylist() for each in (table, local)]
        assert near[0] == near[1]
        table.add(rows(300, 100))
        # It has no files, and none are missing.
        for command in (("doctor", root), ("backup", root, tmp_path / "backups"), ("maintain", root), ("doctor", root)):
            done = invoke(*map(str, command))
            assert done.exit_code == 0, done.output
        assert table.search(VECTOR).limit(5).to_arrow().num_rows == 5
        table.create_index("vector", config=config)
        assert table.index_stats("vector_idx").num_indexed_rows == 400


def test_texts_are_split_as_locally(shop: Shop) -> None:
    """The client does that itself, by what it is told of the index."""
    found = []
    for table in shop.pair():
        table.create_index("text", config=FTS(with_position=True))
        found.append(table.tokenize("The puppies are running fast", column="text"))
        with pytest.raises(Exception, match="nope"):
            table.tokenize("x", column="nope")
    assert repr(found[0]) == repr(found[1])
    assert [token.text for token in found[0]] == ["puppi", "run", "fast"]

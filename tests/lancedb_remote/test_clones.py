"""`clone_table` of lancedb's remote client, beside that of a local database, and under grants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import lance
import pytest
from lancedb.index import FTS

from tests.access.granting import ADMIN, granted, key, keys, put_rows, switch_on
from tests.lancedb_remote.remote import ROWS, Shop, connect, new_name, refused, rows, told
from tests.running import running


@pytest.mark.parametrize("given", [{}, {"source_version": 1}, {"source_tag": "one"}])
def test_a_clone_has_the_rows_that_lancedb_itself_clones(shop: Shop, given: dict[str, object]) -> None:
    remote, local = shop.pair()
    for table in (remote, local):
        table.delete("id < 5")
        table.tags.create("one", 1)
    name = new_name()
    clone = shop.db.clone_table(name, remote.uri, **given)
    other = shop.local.clone_table(name, local.uri, **given)
    assert clone.search().to_arrow() == other.search().to_arrow()
    assert (clone.version, clone.count_rows(), clone.schema) == (other.version, other.count_rows(), other.schema)
    for table in (clone, other):
        table.add(rows(3, 1000))
        table.delete("id = 7")
    dataset = lance.dataset(clone.uri)
    dataset.validate()
    assert dataset.to_table().to_pylist() == other.search().to_arrow().to_pylist()
    assert remote.count_rows() == ROWS - 5
    assert name in shop.db.list_tables().tables


def test_a_clone_has_the_indices_of_its_source_and_is_cloned_itself(shop: Shop) -> None:
    source = shop.table()
    source.create_index("text", config=FTS(), name="words")
    clone = shop.db.clone_table(new_name(), source.uri)
    assert clone.search("puppy", query_type="fts").limit(3).to_arrow().num_rows == 3
    again = connect(shop.url, "db://clones").clone_table(new_name(), clone.uri)
    assert again.count_rows() == ROWS
    assert "clones" not in source.uri


def test_refusals_name_what_is_wrong(shop: Shop) -> None:
    source, taken, name = shop.table(rows(3)), shop.table(rows(1)), new_name()
    gone = shop.table(rows(1))
    place = gone.uri
    shop.db.drop_table(gone.name)
    for words, there, given in (
        (("source_location",), "s3://bucket/t.lance", {}),
        (("source_location",), place, {}),
        (("source_location",), f"{source.uri}/data", {}),
        (("version 9 does not exist",), source.uri, {"source_version": 9}),
        (("tag nothing",), source.uri, {"source_tag": "nothing"}),
        (("is_shallow",), source.uri, {"is_shallow": False}),
    ):
        with refused(*words):
            shop.db.clone_table(name, there, **given)
    with refused("already exists"):
        shop.db.clone_table(taken.name, source.uri)
    assert name not in shop.db.list_tables().tables


class TestGrants:
    """Who may create and not see, see and not read, or read: a hidden source is one that is not there."""

    @pytest.fixture(scope="class")
    @classmethod
    def root(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("granted") / "root"

    @pytest.fixture(scope="class")
    @classmethod
    def url(cls, root: Path) -> Iterator[str]:
        with running(root, keys(ADMIN, "bob")) as url:
            yield url

    def test_a_source_that_may_be_read(self, url: str, root: Path) -> None:
        admin, bob = (connect(url, key=key(name)) for name in (ADMIN, "bob"))
        source = admin.create_table("source", rows(4))
        clone = admin.clone_table("clone", source.uri)
        switch_on(root, granted("namespace", "shop", "bob", "create"))
        answers = set()
        for place in (source.uri, f"{source.uri}x", "s3://elsewhere/t"):
            with pytest.raises(RuntimeError) as hidden:
                bob.clone_table("mine", place)
            answers.add(re.sub("request_id=[^)]*", "", told(hidden.value)))
        [answer] = answers
        assert "source_location" in answer
        put_rows(root, [granted("table", "shop$source", "bob", "see")])
        with refused("expected read on table"):
            bob.clone_table("mine", source.uri)
        put_rows(root, [granted("table", "shop$clone", "bob", "read")])
        with refused("read"):  # its files are those of the source
            bob.clone_table("mine", clone.uri)
        put_rows(root, [granted("table", "shop$source", "bob", "read")])
        assert bob.clone_table("mine", source.uri).count_rows() == 4
        assert bob.clone_table("other", clone.uri).count_rows() == 4

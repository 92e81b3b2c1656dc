"""Tables as datasets of pylance, pinned to one catalog version."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import lance
import polars as pl
import pytest
from datafusion import SessionContext
from lance import FFILanceTableProvider

from namespace_client import Catalog, InvalidCall, NotFound
from table_data.errors import VersionGone
from tests.client.scene import Scene, rows
from tests.client.test_catalog_reads import request_of

REPOSITORY = Path(__file__).resolve().parents[2]


def ids(dataset: lance.LanceDataset) -> list[int]:
    return sorted(dataset.to_table(columns=["id"]).column(0).to_pylist())


def test_datasets_are_of_one_catalog_version_whatever_is_committed_between_them(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.make("t", 1)
    scene.make("u", 1)
    before = scene.catalog_version()
    find_table = scene.catalog.access.find_table

    def commit_first(*given: object, **options: object) -> object:
        monkeypatch.undo()
        with scene.catalog.begin() as tx:
            tx.append("t", rows(2))
            tx.append("u", rows(2))
        return find_table(*given, **options)

    monkeypatch.setattr(scene.catalog.access, "find_table", commit_first)
    found = scene.catalog.datasets(["t", (scene.namespace, "u")])
    assert [ids(dataset) for dataset in found.values()] == [[1], [1]]
    assert list(found) == ["t", (scene.namespace, "u")]
    assert {dataset.pinned.catalog_version for dataset in found.values()} == {before}
    assert ids(scene.catalog.dataset("t")) == [1, 2]


def test_a_branch_a_tag_a_version_and_a_view(scene: Scene) -> None:
    scene.make("t", 1)
    scene.catalog.create_branch("t", "dev")
    with scene.catalog.begin() as tx:
        tx.append("t", rows(2), branch="dev")
    scene.catalog.create_tag("t", "first", version=1)
    view = scene.catalog.at(scene.catalog_version())
    with scene.catalog.begin() as tx:
        tx.append("t", rows(3))
    assert ids(scene.catalog.dataset("t", branch="dev")) == [1, 2]
    assert ids(scene.catalog.dataset("t", tag="first")) == [1]
    assert ids(scene.catalog.dataset("t", version=1)) == [1]
    assert ids(view.dataset("t")) == [1]
    assert ids(scene.catalog.dataset("t")) == [1, 3]


def test_what_cannot_be_opened(scene: Scene) -> None:
    scene.stock().declare_table(request_of("declared", scene))
    with pytest.raises(InvalidCall, match="no version yet"):
        scene.catalog.dataset("declared")
    with pytest.raises(NotFound):
        scene.catalog.datasets(["absent"])


def test_it_reads_the_same_in_another_process_after_later_commits(scene: Scene, tmp_path: Path) -> None:
    scene.make("t", 1, 2)
    dataset = scene.catalog.dataset("t")
    pickled = tmp_path / "dataset.pickle"
    pickled.write_bytes(pickle.dumps(dataset))
    with scene.catalog.begin() as tx:
        tx.append("t", rows(3))
    program = (
        "import pickle, sys; dataset = pickle.load(open(sys.argv[1], 'rb')); "
        "print(dataset.count_rows(), dataset.version, dataset.pinned.catalog_version)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(pickled)], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["2", str(dataset.version), str(dataset.pinned.catalog_version)]


def test_it_is_for_reading_and_so_is_what_is_made_from_it(local: Scene) -> None:
    local.make("t", 1)
    with local.catalog.begin() as tx:
        tx.append("t", rows(2))
    dataset = local.catalog.dataset("t")
    for handle in (dataset, copy.copy(dataset), dataset.checkout_version(1), pickle.loads(pickle.dumps(dataset))):
        with pytest.raises(InvalidCall, match="for reading"):
            handle.delete("id = 1")
        with pytest.raises(InvalidCall, match="for reading"):
            handle.insert(rows(9))
    assert ids(dataset.checkout_version(1)) == [1]
    assert ids(pickle.loads(pickle.dumps(dataset.checkout_version(1)))) == [1]
    assert ids(dataset) == [1, 2]
    assert local.ids() == [1, 2]


def test_a_version_that_another_one_replaced_is_not_read(local: Scene) -> None:
    local.make("t", 1)
    local.catalog.create_branch("t", "dev")
    with local.catalog.begin() as tx:
        tx.append("t", rows(2), branch="dev")
    pinned = local.catalog.dataset("t", branch="dev").pinned
    local.catalog.delete_branch("t", "dev")
    with pytest.raises(VersionGone):
        pinned.open()
    local.catalog.create_branch("t", "dev")
    with local.catalog.begin() as tx:
        tx.append("t", rows(3), branch="dev")
    with pytest.raises(VersionGone, match="replaced"):
        pinned.open()


def test_its_text_names_the_table_and_shows_no_secret(local: Scene) -> None:
    local.make("t", 1)
    with Catalog.connect(local.target, namespace="ml", storage_options={"secret_access_key": "hush"}) as catalog:
        dataset = catalog.dataset("t")
    assert "ml.t at version 1" in repr(dataset)
    assert "hush" not in repr(dataset) + repr(dataset.pinned)


def _by_polars(dataset: lance.LanceDataset) -> int:
    return int(pl.scan_pyarrow_dataset(dataset).select(pl.len()).collect().item())


def _by_polars_and_version(dataset: lance.LanceDataset) -> int:
    return int(pl.scan_lance(dataset, version=dataset.version).select(pl.len()).collect().item())


def _by_duckdb(dataset: lance.LanceDataset) -> int:
    with duckdb.connect() as connection:
        connection.register("t", dataset)
        [(count,)] = connection.sql("SELECT count(*) FROM t").fetchall()
    return int(count)


def _by_datafusion(dataset: lance.LanceDataset) -> int:
    context = SessionContext()
    context.register_table("t", FFILanceTableProvider(dataset))
    return int(context.sql("SELECT count(*) AS n FROM t").to_pylist()[0]["n"])


def _by_fragments(dataset: lance.LanceDataset) -> int:
    return sum(fragment.to_table().num_rows for fragment in dataset.get_fragments())


def _in_a_pickle(dataset: lance.LanceDataset) -> int:
    return int(pickle.loads(pickle.dumps(dataset)).to_table().num_rows)


ENGINES = [_by_polars, _by_polars_and_version, _by_duckdb, _by_datafusion, _by_fragments, _in_a_pickle]


@pytest.mark.parametrize("count", ENGINES, ids=lambda engine: engine.__name__.lstrip("_"))
def test_an_engine_stays_at_the_version_while_others_commit(
    local: Scene, count: Callable[[lance.LanceDataset], int]
) -> None:
    local.make("t", 1)
    before = local.catalog_version()
    dataset = local.catalog.dataset("t")
    with local.catalog.begin() as tx:
        tx.append("t", rows(2))
    with local.catalog.begin() as tx:
        tx.delete("t", "id = 1")
    assert count(dataset) == 1
    assert count(local.catalog.at(before).dataset("t")) == 1
    assert count(local.catalog.dataset("t")) == 1
    assert ids(dataset) == [1]
    assert ids(local.catalog.dataset("t")) == [2]


def test_two_versions_in_one_query_of_polars(local: Scene) -> None:
    local.make("t", 1)
    before = local.catalog.dataset("t")
    with local.catalog.begin() as tx:
        tx.append("t", rows(2))
    after = local.catalog.dataset("t")
    then, now = (pl.scan_lance(each, version=each.version) for each in (before, after))
    assert now.join(then, on="id", how="anti").select("id").collect().rows() == [(2,)]


def test_a_reader_that_looks_for_the_newest_version_is_refused(local: Scene) -> None:
    """Polars opens the newest version of a dataset without a word, and merges two of one table in one query."""
    local.make("t", 1)
    dataset = local.catalog.dataset("t")
    with pytest.raises(InvalidCall, match=r"t stays at version 1, .*scan_lance\(dataset, version=dataset.version\)"):
        pl.scan_lance(dataset).collect()
    with pytest.raises(InvalidCall, match="checkout_latest: "):
        dataset.checkout_latest()
    assert ids(dataset) == [1]

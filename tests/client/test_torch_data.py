"""Rows of several tables for PyTorch. PyTorch is too large to be installed for development: skipped without it."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from namespace_client import Catalog, InvalidCall, NotFound
from tests.client.scene import Scene, rows

torch = pytest.importorskip("torch")

from namespace_client.torch_data import JoinedDataset, TablesDataset, tensors  # noqa: E402


def made(scene: Scene) -> Catalog:
    """Two tables, of which one has three fragments."""
    scene.make("t", *range(25))
    scene.make("u", *range(100, 104))
    return scene.catalog


def ids(batches: Any) -> list[int]:
    return [number for _, batch in batches for number in batch["id"].tolist()]


ALL = [*range(25), *range(100, 104)]


def test_the_rows_of_all_tables_in_order(local: Scene) -> None:
    dataset = TablesDataset(made(local), ["t", "u"], batch_size=4, columns={"u": ["id"]})
    loader = torch.utils.data.DataLoader(dataset, batch_size=None)
    found = list(loader)
    assert ids(found) == ids(loader) == ALL
    assert {name for name, _ in found} == {"t", "u"}
    assert max(len(batch["id"]) for _, batch in found) <= 4
    assert list(found[-1][1]) == ["id"]
    assert found[0][1]["v"].dtype == torch.float64


@pytest.mark.parametrize("stop", [1, 3, 7, 8, 9])
def test_a_checkpoint_goes_on_over_the_same_rows_whatever_was_committed(local: Scene, stop: int) -> None:
    catalog = made(local)
    dataset = TablesDataset(catalog, ["t", "u"], batch_size=4)
    batches = iter(torch.utils.data.DataLoader(dataset, batch_size=None))
    first = [next(batches) for _ in range(stop)]
    state = pickle.loads(pickle.dumps(dataset.state_dict()))
    with catalog.begin() as tx:
        tx.delete("t", "id < 20")
        tx.append("u", rows(500))
    again = TablesDataset.resume(catalog, state, batch_size=4)
    assert again.catalog_version == dataset.catalog_version
    assert ids(first) + ids(again) == ALL
    assert ids(again) == ALL  # the next epoch


@pytest.mark.slow
def test_processes_and_workers_share_the_rows(local: Scene) -> None:
    catalog = made(local)
    shares = [ids(TablesDataset(catalog, ["t", "u"], batch_size=4, rank=rank, world_size=2)) for rank in range(2)]
    assert all(shares)
    assert sorted(shares[0] + shares[1]) == ALL
    one, two = (TablesDataset(catalog, ["t"], batch_size=4, rank=rank, world_size=2) for rank in range(2))
    with pytest.raises(InvalidCall, match="shard of the state: expected 1, found 0"):
        two.load_state_dict(one.state_dict())


def test_in_workers_it_opens_the_same_version(local: Scene) -> None:
    dataset = TablesDataset(made(local), ["t", "u"], batch_size=4)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=None, num_workers=2, multiprocessing_context="spawn", persistent_workers=False
    )
    assert sorted(ids(loader)) == ALL


@pytest.mark.parametrize("state", [{}, None, {"catalog_version": 1}])
def test_what_is_no_state_is_refused(local: Scene, state: Any) -> None:
    with pytest.raises(InvalidCall, match="state of a TablesDataset"):
        TablesDataset.resume(made(local), state, batch_size=4)


def test_a_state_of_other_tables_or_of_a_version_that_is_not_kept(local: Scene) -> None:
    catalog = made(local)
    state = TablesDataset(catalog, ["t"], batch_size=4).state_dict()
    with pytest.raises(InvalidCall, match="tables of the state"):
        TablesDataset(catalog, ["u"], batch_size=4).load_state_dict(state)
    with pytest.raises(NotFound):
        TablesDataset.resume(catalog, state | {"catalog_version": 10**6}, batch_size=4)
    with pytest.raises(InvalidCall, match="expected a rank below"):
        TablesDataset(catalog, ["t"], batch_size=4, rank=1)


def test_columns_become_tensors_where_they_can() -> None:
    batch = pa.record_batch(
        {
            "n": [1, 2],
            "flag": [True, False],
            "text": ["a", "b"],
            "some": [1, None],
            "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        }
    )
    found = tensors(batch)
    assert found["n"].tolist() == [1, 2]
    assert found["flag"].dtype == torch.bool
    assert (found["text"], found["some"]) == (["a", "b"], [1, None])
    assert (found["vector"].shape, found["vector"].dtype) == ((2, 2), torch.float32)


def joined(scene: Scene, *, stop: int = 25) -> Catalog:
    """Features in three fragments, and labels of some of them in another order."""
    scene.make("features", *range(25))
    ids = [*range(stop - 1, -1, -1)]
    scene.catalog.create("labels", pa.table({"id": ids, "s": [f"label {number}" for number in ids]}))
    return scene.catalog


def test_features_and_labels_are_read_together_by_key(local: Scene) -> None:
    catalog = joined(local)
    dataset = JoinedDataset(catalog, ["features", "labels"], on="id", batch_size=4)
    found = list(torch.utils.data.DataLoader(dataset, batch_size=None))
    assert [number for batch in found for number in batch["id"].tolist()] == [*range(25)]
    assert set(found[0]) == {"id", "v", "s"}
    for batch in found:
        assert list(batch["s"]) == [f"label {number}" for number in batch["id"].tolist()]


def test_rows_without_a_match_are_left_out_or_refused(local: Scene) -> None:
    catalog = joined(local, stop=10)
    named = {"columns": {"labels": ["s"], "features": ["v"]}, "on": "id", "batch_size": 4}
    found = list(JoinedDataset(catalog, ["features", "labels"], **named))
    assert [number for batch in found for number in batch["id"].tolist()] == [*range(10)]
    with pytest.raises(InvalidCall, match="labels: expected a row of key 10, found none"):
        list(JoinedDataset(catalog, ["features", "labels"], missing="fail", **named))


def test_a_join_goes_on_from_its_checkpoint(local: Scene) -> None:
    catalog = joined(local)
    named = {"columns": {"labels": ["s"], "features": ["v"]}, "on": "id", "batch_size": 4}
    batches = iter(dataset := JoinedDataset(catalog, ["features", "labels"], **named))
    first = [next(batches) for _ in range(3)]
    again = JoinedDataset.resume(catalog, dataset.state_dict(), **named)
    assert [number for batch in (*first, *again) for number in batch["id"].tolist()] == [*range(25)]


def test_a_join_names_what_does_not_fit(local: Scene) -> None:
    catalog = joined(local)
    for named, told in (
        ({"columns": {"labels": ["id", "s"], "features": ["v", "s"]}}, "features: expected columns among"),
        ({"columns": {"labels": ["nosuch"], "features": ["v"]}}, "labels: expected columns among .*, found nosuch"),
        ({"missing": "ignore"}, "missing: expected skip or fail"),
    ):
        with pytest.raises(InvalidCall, match=told):
            JoinedDataset(catalog, ["features", "labels"], on="id", batch_size=4, **named)
    local.make("twice", 1, 1)
    with pytest.raises(InvalidCall, match="v: expected in one table only"):
        JoinedDataset(catalog, ["features", "twice"], on="id", batch_size=4)
    with pytest.raises(InvalidCall, match="twice: key id: expected each key once, found 1 twice"):
        list(
            JoinedDataset(catalog, ["features", "twice"], on="id", batch_size=4, columns={"features": [], "twice": []})
        )

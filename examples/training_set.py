"""Features, labels and embeddings of one training set, changed together in atomic transactions.

    python examples/training_set.py [ROOT OR URL OF A CATALOG]

Two nightly jobs change the three tables at the same time, and a trainer reads them. Each job is a block that is run
again after a conflict with the other one. A reader never sees a feature without its label and its embedding.
"""

from __future__ import annotations

import sys
import tempfile
import threading

import numpy as np
import pyarrow as pa

from namespace_client import Catalog, MultiTableTransaction

ITEMS = 200
WIDTH = 8
TABLES = ("features", "labels", "embeddings")


def load(tx: MultiTableTransaction) -> None:
    """Create all three tables in one catalog version."""
    ids = list(range(ITEMS))
    tx.create("features", pa.table({"id": ids, "clicks": [number % 17 for number in ids]}))
    tx.create("labels", pa.table({"id": ids, "label": [float(number % 2) for number in ids]}))
    tx.create("embeddings", embed(tx.table("features").to_table()))


def embed(features: pa.Table) -> pa.Table:
    """Vectors computed from the features, in place of a model."""
    clicks = features.column("clicks").to_numpy().astype(np.float32)
    vectors = np.repeat(clicks[:, None], WIDTH, axis=1)
    flat = pa.array(vectors.reshape(-1), pa.float32())
    return pa.table({"id": features.column("id"), "vector": pa.FixedSizeListArray.from_arrays(flat, WIDTH)})


def count_clicks(tx: MultiTableTransaction) -> None:
    """Add clicks and items, and compute their embeddings from the rows that the block has written."""
    tx.update("features", {"clicks": "clicks + 1"}, where="id % 10 = 0")
    first = tx.table("features").count_rows()
    fresh = list(range(first, first + 20))
    tx.append("features", {"id": fresh, "clicks": [0] * len(fresh)})
    tx.append("labels", {"id": fresh, "label": [0.0] * len(fresh)})
    touched = tx.table("features").to_table(filter=f"id % 10 = 0 or id >= {first}")
    tx.merge("embeddings", embed(touched), on="id")


def correct_labels(tx: MultiTableTransaction) -> None:
    """Correct labels, and add a column that marks the reviewed ones."""
    tx.update("labels", {"label": "1 - label"}, where="id % 50 = 3")
    if "reviewed" not in tx.table("labels").schema.names:
        tx.add_columns("labels", {"reviewed": "id % 50 = 3"})


def read(catalog: Catalog) -> str:
    """Read the three tables as a trainer does. Raises `AssertionError` unless they agree."""
    with catalog.begin() as tx:
        features, labels, embeddings = (tx.table(name).to_table() for name in TABLES)
    assert set(features["id"].to_pylist()) == set(labels["id"].to_pylist()) == set(embeddings["id"].to_pylist())
    vectors = dict(zip(embeddings["id"].to_pylist(), embeddings["vector"].to_pylist(), strict=True))
    for row in features.to_pylist():
        assert vectors[row["id"]][0] == row["clicks"], f"item {row['id']}: the embedding is of other features"
    return f"catalog version {tx.catalog_version}: {features.num_rows} items"


def main(target: str) -> None:
    """Load the tables, run the jobs concurrently, and read meanwhile."""
    with Catalog.connect(target, namespace=["training"]) as catalog:
        catalog.ensure_namespace()
        catalog.run(load, message="first load")
        print(read(catalog))
        jobs = [
            threading.Thread(target=catalog.run, args=(job,), kwargs={"attempts": 50, "message": job.__name__})
            for job in [count_clicks, correct_labels] * 3
        ]
        for job in jobs:
            job.start()
        while any(job.is_alive() for job in jobs):
            read(catalog)
        print(read(catalog))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(directory)

"""Thirteen tables of recordings of robots, and a checkpoint whose exact data is recreated when they have changed.

    python examples/robot_checkpoints.py [ROOT OR URL OF A CATALOG]

A day of recordings is one commit, by calls that users of lancedb know: one catalog version is a snapshot of all tables.
A training pins one, reads it, and records it with its checkpoint. Then labels are corrected, episodes are withdrawn,
images get other vectors, a column is added, files are compacted. The data of the checkpoint is there all the same.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import namespace_client
from namespace_client import Catalog

NAMESPACE = "robots"
EPISODES = 6
"""Episodes a day."""
FRAMES = 40
"""Frames an episode."""
WIDTH = 16
TRAINED_ON = (
    *("robots", "sensors", "calibrations", "tasks", "scenes", "episodes", "frames", "states", "actions", "images"),
    *("annotations", "splits"),
)
TABLES = (*TRAINED_ON, "checkpoints")
"""The last one has what was trained, and no data of it."""


def recordings(day: int) -> dict[str, pa.Table]:
    """The rows of a day for the tables that grow."""
    episodes = list(range(day * EPISODES, (day + 1) * EPISODES))
    frames = [(episode, number) for episode in episodes for number in range(FRAMES)]
    ids = [episode * FRAMES + number for episode, number in frames]
    labels = ["grasp" if each % 2 else "place" for each in episodes]
    splits = ["test" if each % 5 == 4 else "train" for each in episodes]
    vectors = pa.array([image_of(each, "v1") for each in ids], pa.list_(pa.float32(), WIDTH))
    return {
        "episodes": pa.table(
            {"id": episodes, "robot": [each % 2 for each in episodes], "task": [each % 3 for each in episodes]}
        ),
        "frames": pa.table(
            {"id": ids, "episode": [each[0] for each in frames], "number": [each[1] for each in frames]}
        ),
        "states": pa.table({"frame": ids, "joints": pa.array([[each / 7, -each / 9] for each in ids])}),
        "actions": pa.table({"frame": ids, "torque": [each % 11 / 4 for each in ids]}),
        "images": pa.table({"frame": ids, "vector": vectors}),
        "annotations": pa.table({"episode": episodes, "label": labels}),
        "splits": pa.table({"episode": episodes, "split": splits}),
    }


def image_of(frame: int, model: str) -> list[float]:
    """The vector of an image, in place of a model."""
    digest = hashlib.sha256(f"{model} {frame}".encode()).digest()
    return [byte / 256 for byte in digest[:WIDTH]]


def load(catalog: Catalog) -> None:
    """Create all tables with the first day, in one catalog version."""
    fixed: dict[str, list[dict[str, Any]]] = {
        "robots": [{"id": 0, "model": "left arm"}, {"id": 1, "model": "right arm"}],
        "sensors": [{"id": number, "robot": number % 2, "kind": "camera"} for number in range(4)],
        "calibrations": [{"sensor": number, "focal": 35.0 + number} for number in range(4)],
        "tasks": [{"id": number, "instruction": f"put block {number} away"} for number in range(3)],
        "scenes": [{"id": 0, "light": "day"}, {"id": 1, "light": "night"}],
    }
    checkpoints = pa.schema({"name": pa.string(), "catalog_version": pa.int64(), "digest": pa.string()})
    with catalog.begin(message="the first day") as tx:
        db = namespace_client.lancedb(tx)
        for name, rows in {**fixed, **recordings(0)}.items():
            db.create_table(name, rows)
        db.create_table("checkpoints", schema=checkpoints)


def record(catalog: Catalog, day: int) -> None:
    """Add a day of recordings to seven tables."""
    with catalog.begin(message=f"day {day}") as tx:
        db = namespace_client.lancedb(tx)
        for name, rows in recordings(day).items():
            db.open_table(name).add(rows)


def data_of(catalog: Catalog, snapshot: int | str) -> dict[str, pa.Table]:
    """What a training reads, as lancedb shows it at one catalog version: episodes of the split `train` only."""
    db = namespace_client.lancedb(catalog, at=snapshot)

    def rows(name: str, where: str | None = None) -> pa.Table:
        found = db.open_table(name).search()
        return (found if where is None else found.where(where)).limit(1_000_000).to_arrow()

    chosen = rows("splits", "split = 'train'")["episode"].to_pylist()
    frames = rows("frames", _among("episode", chosen))
    by_episode, by_frame = _among("episode", chosen), _among("frame", frames["id"].to_pylist())
    restricted = {
        "episodes": _among("id", chosen),
        **dict.fromkeys(("annotations", "splits"), by_episode),
        **dict.fromkeys(("states", "actions", "images"), by_frame),
    }
    return {name: frames if name == "frames" else rows(name, restricted.get(name)) for name in TRAINED_ON}


def _among(column: str, values: Sequence[int]) -> str:
    return f"{column} IN ({', '.join(map(str, values))})" if values else "false"


def digest_of(data: dict[str, pa.Table]) -> str:
    """SHA-256 of all names, types and values, whatever the order of the rows in files."""
    digest = hashlib.sha256()
    for name, table in data.items():
        digest.update(f"{name} {table.schema.names} {table.schema.types}".encode())
        for row in sorted(map(repr, table.to_pylist())):
            digest.update(row.encode())
    return digest.hexdigest()


def train(catalog: Catalog, name: str) -> str:
    """Pin a snapshot, train on it, and record the checkpoint with the catalog version; the digest of the data."""
    version = catalog.pin(name, reason="the data of a checkpoint")
    digest = digest_of(data_of(catalog, name))
    with catalog.begin(message=f"checkpoint {name}") as tx:
        row = {"name": name, "catalog_version": version, "digest": digest}
        namespace_client.lancedb(tx).open_table("checkpoints").add([row])
    return digest


def curate(catalog: Catalog) -> None:
    """Correct labels, withdraw an episode everywhere, and embed its images anew: one catalog version again."""
    with catalog.begin(message="curation") as tx:
        db = namespace_client.lancedb(tx)
        db.open_table("annotations").update("label = 'grasp'", {"label": "pick up"})
        db.open_table("splits").update("episode = 4", {"split": "train"})
        gone = range(FRAMES, 2 * FRAMES)
        db.open_table("episodes").delete("id = 1")
        for name in ("annotations", "splits", "frames"):
            db.open_table(name).delete("episode = 1")
        for name in ("states", "actions", "images"):
            db.open_table(name).delete(_among("frame", gone))
        images = db.open_table("images")
        again = [{"frame": each, "vector": image_of(each, "v2")} for each in images.to_arrow()["frame"].to_pylist()]
        images.merge_insert("frame").when_matched_update_all().execute(again)
        tx.add_columns("episodes", {"reviewed": "task = 0"})
        tx.compact("states")


def main(target: str) -> None:
    """Load, train, change everything, and recreate the data of the checkpoint."""
    with Catalog.connect(target, namespace=NAMESPACE) as catalog:
        catalog.ensure_namespace()
        load(catalog)
        record(catalog, 1)
        assert {each[-1] for each in catalog.tables()} == set(TABLES)
        trained = train(catalog, "checkpoint-1")
        record(catalog, 2)
        curate(catalog)

        newest = digest_of(data_of(catalog, catalog.history(limit=1)[0].version))
        assert newest != trained
        [checkpoint] = catalog.read("checkpoints", filter="name = 'checkpoint-1'").to_pylist()
        again = data_of(catalog, checkpoint["catalog_version"])
        assert digest_of(again) == checkpoint["digest"] == trained
        print(f"{len(TABLES)} tables; checkpoint-1 is of catalog version {checkpoint['catalog_version']}")
        print(f"recreated {again['frames'].num_rows} frames of {again['episodes'].num_rows} episodes, the same data")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(directory)

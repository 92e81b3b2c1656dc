"""Examples: a training set and checkpoints of robots, over both backends, and the search of the demo."""

from __future__ import annotations

import runpy

import pyarrow as pa
import pytest

from tests.client.scene import Scene
from tests.server.servers import REPOSITORY


def test_features_labels_and_embeddings_change_together(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    target = scene.target if isinstance(scene.target, str) else scene.target.catalog.store.uri
    runpy.run_path(str(REPOSITORY / "examples" / "training_set.py"))["main"](target)

    first, last = capsys.readouterr().out.splitlines()
    assert first.endswith("200 items")
    assert last.endswith("260 items")


def test_the_data_of_a_checkpoint_is_recreated(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    target = scene.target if isinstance(scene.target, str) else scene.target.catalog.store.uri
    example = runpy.run_path(str(REPOSITORY / "examples" / "robot_checkpoints.py"))
    example["main"](target)

    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("13 tables; checkpoint-1 is of catalog version ")
    assert last == "recreated 400 frames of 10 episodes, the same data"
    # What was trained is a digest of these rows, and of no others.
    data = {"splits": pa.table({"episode": [1, 2]}), "tasks": pa.table({"id": [1]})}
    reordered = data | {"splits": pa.table({"episode": [2, 1]})}
    changed = data | {"tasks": pa.table({"id": [2]})}
    digests = [example["digest_of"](each) for each in (data, reordered, changed)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("scene", ["http"], indirect=True)
def test_airports_are_found_over_http(scene: Scene) -> None:
    """The last chapter of the demo, which its other chapters need Spark for."""
    example = runpy.run_path(str(REPOSITORY / "examples" / "airport_search.py"))
    airports = pa.table(
        {
            "faa": ["BOS", "JFK", "LAX", "SFO"],
            "name": ["Logan International", "John F Kennedy Intl", "Los Angeles Intl", "San Francisco Intl"],
            "lat": [42.36, 40.64, 33.94, 37.62],
            "lon": [-71.01, -73.78, -118.41, -122.37],
        }
    )
    scene.catalog.create("airport", airports)
    named = example["named"](scene.target, [scene.namespace, "airport"], "intl")
    assert named == example["named_in"](airports, "intl") == ["JFK", "LAX", "SFO"]
    nearest = example["nearest"](scene.target, [scene.namespace, "place"], airports, "JFK", 2)
    assert nearest == example["nearest_in"](airports, "JFK", 2) == ["JFK", "BOS"]

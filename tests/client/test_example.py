"""The example of a training set, over both backends."""

from __future__ import annotations

import runpy

import pytest

from tests.client.scene import Scene
from tests.server.servers import REPOSITORY


def test_features_labels_and_embeddings_change_together(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    target = scene.target if isinstance(scene.target, str) else scene.target.catalog.store.uri
    runpy.run_path(str(REPOSITORY / "examples" / "training_set.py"))["main"](target)

    first, last = capsys.readouterr().out.splitlines()
    assert first.endswith("200 items")
    assert last.endswith("260 items")

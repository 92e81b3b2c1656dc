"""What the tests of the protocol rules break, and how."""

from __future__ import annotations

import lance
import pytest

from tests.directory.tables import Ground
from tests.storage.faults import FaultStore, Write

T = ["g", "t"]


def is_flip(write: Write) -> bool:
    return write.path.startswith("__manifest/_versions/")


def is_promotion(write: Write) -> bool:
    return write.verb == "publish"


def once(faults: FaultStore, when: object, act: object) -> None:
    """Let another actor act right before the first matching write."""
    done: list[bool] = []

    def hook(verb: str, path: str) -> None:
        if not done and when(Write(0, verb, path)):  # type: ignore[operator]
            done.append(True)
            act()  # type: ignore[operator]

    faults.before(hook)


def stage_by_uri(ground: Ground, table_id: list[str], data: object) -> dict[str, object]:
    """A manifest staged by a stock client that took storage for the truth."""
    from tests.directory.tables import Capture

    class Storage(Capture):
        def list_table_versions(self, request: object) -> object:
            versions = ground.canonical(table_id)
            names = [f"{2**64 - 1 - version}.manifest" for version in versions[-1:]]
            base = str(ground.root / ground.location(table_id) / "_versions").lstrip("/")
            return {"versions": [{"version": versions[-1], "manifest_path": f"{base}/{names[0]}"}]}

    capture = Storage(ground.namespace)
    lance.write_dataset(data, mode="append", namespace_client=capture, table_id=table_id)  # type: ignore[arg-type]
    return {"create_table_version": capture.captured[-1]}


def stage_fork(ground: Ground, branch: str, version: int) -> dict[str, object]:
    """What stock pylance sends to fork a branch; the client dies before it writes the ref."""
    from tests.directory.tables import Capture

    class Dying(Capture):
        def create_table_version(self, request: object) -> object:
            super().create_table_version(request)
            raise RuntimeError("the client dies here")

    capture = Dying(ground.namespace)
    dataset = lance.dataset(namespace_client=capture, table_id=T, version=version)
    with pytest.raises(Exception, match=r"(?s)."):
        dataset.create_branch(branch)
    return {"create_table_version": capture.captured[-1]}

"""Stock writers that do not use the catalog and take a name that it has given to a version."""

from __future__ import annotations

from collections.abc import Callable

import lance
import pytest

from lance_core.storage.local import LocalStore
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore

TABLE = ["g", "person"]
Meddle = Callable[[Ground], None]


def take_name(ground: Ground, *, then: Meddle) -> None:
    """Version 2 is flipped by us, with ids 3 and 4; its name is taken by a stock writer, with id 10."""
    transaction = ground.transaction(TABLE, rows(3, 5))
    store = FaultStore(LocalStore(ground.root, "none"))
    store.fail(Fault.CRASH_AFTER, when=lambda write: write.path.startswith("__manifest/_versions/"))
    with pytest.raises(Crashed):
        ground.again(store).batch(transaction)
    ground.unmanaged_append(TABLE, rows(10, 11))
    then(ground)


def append_above(ground: Ground) -> None:
    ground.unmanaged_append(TABLE, rows(11, 12))


def delete_above(ground: Ground) -> None:
    lance.dataset(str(ground.root / ground.location(TABLE))).delete("id = 10")

"""Tables in a bucket: all reads and writes use the storage options."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

import pytest

from namespace_client import Catalog, RetryableConflict
from tests.client.scene import rows, seen
from tests.emulators import Emulator


def test_a_transaction_on_tables_in_a_bucket(moto_server: Emulator) -> None:
    options = moto_server.storage_options
    with Catalog.connect(moto_server.new_root(), namespace=["ml"], storage_options=options) as catalog:
        catalog.ensure_namespace()
        with catalog.begin() as tx:
            tx.create("a", rows(*range(10)))
            tx.create("b", rows(1))
        with catalog.begin() as tx:
            tx.append("a", rows(10, 11))
            tx.update("a", {"v": "0"}, where="id = 3")
            tx.merge("b", rows(1, 2, v=0.5), on="id")
            tx.delete("b", "v = 9")
            assert seen(tx, "a") == [*range(12)]
        with catalog.begin() as tx:
            tx.delete("a", "id > 9")
            tx.create_index("a", "id", "BTREE")
            tx.compact("a")
            with catalog.begin() as other:
                other.append("b", rows(3))
        with pytest.raises(RetryableConflict), catalog.begin() as tx:
            tx.delete("a", "id = 1")
            tx.delete("b", "id = 1")
            with catalog.begin() as other:
                other.delete("b", "id = 1")

        with catalog.begin() as tx:
            dataset = tx.table("a").to_pylance()
            dataset.validate()
            assert seen(tx, "a") == [*range(10)]
            assert seen(tx, "b") == [2, 3]

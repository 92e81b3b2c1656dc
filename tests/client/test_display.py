"""What catalogs, views and results look like as text, and as HTML in notebooks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lance_core.amounts import counted, size
from namespace_client import Catalog, CatalogVersion
from namespace_client.history import CatalogBatch, CatalogChange, CatalogHistory
from namespace_client.names import Name
from tests.client.scene import Scene, rows

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "unknown size"),
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1500, "1.5 kB"),
        (2 * 10**12, "2.0 TB"),
    ],
)
def test_sizes(count: int | None, text: str) -> None:
    assert size(count) == text


def test_counts() -> None:
    assert [counted(count, "row") for count in (None, 0, 1, 2000)] == ["unknown rows", "0 rows", "1 row", "2,000 rows"]


def test_connections_tell_what_they_are_of(local: Scene) -> None:
    local.make("t", 1)
    assert repr(local.catalog) == f"<Catalog of {local.target}, namespace ml>"
    view = local.catalog.at(2)
    assert repr(view) == f"<CatalogView of {local.target} at catalog version 2, namespace ml>"
    with Catalog.connect(local.target) as root:
        assert repr(root) == f"<Catalog of {local.target}>"
    assert repr(root) == f"<Catalog of {local.target}>"


def test_a_description_lists_columns_and_what_there_is_beside_them(local: Scene) -> None:
    local.make("t", 1, 2)
    local.catalog.create_tag("t", "good")
    local.catalog.create_branch("t", "dev")
    text = repr(local.catalog.describe("t"))
    title, *lines = text.splitlines()
    assert title.startswith("ml.t: version 1 of 20")
    assert title.endswith("in 1 fragment")
    assert lines == ["  id  int64", "  v  double", "tags: good (1)", "branches: dev (from 1)"]
    html = local.catalog.describe("t")._repr_html_()
    assert '<td style="text-align:left">int64</td>' in html
    assert "dev (from 1)" in html


def test_a_transaction_tells_what_it_did(local: Scene) -> None:
    local.make("t", 1)
    tx = local.catalog.begin()
    assert repr(tx) == "<MultiTableTransaction not begun, open>"
    with tx:
        tx.append("t", rows(2))
        tx.create("u", rows(1))
        assert "open; ml.t: append; ml.u: create" in repr(tx)
        assert repr(tx.table("t")) == "<TableReader of ml.t, version 1>"
    assert "committed" in repr(tx)
    version = local.catalog_version()
    assert repr(tx.result).splitlines() == [
        f"committed, catalog version {version}",
        "  ml.t version 2: append",
        "  ml.u version 1 (new): create",
    ]
    assert '<td style="text-align:left">new</td>' in tx.result._repr_html_()


def test_a_history_is_a_table_and_stays_a_list() -> None:
    name = Name(("shop", "orders"))
    changes = tuple(CatalogChange("commit_transaction", name, change="Append", version=n) for n in range(7))
    history = CatalogHistory(
        [
            CatalogVersion(4, NOON, (CatalogBatch("b", "<nightly>", "ada", changes, 300),)),
            CatalogVersion(3, NOON, (), (CatalogChange("adopt", name, version=2),)),
            CatalogVersion(2, NOON, ()),
            CatalogVersion(1, NOON, (), unmanaged=True),
        ]
    )
    head, first, *others = repr(history).splitlines()
    assert head.split() == ["version", "time", "message", "principal", "changes"]
    assert first.endswith("<nightly>  ada        " + ", ".join(["Append shop.orders"] * 5) + ", and 295 more")
    assert [line.rpartition("  ")[2] for line in others] == [
        "adopt shop.orders",
        "the server's own rows",
        "made without the catalog",
    ]
    assert "&lt;nightly&gt;" in history._repr_html_()
    assert "<nightly>" not in history._repr_html_()
    assert [entry.version for entry in history[:2]] == [4, 3]
    assert CatalogHistory() == []


def test_the_history_of_a_catalog_is_one(scene: Scene) -> None:
    scene.make("t", 1)
    assert isinstance(scene.catalog.history(1), CatalogHistory)
    assert f"Overwrite {scene.namespace}.t" in repr(scene.catalog.history(1))

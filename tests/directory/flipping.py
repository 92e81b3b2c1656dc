"""One flip from beginning to end, and what pylance reads of it."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import lance

from namespace_server.directory.manifest_table.flip import Flip, FlipClaimed, FlipCommitted, FlipOutcome
from namespace_server.directory.manifest_table.row_codec import Row, encode_entry
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import Changes
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.reference import ReferenceCatalog


def flip(table: ManifestTable, changes: Changes, **options: Any) -> CatalogSnapshot:
    """Prepare, stage and commit on the newest snapshot."""
    prepared = table.prepare(table.refresh(), changes, attempt=str(uuid.uuid4()), **options)
    table.stage(prepared)
    outcome = claim_and_prove(table, prepared)
    assert isinstance(outcome, FlipCommitted)
    return outcome.snapshot


def claim_and_prove(table: ManifestTable, prepared: Flip) -> FlipOutcome:
    """The commit step of a staged flip."""
    claimed = table.claim(prepared)
    return table.prove(claimed) if isinstance(claimed, FlipClaimed) else claimed


def open_manifest(root: Path) -> lance.LanceDataset:
    return lance.dataset(str(root / "__manifest"))


def rows_on_disk(root: Path) -> list[Row]:
    dataset = open_manifest(root)
    dataset.validate()
    table = dataset.to_table()
    return [Row(*values) for values in zip(*(table[name].to_pylist() for name in Row._fields), strict=True)]


def assert_on_disk(root: Path, reference: ReferenceCatalog) -> None:
    """pylance finds the dataset valid, and in it exactly the rows of the reference."""
    assert sorted(rows_on_disk(root)) == sorted(encode_entry(entry) for entry in reference.rows.values())

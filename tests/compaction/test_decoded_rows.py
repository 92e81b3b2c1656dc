"""Rows are read before they replace others, however much larger they are than pylance takes them for."""

from pathlib import Path
from typing import Any

import lance
import pytest

from lance_core.data import decoded_rows
from lance_core.errors import CorruptFile
from tests.transaction.tables import make_table


@pytest.fixture
def batch_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The rows of a batch of each scan. Scans that leave them to pylance fail as with 2 GiB of equal texts."""
    found: list[int | None] = []
    scanner = lance.LanceDataset.scanner

    def scan(dataset: lance.LanceDataset, *arguments: Any, batch_size: int | None = None, **options: Any) -> Any:
        found.append(batch_size)
        if batch_size is None:
            raise ValueError("LanceError(Arrow): Offset overflow error: 2147483648")
        return scanner(dataset, *arguments, batch_size=batch_size, **options)

    monkeypatch.setattr(lance.LanceDataset, "scanner", scan)
    return found


def test_a_column_of_a_batch_that_is_too_long_is_read_in_batches_of_few_rows(
    tmp_path: Path, batch_sizes: list[int | None]
) -> None:
    dataset = make_table(tmp_path, (0, 100), (100, 150)).open()
    assert decoded_rows(dataset, [fragment.metadata for fragment in dataset.get_fragments()]) == 150
    assert batch_sizes == [None, 64]


def test_what_cannot_be_read_is_damage(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 100))
    dataset = table.open()
    [file] = (table.path / "data").iterdir()
    file.write_bytes(b"")
    with pytest.raises(CorruptFile):
        decoded_rows(dataset, [fragment.metadata for fragment in dataset.get_fragments()])

"""Reading a table inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from namespace_client.work import TableWork

if TYPE_CHECKING:
    import lance


class TableReader:
    """A table as its transaction sees it: the version at the begin, and what the transaction did to it since.

    It stays current: what is read after a later call of the transaction shows that, too. With a fixed `version`
    (`tag=` and `version=` of `table`) it shows that one, whatever the transaction does.
    """

    def __init__(self, work: TableWork, fixed: tuple[str | None, int] | None = None) -> None:
        self._work = work
        self._fixed = fixed

    @property
    def version(self) -> int | None:
        """The published version that this is, or is based on; None for a table that the transaction creates."""
        return self._fixed[1] if self._fixed is not None else self._work.state.version

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        return self.to_pylance().schema

    def to_pylance(self) -> lance.LanceDataset:
        """Pylance's handle, for reading only: its methods that commit raise `InvalidCall`."""
        if self._fixed is not None:
            return self._work.dataset_at(self._fixed[1], self._fixed[0])
        return self._work.dataset()

    def to_table(self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any) -> pa.Table:  # noqa: A002 - pylance's word
        """The rows; arguments as pylance's `to_table` takes them."""
        chosen = None if columns is None else list(columns)
        return self.to_pylance().to_table(columns=chosen, filter=filter, **options)

    def count_rows(self, filter: Any = None) -> int:  # noqa: A002 - pylance's word
        """The number of rows, or of those that match."""
        return int(self.to_pylance().count_rows(filter))

"""Rows of several tables for PyTorch, at one catalog version, from a position that a checkpoint holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import IterableDataset, get_worker_info

from namespace_client.errors import InvalidCall
from namespace_client.names import AnyName

if TYPE_CHECKING:
    from namespace_client.reads import CatalogReads

_STATE: Final = frozenset({"catalog_version", "tables", "shard", "shards", "table", "row"})


def tensors(batch: pa.RecordBatch) -> dict[str, Any]:
    """The columns of a batch: numbers and booleans as tensors, vectors as tensors of two dimensions, others as lists.

    A column of numbers with nulls is a list, too.
    """
    return {name: _column(batch.column(place)) for place, name in enumerate(batch.schema.names)}


class TablesDataset(IterableDataset):  # type: ignore[misc]
    """The rows of tables, one table after the other, as pairs of the table's name and a batch.

    All tables are read as of one catalog version. `state_dict` is the position with this version, so that training goes
    on over the same rows, whatever was committed since. Each process of `world_size` and each worker of a `DataLoader`
    (with `batch_size=None`) reads the fragments of its own. A process that reads the state must be the one that reads
    the rows: without workers, or with a loader that asks its workers for their states.

    Example:
        ```python
        dataset = TablesDataset(catalog, ["orders", "customers"], batch_size=1024)
        for name, batch in torch.utils.data.DataLoader(dataset, batch_size=None):
            ...
        torch.save(dataset.state_dict(), "checkpoint.pt")
        again = TablesDataset.resume(catalog, torch.load("checkpoint.pt"), batch_size=1024)
        ```

    Args:
        catalog: The catalog, or a view of one version of it.
        tables: Names of the tables.
        batch_size: Rows of a batch at most; the last one of a fragment may have fewer.
        columns: Columns of tables by the names of these; all columns of those that are not named.
        rank: Number of this process among those that share the rows.
        world_size: How many these are.
        convert: What becomes of each Arrow batch; by default `tensors`.

    Attributes:
        catalog_version: The catalog version that is read.
    """

    def __init__(
        self,
        catalog: CatalogReads,
        tables: Sequence[AnyName],
        *,
        batch_size: int,
        columns: Mapping[AnyName, Sequence[str]] | None = None,
        rank: int = 0,
        world_size: int = 1,
        convert: Callable[[pa.RecordBatch], Any] = tensors,
    ) -> None:
        super().__init__()
        if not 0 <= rank < world_size or batch_size < 1 or not tables:
            raise InvalidCall(
                f"rank {rank} of {world_size}, batches of {batch_size}, {len(tables)} tables: expected a rank below "
                "the world size, and at least one row and one table"
            )
        self._datasets = catalog.datasets(tables)
        self.catalog_version: int = next(iter(self._datasets.values())).pinned.catalog_version
        self._batch_size = batch_size
        self._columns = dict(columns or {})
        self._rank, self._world_size = rank, world_size
        self._convert = convert
        self._table, self._row = 0, 0
        self._shard: tuple[int, int] | None = None

    @classmethod
    def resume(cls, catalog: Any, state: Mapping[str, Any], **options: Any) -> TablesDataset:
        """Open the tables of a state at its catalog version, at its position.

        Args:
            catalog: The catalog that the state is of.
            state: What `state_dict` gave.
            **options: The other arguments of `TablesDataset`, as they were.

        Raises:
            InvalidCall: The state is none of this class, or of another share of the rows.
            NotFound: The catalog version is not kept any more; a pin keeps one for as long as training takes.
        """
        if not isinstance(state, Mapping) or not state.keys() >= _STATE:
            raise InvalidCall(f"state of a TablesDataset: expected {', '.join(sorted(_STATE))}, found {state!r}")
        made = cls(catalog.at(state["catalog_version"]), state["tables"], **options)
        made.load_state_dict(state)
        return made

    def state_dict(self) -> dict[str, Any]:
        """The catalog version, the tables, and the position behind the last batch; after all of them the begin."""
        shard, shards = self._shard or self._own_shard()
        return {
            "catalog_version": self.catalog_version,
            "tables": list(self._datasets),
            "shard": shard,
            "shards": shards,
            "table": self._table,
            "row": self._row,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to the position of a state. Raises `InvalidCall` if it is of other tables, versions or shares of rows."""
        own = self.state_dict()
        for key in ("catalog_version", "tables", "shard", "shards"):
            if state.get(key) != own[key]:
                raise InvalidCall(f"{key} of the state: expected {own[key]}, found {state.get(key)}")
        self._table, self._row = int(state["table"]), int(state["row"])

    def __iter__(self) -> Iterator[tuple[AnyName, Any]]:
        self._shard = shard, shards = self._own_shard()
        for place, (name, dataset) in list(enumerate(self._datasets.items()))[self._table :]:
            fragments = dataset.get_fragments()[shard::shards]
            columns = self._columns.get(name)
            wanted = None if columns is None else list(columns)
            if fragments:
                scanner = dataset.scanner(
                    columns=wanted, batch_size=self._batch_size, fragments=fragments, offset=self._row or None
                )
                for batch in scanner.to_batches():
                    self._row += batch.num_rows
                    yield name, self._convert(batch)
            self._table, self._row = place + 1, 0
        self._table, self._row = 0, 0

    def _own_shard(self) -> tuple[int, int]:
        worker = get_worker_info()
        workers, number = (1, 0) if worker is None else (worker.num_workers, worker.id)
        return self._rank * workers + number, self._world_size * workers


def _column(column: pa.Array) -> Any:
    kind, shape = column.type, [len(column)]
    if column.null_count:
        return column.to_pylist()
    if pa.types.is_fixed_size_list(kind):
        column, shape = column.flatten(), [len(column), kind.list_size]
        kind = kind.value_type
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not numbers or column.null_count:
        return column.to_pylist()
    return torch.from_numpy(np.array(column.to_numpy(zero_copy_only=False))).reshape(shape)

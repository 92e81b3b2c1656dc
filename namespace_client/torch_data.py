"""Rows of several tables for PyTorch, at one catalog version, from a position that a checkpoint holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import IterableDataset, get_worker_info

from namespace_client.errors import InvalidCall
from namespace_client.names import AnyName
from table_data.queries.key_places import KeyPlaces

if TYPE_CHECKING:
    import lance

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
            for batch in self._scan(dataset, self._columns.get(name), shard, shards):
                yield name, self._convert(batch)
            self._table, self._row = place + 1, 0
        self._table, self._row = 0, 0

    def _scan(
        self, dataset: lance.LanceDataset, columns: Sequence[str] | None, shard: int, shards: int
    ) -> Iterator[pa.RecordBatch]:
        """The batches of this share of a table, from the position on; each moves it behind itself."""
        fragments = dataset.get_fragments()[shard::shards]
        wanted = None if columns is None else list(columns)
        if fragments:
            scanner = dataset.scanner(
                columns=wanted, batch_size=self._batch_size, fragments=fragments, offset=self._row or None
            )
            for batch in scanner.to_batches():
                self._row += batch.num_rows
                yield batch

    def _own_shard(self) -> tuple[int, int]:
        worker = get_worker_info()
        workers, number = (1, 0) if worker is None else (worker.num_workers, worker.id)
        return self._rank * workers + number, self._world_size * workers


class JoinedDataset(TablesDataset):
    """The rows of several tables joined by a key, such as features and labels: batches with the columns of all.

    The first table is read from its begin to its end; of the others the rows with the same keys are taken. All are
    read as of one catalog version. Positions, shares of the rows and `resume` are as of `TablesDataset`. The keys of
    the other tables are in memory, 16 bytes a row for numbers, in each process that reads.

    Example:
        ```python
        dataset = JoinedDataset(catalog, ["features", "labels"], on="id", batch_size=1024)
        for batch in torch.utils.data.DataLoader(dataset, batch_size=None):
            loss = model(batch["embedding"], batch["label"])
        ```

    Args:
        catalog: The catalog, or a view of one version of it.
        tables: Names of the tables. All but the first have each key once.
        on: The key column, of one type in all tables.
        batch_size: Rows of a batch at most, before those are left out that have no match.
        columns: Columns of tables by the names of these; all columns of those that are not named. No name but the
            key's may be in two tables.
        missing: What is done with a row of the first table whose key another table does not have: "skip" leaves it
            out, "fail" raises `InvalidCall`.
        rank: Number of this process among those that share the rows.
        world_size: How many these are.
        convert: What becomes of each Arrow batch; by default `tensors`.

    Raises:
        InvalidCall: A table has no such key column, or a key twice, or two tables have a column of one name.
    """

    def __init__(
        self,
        catalog: CatalogReads,
        tables: Sequence[AnyName],
        *,
        on: str,
        batch_size: int,
        columns: Mapping[AnyName, Sequence[str]] | None = None,
        missing: Literal["skip", "fail"] = "skip",
        rank: int = 0,
        world_size: int = 1,
        convert: Callable[[pa.RecordBatch], Any] = tensors,
    ) -> None:
        super().__init__(
            catalog,
            tables,
            batch_size=batch_size,
            columns=columns,
            rank=rank,
            world_size=world_size,
            convert=convert,
        )
        if missing not in {"skip", "fail"}:
            raise InvalidCall(f"missing: expected skip or fail, found {missing!r}")
        self._on, self._missing = on, missing
        self._chosen = {name: self._columns_of(name) for name in self._datasets}
        named = [each for chosen in self._chosen.values() for each in chosen]
        if twice := sorted({each for each in named if named.count(each) > 1}):
            raise InvalidCall(f"{', '.join(twice)}: expected in one table only; say `columns`")
        self._keys: dict[AnyName, KeyPlaces] = {}

    def _columns_of(self, name: AnyName) -> list[str]:
        """The columns that are read of a table, without the key."""
        schema = self._datasets[name].schema
        chosen = list(self._columns.get(name, schema.names))
        unknown = [each for each in (self._on, *chosen) if each not in schema.names]
        if unknown:
            raise InvalidCall(f"{name}: expected columns among {', '.join(schema.names)}, found {unknown[0]}")
        return [each for each in chosen if each != self._on]

    def __iter__(self) -> Iterator[Any]:
        self._shard = shard, shards = self._own_shard()
        first, *others = self._datasets
        for name in others:
            if name not in self._keys:
                keys = self._datasets[name].to_table(columns=[self._on]).column(self._on).combine_chunks()
                self._keys[name] = KeyPlaces.of(keys, f"{name}: key {self._on}")
        for batch in self._scan(self._datasets[first], [self._on, *self._chosen[first]], shard, shards):
            joined = self._join(batch, others)
            if joined.num_rows:
                yield self._convert(joined)
        self._table, self._row = 0, 0

    def _join(self, batch: pa.RecordBatch, others: Sequence[AnyName]) -> pa.RecordBatch:
        keys = batch.column(self._on)
        places = {name: self._keys[name].find(keys) for name in others}
        found = np.logical_and.reduce([each >= 0 for each in places.values()], initial=True)
        kept = np.broadcast_to(found, len(batch))
        if self._missing == "fail" and not kept.all():
            lost = keys[int(np.argmin(kept))].as_py()
            name = next(name for name, each in places.items() if (each < 0).any())
            raise InvalidCall(f"{name}: expected a row of key {lost!r}, found none")
        columns = dict(zip(batch.schema.names, batch.filter(pa.array(kept)).columns, strict=True))
        for name in others:
            if self._chosen[name]:
                taken = self._datasets[name].take(places[name][kept], columns=self._chosen[name]).combine_chunks()
                columns |= {each: _whole(taken.column(each)) for each in self._chosen[name]}
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


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

"""`StreamWriter`: each micro-batch of a streaming query is one batch of the catalog, committed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from namespace_client.http import CatalogServer
from spark_catalog.connections import connected
from spark_catalog.errors import InvalidWrite
from spark_catalog.graph_writes.graph_write import GraphWrite
from spark_catalog.streaming.epochs import ATTEMPTS, Epoch
from spark_catalog.streaming.marks import checkpoint_id, marks_table

BatchFunction = Callable[[GraphWrite, DataFrame, int], object]


class StreamWriter:
    """Writes the micro-batches of one streaming query to many tables, exactly once.

    Each micro-batch (epoch) is one `GraphWrite`. The batch that commits it also commits a mark: the number of the epoch
    under the name of the query. An epoch that is committed already is skipped, also after a restart of the query from
    its checkpoint and after any loss of driver, server or response.

    Example:
        ```python
        writer = StreamWriter("http://127.0.0.1:2333", namespace=["social"], graph=graph)

        @writer.batch
        def load(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
            tx.upsert("person", rows.select("id", "name"), on="id")
            tx.append("visits", rows.select("id", "page", "time"))

        events.writeStream.option("checkpointLocation", checkpoint).foreachBatch(load).start()
        ```

    Args:
        server: Connections to a server, or its URL. On Spark Connect a URL.
        namespace: Namespace of the tables. The mark is a table in its child namespace `_streams`.
        query: Name of the query, unique in the namespace and the same after a restart. By default the id of the
            checkpoint, which Spark Connect does not report.
        attempts: How many times an epoch is tried while other commits are in its way.
        **options: Options of every `GraphWrite`, such as `graph`, `check`, `isolation`, `message` and
            `storage_options`.

    Raises:
        InvalidWrite: A table cannot have the name of the query.
    """

    def __init__(
        self,
        server: CatalogServer | str,
        *,
        namespace: Sequence[str],
        query: str | None = None,
        attempts: int = ATTEMPTS,
        **options: Any,
    ) -> None:
        self._server = server
        self._namespace = tuple(namespace)
        self._query = query
        self._attempts = attempts
        self._options = options
        self._storage: Mapping[str, str] = dict(options.get("storage_options") or {})
        if query is not None:
            marks_table(namespace, query)

    def batch(self, function: BatchFunction) -> Callable[[DataFrame, int], None]:
        """Make the function that `foreachBatch` takes.

        Args:
            function: Gets a write, the rows of the micro-batch and the number of the epoch, and calls the write. It
                runs again after a conflict. It is not called for an epoch that is committed already. What it does
                outside of the write is not part of the batch.

        Returns:
            A function of the rows and the epoch. It returns when the epoch is committed. It raises what `GraphWrite`
            and `Epoch.commit` raise, and `InvalidWrite` if the query has no name.
        """

        def run(rows: DataFrame, epoch: int) -> None:
            checkpoint = checkpoint_id(rows.sparkSession)
            query = self._query or checkpoint
            if not query:
                raise InvalidWrite(
                    "stream writer: expected a name (query=): outside of foreachBatch, and on Spark Connect, there is "
                    "no id of a checkpoint"
                )
            table = marks_table(self._namespace, query)
            with connected(self._server) as access:
                Epoch(access, table, epoch, checkpoint, self._storage, self._attempts).commit(
                    lambda: GraphWrite(rows.sparkSession, access, namespace=self._namespace, **self._options),
                    lambda write: write.transaction,
                    lambda write: function(write, rows, epoch),
                )

        return run

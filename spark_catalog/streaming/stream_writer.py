"""`StreamWriter`: each micro-batch of a streaming query is one batch of the catalog, committed once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from namespace_client.access import CatalogAccess
from namespace_client.errors import RetryableConflict
from namespace_client.http import CatalogServer
from spark_catalog.errors import EpochTaken, GraphConflict, GraphError, InvalidWrite, WriteUnknown
from spark_catalog.streaming.marks import (
    Mark,
    checkpoint_id,
    is_committed,
    latest_mark,
    marks_table,
    read_mark,
    stage_mark,
)
from spark_catalog.write import GraphWrite
from table_data.batch_operations import DELIMITER, TableId

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0

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
            checkpoint, which Spark Connect does not tell.
        attempts: How many times an epoch is tried while other commits are in its way.
        **options: Options of every `GraphWrite`, such as `graph`, `check`, `isolation`, `message` and
            `storage_options`.
    """

    def __init__(
        self,
        server: CatalogServer | str,
        *,
        namespace: Sequence[str],
        query: str | None = None,
        attempts: int = 5,
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
            A function of the rows and the epoch. It returns when the epoch is committed, and raises what `GraphWrite`
            raises, and:

            * `EpochTaken`: another driver has committed this epoch meanwhile. Nothing of this one is visible.
            * `WriteUnknown`: the outcome is unknown after the batch was sent again. No file was deleted. A restart of
              the query finds out.
            * `InvalidWrite`: the name of the query belongs to another checkpoint, or the query has no name.
        """

        def run(rows: DataFrame, epoch: int) -> None:
            checkpoint = checkpoint_id(rows.sparkSession)
            query = self._query or checkpoint
            if not query:
                raise InvalidWrite(
                    "a streaming query outside of foreachBatch, or on Spark Connect, needs a name: query="
                )
            table = marks_table(self._namespace, query)
            with _connected(self._server) as access:
                for attempt in Retrying(
                    stop=stop_after_attempt(self._attempts),
                    wait=wait_random_exponential(multiplier=_FIRST_PAUSE, max=_LONGEST_PAUSE),
                    retry=retry_if_exception_type(RetryableConflict),
                    reraise=True,
                ):
                    with attempt:
                        mark = Mark(epoch, str(uuid.uuid4()), checkpoint)
                        self._commit(access, table, mark, function, rows)

        return run

    def _commit(
        self, access: CatalogServer, table: TableId, mark: Mark, function: BatchFunction, rows: DataFrame
    ) -> None:
        write = GraphWrite(rows.sparkSession, access, namespace=self._namespace, **self._options)
        try:
            with write:
                last = read_mark(write.transaction, table, self._storage)
                if is_committed(last, table, mark.epoch, mark.checkpoint):
                    return
                stage_mark(access, write.transaction, table, mark)
                function(write, rows, mark.epoch)
        except GraphConflict as conflict:
            require_free(access, table, mark.epoch, self._storage, conflict)
            raise
        except WriteUnknown as unknown:
            if not _became(access, table, mark, self._storage):
                _send_again(access, table, mark, self._storage, write.resend, unknown)


def require_free(
    access: CatalogAccess, table: TableId, epoch: int, storage_options: Mapping[str, str], conflict: GraphConflict
) -> None:
    """Raise `EpochTaken` if the conflict is with a commit of the same epoch by another driver."""
    found = latest_mark(access, table, storage_options)
    if found is not None and found.epoch >= epoch:
        raise EpochTaken(DELIMITER.join(table), epoch, found.epoch) from conflict


def _send_again(
    access: CatalogAccess,
    table: TableId,
    mark: Mark,
    storage_options: Mapping[str, str],
    resend: Callable[[], object],
    unknown: WriteUnknown,
) -> None:
    """Send a batch of unknown outcome once more. Raises `unknown` if the outcome stays unknown."""
    try:
        resend()
    except GraphError as error:
        if not _became(access, table, mark, storage_options):
            raise unknown from error


def _became(access: CatalogAccess, table: TableId, mark: Mark, storage_options: Mapping[str, str]) -> bool:
    """Whether the newest mark is this one. False if the catalog does not tell."""
    try:
        return latest_mark(access, table, storage_options) == mark
    except GraphError:
        return False


@contextmanager
def _connected(server: CatalogServer | str) -> Iterator[CatalogServer]:
    if isinstance(server, CatalogServer):
        yield server
    else:
        with CatalogServer(server) as connection:
            yield connection

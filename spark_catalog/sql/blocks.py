"""A transaction of several statements as a `with` block."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from namespace_client.error_codes import ErrorCode
from namespace_client.errors import (
    CatalogUnavailable,
    CatalogUnreachable,
    ClientError,
    CommitRejected,
    CommitUnknown,
    IncompatibleConflict,
    RetryableConflict,
)
from namespace_client.staged_transaction import Isolation

_KIND = re.compile(r"\[(\w+)\] (.*)", re.DOTALL)
_KEY = re.compile(r"Idempotency-Key ([^\s:]+)")
_REJECTIONS: Mapping[str, tuple[type[CommitRejected], int | None]] = {
    "RetryableConflict": (RetryableConflict, ErrorCode.CONCURRENT_MODIFICATION),
    "IncompatibleConflict": (IncompatibleConflict, ErrorCode.CONCURRENT_MODIFICATION),
    "CatalogUnavailable": (CatalogUnavailable, ErrorCode.SERVICE_UNAVAILABLE),
    "CommitRejected": (CommitRejected, None),
}


@contextmanager
def lance_transaction(
    spark: SparkSession, *, catalog: str = "lance", isolation: Isolation = "snapshot", message: str | None = None
) -> Iterator[None]:
    """Commit all statements of the block in one batch. An exception in the block rolls them back.

    If the outcome of the commit is unknown the transaction stays open: `CALL lance.system.commit()` asks again.

    Example:
        ```python
        with lance_transaction(spark):
            spark.sql("INSERT INTO lance.social.person VALUES (3, 'Edsger')")
            spark.sql("INSERT INTO lance.social.knows VALUES (3, 1)")
        ```

    Args:
        spark: Session of the statements. Other threads of it take part in the transaction.
        catalog: Name of the catalog in SQL.
        isolation: "snapshot" or "serializable".
        message: Text that is stored with the batch.

    Raises:
        RetryableConflict: Another commit is in the way, and running the block again can succeed.
        IncompatibleConflict: Another commit conflicts irreconcilably.
        CommitRejected: The catalog refused the batch for another reason. Nothing was committed.
        CatalogUnreachable: The batch was never sent.
        CommitUnknown: The outcome is unknown.
    """
    arguments = {"isolation": isolation, "message": message}
    spark.sql(f"CALL {catalog}.system.begin(isolation => :isolation, message => :message)", args=arguments)
    try:
        yield
    except BaseException:
        spark.sql(f"CALL {catalog}.system.rollback()")
        raise
    try:
        spark.sql(f"CALL {catalog}.system.commit()")
    except IllegalArgumentException as error:
        raise commit_error(error) or error from error


def commit_error(error: IllegalArgumentException) -> ClientError | None:
    """The exception of `namespace_client` for what the commit of a transaction or of a statement raised.

    None if the error has nothing to do with a commit.
    """
    parsed = _KIND.search(str(error))
    if parsed is None:
        return None
    kind, message = parsed[1], parsed[2]
    if kind in _REJECTIONS:
        rejection, code = _REJECTIONS[kind]
        return rejection(message, code=code)
    if kind == "CommitUnknown":
        key = _KEY.search(message)
        return CommitUnknown(message, batch=None, idempotency_key=key[1] if key else "")
    return CatalogUnreachable(message) if kind == "CatalogUnreachable" else None

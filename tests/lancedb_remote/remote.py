"""Lancedb's remote client on a server of ours, and the same tables in a local database of lancedb."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import lancedb
import pyarrow as pa
import pytest
from lancedb.remote import ClientConfig, RetryConfig

ROWS: Final = 300
VECTOR: Final = [1.0] * 8
_TEXTS: Final = ("puppy runs fast", "a lazy cat", "the puppy and the cat", "nothing here")
_names = count()


def rows(number: int = ROWS, start: int = 0) -> pa.Table:
    """Rows with an `id` from `start` on, a text, a number, a time, a list and a vector."""
    ids = range(start, start + number)
    vectors = [float((i * (k + 3)) % 17) + 0.01 * i for i in ids for k in range(8)]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": pa.array([_TEXTS[i % 4] for i in ids], pa.string()),
            "price": pa.array([i / 2 for i in ids], pa.float64()),
            "when": pa.array(
                [dt.datetime(2026, 1, 1) + dt.timedelta(hours=i) for i in ids],  # noqa: DTZ001
                pa.timestamp("us"),
            ),
            "tags": pa.array([["x", "y"] if i % 2 else ["z"] for i in ids], pa.list_(pa.string())),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors, pa.float32()), 8),
        }
    )


def connect(url: str, name: str = "db://shop", *, retries: int = 0, key: str = "any-key", **options: Any) -> Any:
    """A connection of the remote client, which repeats no request unless it is told to."""
    config = ClientConfig(retry_config=RetryConfig(retries=retries, backoff_factor=0.0, backoff_jitter=0.0))
    return lancedb.connect(name, api_key=key, host_override=url, client_config=config, **options)


def listed(db: Any, **given: Any) -> list[str]:
    """The names of tables, by the call that pages by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return list(db.table_names(**given))


def new_name() -> str:
    """A name that nothing has yet."""
    return f"t{next(_names)}"


class Shop:
    """The database `shop` of a server, and a local one beside it."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self.db = connect(url)
        self.local = lancedb.connect(directory)

    def table(self, data: Any = None) -> Any:
        """A new table with these rows, or with those of `rows()`."""
        return self.db.create_table(new_name(), rows() if data is None else data)

    def pair(self, data: Any = None) -> tuple[Any, Any]:
        """The same table in both."""
        found = rows() if data is None else data
        name = new_name()
        return self.db.create_table(name, found), self.local.create_table(name, found)

    def same(self, ask: Callable[[Any], pa.Table], *, data: Any = None, ordered: bool = True) -> None:
        """Both give the same rows with the same columns."""
        remote, local = map(ask, self.pair(data))
        assert remote.column_names == local.column_names
        found, expected = remote.to_pylist(), local.to_pylist()
        assert expected
        assert found == expected if ordered else sorted(found, key=repr) == sorted(expected, key=repr)


def told(error: BaseException | None) -> str:
    """The texts of an error and of what caused it: a client puts the answer of the server there."""
    texts = []
    while error is not None:
        texts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    return " <- ".join(texts)


@contextmanager
def refused(*words: str, table: Any = None) -> Iterator[None]:
    """The block raises an error with these words, which does not say that the table is missing."""
    with pytest.raises(Exception) as raised:  # noqa: PT011  (clients have many classes)
        yield
    text = told(raised.value)
    assert all(word in text for word in words), text
    assert "RetryError" not in text
    if table is not None:
        assert f"'{table.name}' was not found" not in text

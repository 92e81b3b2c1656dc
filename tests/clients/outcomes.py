"""What calls of a client come to, as values that two clients can be compared by."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import BaseModel

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
VARYING = frozenset(
    {
        *("timestamp", "timestamp_millis", "created_at", "createAt", "create_at", "transaction_id", "e_tag", "eTag"),
        *("location", "table_uri", "manifest_path", "manifest_size", "manifestSize", "uri", "metadata"),
        *("index_uuid", "uuid", "identifier", "context"),
    }
)
"""Fields whose values are times, places, sizes of files with places in them, random identifiers, headers of answers."""
_PLAIN = (type(None), bool, int, float, str, bytes)


@dataclasses.dataclass(frozen=True)
class Raised:
    """An exception of this type."""

    kind: str
    text: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True)
class Differs:
    """A step whose outcome is `ours` here, and another one where it is compared with, for a `reason`."""

    step: Callable[[Any], Any]
    ours: Any
    reason: str


Step = Callable[[Any], Any] | Differs


def differences(steps: Iterable[Step], ours: Any, theirs: Any) -> list[str]:
    """The steps whose outcomes are not as they should be, done on one subject and then on the other."""
    found = []
    for number, step in enumerate(steps):
        call = step.step if isinstance(step, Differs) else step
        here, there = outcome(partial(call, ours)), outcome(partial(call, theirs))
        if isinstance(step, Differs):
            if here != step.ours:
                found.append(f"step {number}: expected {step.ours}, found {here}")
            if here == there:
                found.append(f"step {number}: differs no more")
        elif here != there:
            found.append(f"step {number}: expected {there}, found {here}")
    return found


def outcome(call: Callable[[], Any]) -> Any:
    """What a call comes to: its plain value, or the type of its exception."""
    try:
        return plain(call())
    except Exception as error:  # noqa: BLE001 - any of them is an outcome
        return Raised(type(error).__name__, str(error)[:300])


def plain(value: Any) -> Any:
    """A value of a client without its varying parts, made of types that compare by content."""
    value = inner(value)
    if isinstance(value, str):
        return UUID.sub("(uuid)", value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, datetime | timedelta | Path):
        return type(value).__name__
    if (table := _rows(value)) is not None:
        return {"schema": str(table.schema.remove_metadata()), "rows": plain(table.to_pylist())}
    if isinstance(value, pa.Schema | pa.DataType | pa.Field):
        return str(value)
    if isinstance(value, pa.Array | pa.ChunkedArray | np.ndarray):
        return plain(value.tolist() if isinstance(value, np.ndarray) else value.to_pylist())
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items() if name not in VARYING and item is not None}
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return type(value).__name__, plain(fields)
    if isinstance(value, Iterable) and not hasattr(value, "version"):
        return [plain(item) for item in value]
    return type(value).__name__, plain(_members(value))


def _rows(value: Any) -> pa.Table | None:
    if isinstance(value, pa.Table):
        return value
    if isinstance(value, pa.RecordBatch):
        return pa.Table.from_batches([value])
    if isinstance(value, pa.RecordBatchReader):
        return value.read_all()
    if isinstance(value, pd.DataFrame):
        return pa.Table.from_pandas(value, preserve_index=False)
    return value.to_table() if isinstance(value, lance.LanceDataset) else None


def _members(value: Any) -> dict[str, Any]:
    """The public values of an object of native code."""
    found = {}
    for name in dir(value):
        if name.startswith("_") or name in VARYING:
            continue
        member = getattr(value, name)
        if not callable(member) and isinstance(member, (*_PLAIN, list, dict, tuple)):
            found[name] = member
    return found


class Blocking:
    """An object of an asynchronous client whose calls wait for their results."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._wrapped(found) if not callable(found) else lambda *given, **named: self._call(found, given, named)

    def _call(self, method: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        value = method(*map(inner, given), **{name: inner(item) for name, item in named.items()})
        if inspect.isawaitable(value):
            value = self._loop.run_until_complete(_awaited(value))
        return self._wrapped(value)

    def _wrapped(self, value: Any) -> Any:
        is_client = type(value).__module__.startswith("lancedb.") and type(value).__module__ != "lancedb._lancedb"
        return Blocking(value, self._loop) if is_client and not isinstance(value, Exception) else value


def inner(value: Any) -> Any:
    """The object that a `Blocking` stands for; any other value itself."""
    return value._inner if isinstance(value, Blocking) else value


async def _awaited(value: Any) -> Any:
    return await value

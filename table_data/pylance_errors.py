"""Errors of pylance as errors of the call, without places in its source, paths or traces."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lance_core.errors import CorruptFile, LanceCoreError, NotFound, StorageError, system_reason
from table_data.errors import (
    ClientError,
    ColumnNotFound,
    InvalidCall,
    OutOfMemory,
    SchemaMismatch,
    StorageFailed,
    VersionGone,
    WorkFailed,
    WrittenAround,
)

_SOURCE = re.compile(r",?\s*(?:location: )?/[\w./+-]*\.rs:\d+:\d+")
_TRACE = re.compile(r"\. Detail: Python exception: .*", re.DOTALL)
_PLACE = re.compile(r"[^\s'\"`(]*/[^\s'\"`]*/[^\s'\"`]*")
"""Also paths without a slash at the begin, as object stores have them."""
_VALUES = re.compile(r"Divide by zero|Cast error|Overflow happened|Arithmetic overflow|non-null|Invalid user input")
"""What is wrong with values or expressions, whatever exception it comes as."""
_LOST = re.compile(r"Not found: \S*/\S+\.\w+|[Vv]ersion not found|Not a directory \(os error 20\)")
"""A file that is gone, in the course of whatever."""
_DAMAGED = re.compile(
    r"failed to fill whole buffer|Encountered corrupt file|Invalid range \S+ for object of size|outside file of size|"
    r"does not appear to be a [Ll]ance file|[Gg]lobal buffer|metadata region|failed to decode Protobuf|sliced Buffer|"
    r"file size is too small|does not have sufficient data"
)
"""A file that is shorter than it was, or holds something else."""
_FAULT = re.compile(r"task \d+ panicked|reader producer terminated")
"""A fault of pylance itself, which comes as an error of Arrow."""
_FILE = re.compile(r"(?:^|[/\s])((?:data|_deletions|_indices|_versions)/[\w./-]+)")
_SYSTEM = re.compile(r"\(os error (\d+)\)")
_REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG})
_MEMORY = re.compile(r"memory allocat|malloc of size|realloc of size|Out of memory|Resources exhausted")
_SHOWN = 600
_READ = 4000
"""Characters of an error that are looked at: it may repeat a whole request."""

_PREFIXES = (
    "C Data interface error: ",
    "Invalid: ",
    "LanceError(Arrow): ",
    "LanceError(Index): ",
    "Invalid user input: ",
    "Not supported: ",
    "Schema error: ",
    "External error: ",
    "Query Execution error: ",
    "Arrow error: ",
)

_COLUMN = tuple(
    re.compile(pattern)
    for pattern in (
        "No field named",
        "Field '.*' not found",
        "Column .* does not exist",
        "not found in schema",
        "field path .* does not exist",
        "^Embedding column .* is not in the dataset",
    )
)
_WRONG_CALL = (
    *("Invalid user input: ", "Not supported: ", "Query Execution error: ", "Invalid argument error: "),
    "LanceError(Arrow): ",
)
"""An expression that a row breaks (a division by zero, a cast) fails the execution of the query."""


@contextmanager
def explained(what: str, find_damage: Callable[[], str | None] | None = None) -> Iterator[None]:
    """Raise errors of pylance and of the engine in the block as `ClientError`; `what` begins their text.

    `find_damage` looks, after an error, for what is wrong with the files of the version: None if the version itself is
    gone, so that files of it may be gone too; empty if nothing is found.

    Raises:
        InvalidCall: the call is wrong: an expression, a column, rows that do not fit.
        VersionGone: a file of the version was removed meanwhile.
        OutOfMemory: it needs more memory than there is.
        WrittenAround: a table that has no version in the catalog has one on storage.
        StorageFailed: the operating system did not take or give bytes, and said why.
        WorkFailed: anything else, damaged files of the table among it.
    """
    try:
        yield
    except ClientError:
        raise
    except NotFound as error:
        raise VersionGone(f"{what}: {plain_text(error)}") from error
    except StorageError as error:
        reason = system_reason(error)
        if reason is not None:
            raise storage_failed(what, reason) from error
        raise WorkFailed(f"{what}: {plain_text(error)}") from error
    except CorruptFile as error:
        text = (
            plain_text(error) if error.key is None else f"the file {error.key} of the table is damaged: {error.reason}"
        )
        raise WorkFailed(f"{what}: {text}") from error
    except LanceCoreError as error:
        raise InvalidCall(f"{what}: {plain_text(error)}") from error
    except Exception as error:
        found = _explanation(error, what, find_damage)
        if isinstance(found, InvalidCall) and not isinstance(found, VersionGone):
            raise found from None  # what is wrong is in the call: frames of pylance would only hide it
        raise found from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise WorkFailed(f"{what}: pylance met a case that it cannot do; nothing was changed") from error


def _explanation(error: Exception, what: str, find_damage: Callable[[], str | None] | None) -> ClientError:
    text = str(error)[:_READ]
    if isinstance(error, MemoryError) or _MEMORY.search(text):
        return OutOfMemory(
            f"{what}: expected to need less memory than a worker may take (worker_memory_bytes), found more"
        )
    reason = _refusal(error)
    if reason is not None:
        return storage_failed(what, reason)
    kind = _kind(error)
    damage = find_damage() if kind in {VersionGone, WorkFailed} and find_damage is not None else None
    named = _file_in(text) or _file_in(damage or "") or "a file of the table"
    if kind is VersionGone and damage is not None:
        return WorkFailed(f"{what}: {named} is missing, which the version has")
    if damage or (kind is WorkFailed and _DAMAGED.search(text)):
        return WorkFailed(f"{what}: {named} is damaged ({_plain(damage) if damage else plain_text(error)})")
    return kind(f"{what}: {plain_text(error)}")


def storage_failed(what: str, reason: str) -> StorageFailed:
    """The error of work that storage failed, in the words that batches use too."""
    return StorageFailed(f"{what}: nothing was done: storage cannot be used: {reason}")


def _refusal(error: Exception) -> str | None:
    """What the operating system said, where that has nothing to do with the call. Pylance gives it as text."""
    if isinstance(error, OSError) and error.errno in _REFUSALS:
        return error.strerror
    found = _SYSTEM.search(str(error)[:_READ])
    return os.strerror(int(found[1])) if found is not None and int(found[1]) in _REFUSALS else None


def plain_text(error: BaseException) -> str:
    """The text of an error, without paths of this machine and places in sources."""
    return _plain(str(error)) or type(error).__name__


def _plain(text: str) -> str:
    text = _TRACE.sub("", text[:_READ])
    text = _SOURCE.sub("", text)
    text = _PLACE.sub("(path)", text).strip(" ,")
    shortened = True
    while shortened:
        shortened = False
        for prefix in _PREFIXES:
            if text.startswith(prefix):
                text, shortened = text.removeprefix(prefix), True
    return text[:_SHOWN]


def _file_in(text: str) -> str | None:
    """The file of the table that an error names, by its path in the table."""
    found = _FILE.search(text)
    return None if found is None else f"file {found[1].rstrip('.')} of the table"


def _kind(error: Exception) -> type[ClientError]:
    text = str(error)[:_READ].removeprefix("External error: ")
    if any(found.search(text) for found in _COLUMN):
        return ColumnNotFound
    if "different schema" in text or "contained null values" in text or "schema mismatch" in text.lower():
        return SchemaMismatch
    if _LOST.search(text):
        return VersionGone
    if _DAMAGED.search(text) or _FAULT.search(text):
        return WorkFailed
    if text.startswith("Dataset already exists"):  # only a table that the catalog knows no version of is created
        return WrittenAround
    if text.startswith(_WRONG_CALL):
        return InvalidCall
    if "Not found" in text or "NotFound" in text or "No such file" in text:
        return VersionGone
    if _VALUES.search(text):
        return InvalidCall
    if isinstance(error, (ValueError, TypeError, KeyError, OverflowError, NotImplementedError)):
        return InvalidCall
    return WorkFailed

"""The outcome that an error states of its request: nothing was done, or it is unknown (rule A3).

Programs read this, and never the text of an error. An exception carries it as its attribute `outcome`. Without one:

* an error with a code other than 17 and 18 is a refusal: nothing was done;
* a request that only reads does nothing;
* any other error of a change leaves its outcome unknown. So an error that was not foreseen never claims more than is
  known, and each place that raises before the commit step says so: by `with_nothing_done` or `before_commit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeVar

from lance_namespace.errors import ErrorCode, LanceNamespaceError

Outcome = Literal["nothing_done", "unknown"]
NOTHING_DONE: Final = "nothing_done"
UNKNOWN: Final = "unknown"

_FAILURES: Final = frozenset({ErrorCode.SERVICE_UNAVAILABLE, ErrorCode.INTERNAL})

E = TypeVar("E", bound=Exception)


def with_nothing_done(error: E) -> E:
    """The same error, which says from now on that nothing was done by the request, and nothing will be."""
    error.outcome = NOTHING_DONE  # type: ignore[attr-defined]
    return error


@contextmanager
def before_commit() -> Iterator[None]:
    """The steps of a change before its first write: an exception in the block says that nothing was done."""
    try:
        yield
    except Exception as error:
        with_nothing_done(error)
        raise


def outcome_of(error: Exception, *, changes: bool = True) -> Outcome:
    """The outcome that an error states of its request. `changes`: whether the request may have changed anything."""
    if not changes:
        return NOTHING_DONE
    said = getattr(error, "outcome", None)
    if said is not None:
        return NOTHING_DONE if said == NOTHING_DONE else UNKNOWN
    is_refusal = isinstance(error, LanceNamespaceError) and int(error.code) not in _FAILURES
    return NOTHING_DONE if is_refusal else UNKNOWN

"""What a check is, and lists of checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from namespace_tck.operations import BY_NAME

Run = Callable[[Any], None]
"""What proves a promise in the surroundings of one check, which are those of its dialect."""

PagedRun = Callable[[int, Any], None]
"""As `Run`, with the size of a page before the surroundings."""


class Promise(StrEnum):
    """The kind of promise that a check proves."""

    AVAILABILITY = "availability"
    OBJECTS = "objects"
    MODES = "modes"
    PROPERTIES = "properties"
    PAGING = "paging"
    ERRORS = "errors"
    ATOMICITY = "atomicity"
    CONCURRENCY = "concurrency"
    RETRIES = "retries"
    VERSIONS = "versions"
    BRANCHES = "branches"
    TAGS = "tags"
    CREDENTIALS = "credentials"
    ROWS = "rows"
    QUERIES = "queries"
    INDICES = "indices"
    COLUMNS = "columns"
    TRANSACTIONS = "transactions"
    STORAGE = "storage"
    HOSTILE = "hostile input"
    EXTENSIONS = "extensions"


@dataclass(frozen=True, slots=True)
class Check:
    """One promise of the specification, and the function that proves it.

    `statement` is one sentence. `source` is the part of the published document that promises it: an operation
    (`CreateNamespace`), or a model or its field (`CreateNamespaceRequest.mode`). `run` returns, or raises `CheckFailed`
    or `CheckSkipped`.
    """

    operation: str
    name: str
    promise: Promise
    source: str
    statement: str
    run: Run

    @property
    def id(self) -> str:
        """Unique among all checks: `create_namespace.exist_ok_keeps_it`."""
        return f"{self.operation}.{self.name}"

    def matches(self, pattern: str) -> bool:
        """Whether a pattern with `*` and `?` is the id, the operation or the promise of the check."""
        return any(fnmatchcase(text, pattern) for text in (self.id, self.operation, self.promise.value))


class CheckList:
    """The checks of a module, in order."""

    def __init__(self) -> None:
        self._checks: list[Check] = []

    def __iter__(self) -> Iterator[Check]:
        return iter(self._checks)

    def __call__(self, operation: str, promise: Promise, source: str) -> Callable[[Run], Run]:
        """Make the decorated function a check. Its name is the name, its docstring the statement."""

        def register(run: Run) -> Run:
            statement = " ".join((run.__doc__ or "").split())
            self.define(operation, run.__name__, promise, source, statement, run)
            return run

        return register

    def define(self, operation: str, name: str, promise: Promise, source: str, statement: str, run: Run) -> None:
        """Add a check. Raises `ValueError` for an unknown operation and a statement that is no sentence."""
        if operation not in BY_NAME and operation not in ("server", "catalog"):
            raise ValueError(f"{operation}.{name}: expected a published operation")
        if not statement.endswith("."):
            raise ValueError(f"{operation}.{name}: expected a sentence as its docstring, found {statement!r}")
        self._checks.append(Check(operation, name, promise, source, statement, run))

    def define_pages(self, operation: str, item: str, sizes: Iterable[int], statement: str, run: PagedRun) -> None:
        """Add a check for each size of a page, which stands for `{}` in the statement and is given to `run`."""
        source = f"{BY_NAME[operation].success.replace('Response', 'Request')}.page_token"
        for size in sizes:
            name = f"pages_of_{size}_hold_every_{item}_once"
            self.define(operation, name, Promise.PAGING, source, statement.format(size), partial(run, size))


def select(checks: Iterable[Check], patterns: Iterable[str]) -> list[Check]:
    """The checks that match any of the patterns; all without a pattern.

    Raises `ValueError` for a pattern that matches nothing.
    """
    every = list(checks)
    wanted = list(patterns)
    if not wanted:
        return every
    for pattern in wanted:
        if not any(check.matches(pattern) for check in every):
            raise ValueError(f"--only {pattern}: expected the id, operation or promise of a check")
    return [check for check in every if any(check.matches(pattern) for pattern in wanted)]

"""Lines of the table: what a client of lancedb asks for, and what a server must answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from namespace_tck.lancedb.matching import ANY
from namespace_tck.registry import Check, Promise

T: Final = "/v1/table/{t}/"
"""Routes of a new table with the rows of `data.small`, which the line alone has."""
R: Final = "/v1/table/{r}/"
"""Routes of a table with the rows of `data.small`, and an index of its text, which lines that only read share."""
BIG: Final = "/v1/table/{big}/"
"""Routes of a new table with the rows of `data.big`, enough to train any index."""
N: Final = "/v1/table/{n}/"
"""Routes of a name that nothing has yet. `{n}` and `{m}` are new names of a line."""
DATABASE: Final = "x-lancedb-database"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, and what must be answered.

    Names in braces, in the path and in all texts of a JSON body, are replaced: those of `T`, `R`, `BIG` and `N`, `db`
    (the database), and what an earlier answer of the line had (`Keep`).

    Attributes:
        body: None for no body, bytes, a `pyarrow.Table` that is sent as a stream, or a JSON value.
        headers: Beside those that all clients send; None leaves such a one out.
        statuses: Those that are right.
        answer: The body of the answer, as `matching.difference` has it.
        answered: Headers of the answer.
        refusal: What a server that does not serve the request calls it: an answer of 400, 406 or 501 with this text
            means that the line is skipped.
    """

    method: str
    path: str
    body: object = None
    headers: Mapping[str, str | None] = field(default_factory=dict)
    statuses: tuple[int, ...] = (200,)
    answer: Any = ANY
    answered: Mapping[str, Any] = field(default_factory=dict)
    refusal: str | None = None


def post(path: str, body: object = None, answer: Any = ANY, **given: Any) -> Asked:
    """A POST that succeeds."""
    return Asked("POST", path, body, answer=answer, **given)


def get(path: str, answer: Any = ANY, **given: Any) -> Asked:
    """A GET that succeeds."""
    return Asked("GET", path, answer=answer, **given)


REFUSED: Final = (400, 403, 406, 412, 413, 415, 422, 501)
"""Statuses that the client raises at once, and that say nothing about the table."""


def refused(
    path: str, body: object = None, says: Any = ANY, *, statuses: tuple[int, ...] = REFUSED, **given: Any
) -> Asked:
    """A POST that is refused, with a text in the body of the answer."""
    return Asked("POST", path, body, statuses=statuses, answer=says, **given)


def missing(path: str, body: object = None, **given: Any) -> Asked:
    """A POST about something that is missing, which 404 says."""
    return Asked("POST", path, body, statuses=(404,), **given)


@dataclass(frozen=True, slots=True)
class LancedbLine:
    """One line: a sentence, the requests that show it, and the protocol version that a server must announce for it."""

    call: str
    statement: str
    asked: tuple[Asked, ...]
    since: str

    @property
    def name(self) -> str:
        """The call and the statement as a name: `count_rows.the_number_of_rows_is_a_json_number`."""
        slug = re.sub(r"[^a-z0-9]+", "_", self.statement.lower()).strip("_")
        return f"{self.call.rpartition('.')[2]}.{slug}"


class LineList:
    """The lines of one group, in order."""

    def __init__(self, group: str, promise: Promise, since: str = "0.1.0") -> None:
        self.group = group
        self._promise = promise
        self._since = since
        self._lines: list[LancedbLine] = []

    def __iter__(self) -> Iterator[LancedbLine]:
        return iter(self._lines)

    def __call__(self, call: str, statement: str, *asked: Asked, since: str | None = None) -> None:
        """Add a line about a call of the client. Raises `ValueError` for a statement that is no sentence."""
        if not statement.endswith(".") or not asked:
            raise ValueError(f"{call}: expected a sentence and requests, found {statement!r}")
        self._lines.append(LancedbLine(call, statement, asked, since or self._since))

    def about(self, call: str, since: str | None = None) -> Callable[..., None]:
        """The function that adds lines about one call of the client: as `__call__` without its first argument."""
        return partial(self, call, since=since)

    def checks(self, run: Callable[[LancedbLine], Callable[[Any], None]]) -> Iterator[Check]:
        """The lines as checks of the kit."""
        for line in self._lines:
            yield Check(self.group, line.name, self._promise, line.call, line.statement, run(line))

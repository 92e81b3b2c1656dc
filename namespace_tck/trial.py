"""What one check works with: a namespace of its own, tables, clients, and what it expects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from namespace_tck.client import Client
from namespace_tck.exchanges import CheckFailed, CheckSkipped, RecordedExchange, ServerAnswer
from namespace_tck.rows import decode, rows
from namespace_tck.session import Session
from namespace_tck.storage import StockClient

T = TypeVar("T")


class Trial:
    """The surroundings of one run of one check."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._space: list[str] | None = None

    @property
    def client(self) -> Client:
        """The client of the server under test."""
        return self.session.client

    @property
    def stock(self) -> StockClient:
        """The stock client of the server under test."""
        return self.session.stock

    @property
    def space(self) -> list[str]:
        """A namespace of this check alone, made on first use."""
        if self._space is None:
            self._space = self.session.new_space()
        return self._space

    def close(self) -> None:
        """Remove everything that the check made."""
        if self._space is not None:
            self.session.remove(self._space)

    def id(self, *names: str) -> list[str]:
        """The path of an object below the namespace of the check."""
        return [*self.space, *names]

    def call(self, operation: str, of: Sequence[str] | None = None, body: object = None, **query: Any) -> ServerAnswer:
        """Call an operation: see `Client.call`."""
        return self.client.call(operation, of, body, **query)

    def namespace(self, name: str = "n", **request: object) -> list[str]:
        """Make a namespace."""
        made = self.id(name)
        self.call("create_namespace", made, request).ok()
        return made

    def declared(self, name: str = "t", **request: object) -> list[str]:
        """Declare a table."""
        made = self.id(name)
        self.call("declare_table", made, request).ok()
        return made

    def table(self, name: str = "t", data: Any = None, *, versions: int = 1) -> list[str]:
        """Make a table with rows 1 to 3, or `data`. Each version after the first appends one row: 101, 102, ...

        The rows go through the server, or through a stock client where the server takes none.
        """
        made = self.id(name)
        first = rows([1, 2, 3]) if data is None else data
        if not {"create_table", "insert_into_table"} & set(self.session.absent):
            self.call("create_table", made, first).ok()
            for number in range(1, versions):
                self.call("insert_into_table", made, rows([100 + number])).ok()
        else:
            self.stock.create(made, first)
            for number in range(1, versions):
                self.stock.append(made, rows([100 + number]))
        return made

    def read(self, table: Sequence[str], **query: object) -> Any:
        """The rows of a table, through the server or a stock client."""
        if "query_table" not in self.session.absent:
            request = {"k": 10_000, "vector": {}, **query}
            return decode(self.call("query_table", table, request).ok())
        return self.stock.open(table).to_table()

    def ids(self, table: Sequence[str], **query: object) -> list[int]:
        """The values of the column `id`, sorted."""
        found: list[int] = self.read(table, **query)["id"].to_pylist()
        return sorted(found)

    def versions(self, table: Sequence[str], **query: object) -> list[int]:
        """The numbers of the versions of a table, ascending."""
        listed = self.call("list_table_versions", table, **query).ok()["versions"]
        return sorted(version["version"] for version in listed)

    def head(self, table: Sequence[str], **query: object) -> int:
        """The number of the newest version of a table."""
        return self.versions(table, **query)[-1]

    def names(self, operation: str, of: Sequence[str], key: str, **query: object) -> list[str]:
        """The names that a list operation answers in one page, sorted."""
        return sorted(self.call(operation, of, **query).ok()[key])

    def pages(self, operation: str, of: Sequence[str], key: str, **query: object) -> list[list[Any]]:
        """Every page of a list operation, or those from a `page_token` on. Raises `CheckFailed` if they do not end."""
        pages: list[list[Any]] = []
        token = query.pop("page_token", None)
        for _ in range(200):
            page = self.call(operation, of, page_token=token, **query).ok()
            pages.append(list(page[key]))
            token = page.get("page_token")
            if not token:
                return pages
        raise self.failure("the pages do not end: 200 were answered")

    def listed(
        self, operation: str, of: Sequence[str], key: str, *, after: Mapping[str, Any] | None = None, **query: object
    ) -> list[Any]:
        """The entries of all pages, or of those that follow the page `after`. Raises `CheckFailed` as `pages`."""
        token = None if after is None else after.get("page_token")
        if after is not None and not token:
            return []
        return [entry for page in self.pages(operation, of, key, page_token=token, **query) for entry in page]

    def together(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """The results of jobs that begin at the same time, each in a thread of its own."""
        barrier = threading.Barrier(len(jobs))

        def begin(job: Callable[[], T]) -> T:
            barrier.wait(60)
            return job()

        with ThreadPoolExecutor(len(jobs)) as pool:
            return list(pool.map(begin, jobs))

    def one_of(self, answers: Sequence[ServerAnswer], *codes: int) -> ServerAnswer:
        """The one success among answers of which all others are refused with one of `codes`."""
        won = [answer for answer in answers if answer.is_success]
        for answer in answers:
            if not answer.is_success:
                answer.refused(*codes)
        if len(won) != 1:
            raise CheckFailed(f"expected one success among {len(answers)}, found {len(won)}", answers[0].exchange)
        return won[0]

    def expect(self, condition: bool, message: str, answer: ServerAnswer | None = None) -> None:
        """Raise `CheckFailed` with the message unless the condition holds."""
        if not condition:
            raise self.failure(message, answer)

    def equal(self, found: object, expected: object, what: str) -> None:
        """Raise `CheckFailed` unless both are equal; the message names what was compared."""
        if found != expected:
            raise self.failure(f"{what}: expected {expected!r}, found {_short(found)}")

    def failure(self, message: str, answer: ServerAnswer | None = None) -> CheckFailed:
        """The failure of this check; the exchange is that of the answer, or the last one."""
        shown: RecordedExchange | None = answer.exchange if answer is not None else self.client.last
        return CheckFailed(message, shown)

    def need(self, condition: bool, reason: str) -> None:
        """Raise `CheckSkipped` with the reason unless the condition holds."""
        if not condition:
            raise CheckSkipped(reason)

    def need_namespace_properties(self) -> None:
        """Skip the check where namespaces have no properties."""
        self.need(self.session.has_namespace_properties, "namespaces have no properties here")

    def need_table_properties(self) -> None:
        """Skip the check where tables have no properties."""
        self.need(self.session.has_table_properties, "tables have no properties here")

    def holds(self, found: Mapping[str, str] | None, expected: Mapping[str, str], what: str) -> None:
        """Raise `CheckFailed` unless `found` has all the entries of `expected`; a server may add its own."""
        missing = {key: value for key, value in expected.items() if (found or {}).get(key) != value}
        if missing:
            raise self.failure(f"{what}: expected {dict(expected)!r}, found {_short(found)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."

"""Clients that meet with a planted defect in every round, whatever the order in which the server takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tests.histories.clients import Answered, HttpClient, OwnClient, SerializableClient
from tests.histories.history import TABLES, Effect, Event
from tests.histories.workload import SEEDS


class WideClient(OwnClient):
    """Inserts a row into each table."""

    compacting = 0.0
    appending = 1.0

    def choose(self, name: str) -> Sequence[Effect]:
        return [Effect(table, "insert", name) for table in TABLES]


class DeletingClient(OwnClient):
    """Deletes the row `key` of each table, one in each step. All such rows are in one fragment."""

    compacting = 0.0
    key: ClassVar[str]

    def choose(self, name: str) -> Sequence[Effect]:
        return [Effect(TABLES[self._number - 1], "delete", self.key)]


class FirstRowDeleter(DeletingClient):
    key = SEEDS[0]


class SecondRowDeleter(DeletingClient):
    key = SEEDS[1]


class CrossingClient(SerializableClient):
    """Reads two tables and inserts into one of them; the other one is `read`."""

    appending = 1.0
    read: ClassVar[str]

    def choose(self, name: str) -> Sequence[Effect]:
        return [Effect(table, "insert", name) for table in TABLES[:2] if table != self.read]

    def choose_reads(self, event: Event) -> set[str]:
        return {*event.tables, self.read}


class FirstTableReader(CrossingClient):
    read = TABLES[0]


class SecondTableReader(CrossingClient):
    read = TABLES[1]


class BatchingClient(HttpClient):
    """Inserts rows into two tables by batches."""

    kinds = ("batch",)


class RepeatingClient(HttpClient):
    """Inserts a row into a table, and repeats its first request in every step."""

    kinds = ("insert",)

    def choose_answered(self, answered: Sequence[Answered]) -> Sequence[Answered]:
        return answered[:1]

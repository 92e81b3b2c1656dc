"""Generates the transactions of a history from its seed."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable

from tests.histories.history import TABLES, Action, Effect, Event, Row

COUNTERS = tuple(f"counter{number}" for number in range(5))
SEEDS = tuple(f"seed{number:02}" for number in range(40))
FIRST_ROWS: list[Row] = [(key, "first", 0) for key in (*COUNTERS, *SEEDS)]
"""The rows that each table begins with, all in one fragment."""


class Workload:
    """What clients are to do. Each key is handed out for deletion once. Thread-safe."""

    def __init__(self) -> None:
        self._deletable = {table: list(SEEDS) for table in TABLES}
        self._lock = threading.Lock()

    def effects(
        self, name: str, chance: random.Random, tables: Iterable[str], actions: Iterable[Action]
    ) -> list[Effect]:
        """The effects of a transaction: some of `actions` on each of `tables`."""
        chosen: list[Effect] = []
        for table in tables:
            few = [action for action in actions if chance.random() < 0.6] or [chance.choice(list(actions))]
            keys = ((action, self._key(f"{name}{table}", chance, table, action)) for action in few)
            chosen += [Effect(table, action, key) for action, key in keys if key is not None]
        return chosen

    def _key(self, new: str, chance: random.Random, table: str, action: Action) -> str | None:
        if action == "insert":
            return new
        if action == "increment":
            return chance.choice(COUNTERS)
        with self._lock:
            left = self._deletable[table]
            return left.pop(chance.randrange(len(left))) if left else None

    def note(self, event: Event) -> None:
        """What was inserted and acknowledged may be deleted later."""
        if event.outcome == "committed" and not event.by_path:
            with self._lock:
                for effect in event.effects:
                    if effect.action == "insert":
                        self._deletable[effect.table].append(effect.key)

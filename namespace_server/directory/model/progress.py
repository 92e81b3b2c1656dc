"""How far long work is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told now and then by long work on a catalog. Returns at once, and raises nothing."""

    def __call__(self, phase: str, done: int = 0, of: int = 0, unit: str = "tables") -> None:
        """`phase` is under way, and has dealt with `done` of so many; 0 of 0 where there is nothing to count."""
        ...


def untold(phase: str, done: int = 0, of: int = 0, unit: str = "tables") -> None:
    """A `Progress` that does nothing."""

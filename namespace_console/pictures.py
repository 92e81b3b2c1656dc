"""Pictures that are made on the server: vectors as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

WIDTH: Final = 120
HEIGHT: Final = 24
_EDGE: Final = 2


def line(points: Sequence[float]) -> str:
    """The path of a line through values, from the left to the right of a picture of `WIDTH` by `HEIGHT`."""
    if not points:
        return ""
    least, most = min(points), max(points)
    spread = (most - least) or 1.0
    step = (WIDTH - 2 * _EDGE) / max(len(points) - 1, 1)
    places = (
        (_EDGE + at * step, HEIGHT - _EDGE - (value - least) / spread * (HEIGHT - 2 * _EDGE))
        for at, value in enumerate(points)
    )
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)

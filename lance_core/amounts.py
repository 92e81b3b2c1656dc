"""Amounts as people read them."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_STEP: Final = 1000


def size(count: int | None) -> str:
    """A number of bytes as people read it; `unknown size` if it is None."""
    if count is None:
        return "unknown size"
    amount, unit = float(count), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return counted(count, "byte") if not unit else f"{amount:.1f} {_UNITS[unit]}"


def counted(count: int | None, thing: str, things: str = "") -> str:
    """A number of things: `1 row`, `2,000 rows`, `unknown rows`. `things` is the plural, with an s by default."""
    many = things or f"{thing}s"
    return f"unknown {many}" if count is None else f"{count:,} {thing if count == 1 else many}"

"""A chart of lines as an SVG file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_WIDTH: Final = 460
_HEIGHT: Final = 220
_LEFT: Final = 64
_TOP: Final = 34
_COLOURS: Final = ("#1565c0", "#e65100", "#2e7d32")


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: named lines of points over a common horizontal axis. `unit` is that of the values."""

    title: str
    unit: str
    lines: dict[str, Sequence[tuple[float, float]]]


def write_chart(path: Path, label: str, axis: str, panels: Sequence[Panel]) -> None:
    """Write the panels, two in a row, with `axis` as the name of the horizontal one, and `label` for screen readers."""
    rows = -(-len(panels) // 2)
    width, height = 2 * (_WIDTH + 20), rows * (_HEIGHT + 84)
    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="12" role="img" '
        f'font-family="system-ui, sans-serif" aria-label="{label}">'
    )
    parts = [
        begin,
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        x, y = (number % 2) * (_WIDTH + 20), number // 2 * (_HEIGHT + 84)
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel, axis), "</g>"]
    path.write_text("\n".join([*parts, "</svg>", ""]))


def _panel(panel: Panel, axis: str) -> list[str]:
    points = [point for line in panel.lines.values() for point in line]
    right = max(x for x, _ in points)
    top = _round_up(max(y for _, y in points))
    inner = _WIDTH - _LEFT - 10

    def place(x: float, y: float) -> tuple[float, float]:
        return _LEFT + x / right * inner, _TOP + _HEIGHT * (1 - y / top)

    parts = [f'<text x="{_LEFT}" y="18" font-weight="600" fill="#263238">{panel.title}</text>']
    for step in range(5):
        value = top * step / 4
        _, y = place(0, value)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_LEFT + inner}" stroke="#cfd8dc" fill="none"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#455a64">{value:,g}</text>')
        x, _ = place(right * step / 4, 0)
        bottom = _TOP + _HEIGHT + 16
        parts.append(f'<text x="{x:.1f}" y="{bottom}" text-anchor="middle" fill="#455a64">{right * step / 4:,g}</text>')
    parts.append(f'<text x="{_LEFT}" y="{_TOP + _HEIGHT + 34}" fill="#455a64">{axis}; {panel.unit}</text>')
    for number, (name, line) in enumerate(panel.lines.items()):
        colour = _COLOURS[number]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(panel.lines) > 1:
            x, y = _LEFT + inner - 4, _TOP + _HEIGHT - 26 + 15 * number
            parts.append(f'<text x="{x}" y="{y}" text-anchor="end" fill="{colour}">{name}</text>')
    return parts


def _round_up(value: float) -> float:
    """The least number of one significant digit, or of 1.2, 1.6 and 2.4, that is not below `value`."""
    if value <= 0:
        return 1.0
    scale = 1.0
    while value > scale * 10:
        scale *= 10
    while value <= scale:
        scale /= 10
    return next(scale * each for each in (1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 7, 8, 9, 10) if value <= scale * each)

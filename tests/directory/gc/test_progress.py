"""A run says how far it is: a line that moves on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import io
import re
from datetime import timedelta

from namespace_server.cli.progress import ProgressLine
from namespace_server.directory.gc.run import Collector
from tests.directory.gc.collecting import let_pass
from tests.directory.gc.test_mark import leave_fragment
from tests.directory.tables import Ground


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_elsewhere_there_is_a_line_every_thirty_seconds() -> None:
    stream, now = io.StringIO(), 0.0
    with ProgressLine(stream=stream, clock=lambda: now) as progress:
        for second in range(100):
            now = float(second)
            progress("list", 10 * second, 1_000)
    assert stream.getvalue() == "".join(
        f"list: {10 * second:,} of 1,000 tables, 10 per second\n" for second in (30, 60, 90)
    )


def test_on_a_terminal_the_line_moves_and_is_gone_at_the_end() -> None:
    stream = Terminal()
    with ProgressLine(stream=stream, clock=lambda: 0.0) as progress:
        progress("horizon")
        progress("list", 0, 12)
        progress("list", 1, 12)  # too soon
        progress("delete", 5, 2_000, "files")
    shown = [text for text in re.split(r"\r\x1b\[K", stream.getvalue()) if text]
    empty = "░" * 20
    assert shown == ["horizon", f"{empty} list: 0 of 12 tables", f"{empty} delete: 5 of 2,000 files"]
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_run_tells_its_phases_in_order(ground: Ground) -> None:
    leave_fragment(ground, ground.make_table("g", "t"))
    let_pass(ground)
    told: list[str] = []
    Collector(ground.catalog, settle=timedelta(0), progress=lambda phase, *_: told.append(phase)).collect()
    once = [phase for phase, before in zip(told, ["", *told], strict=False) if phase != before]
    assert once == ["horizon", "list", "mark", "confirm", "mark", "plan", "delete", "close"]

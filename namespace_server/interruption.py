"""Ctrl-C of a command: it ends the process at once until the command has something to leave in order.

Importing takes most of the first second of a command, and an exception that is raised in the middle of it ends up as
some other error, or as a trace. Later `KeyboardInterrupt` is raised, and `main` knows that it was. This module is
imported before all others, and imports next to nothing itself.
"""

from __future__ import annotations

import os
import signal
import sys
import types

INTERRUPTED = 130
"""The exit status."""
_came = False


def end_at_interrupts() -> None:
    """Have Ctrl-C end the process at once, with `INTERRUPTED` and without a word. In the main thread."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and not ignored, as a shell has it for jobs
        signal.signal(signal.SIGINT, _end)
        sys.unraisablehook = _show_unraisable


def raise_interrupts() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt` from now on, where it ends the process. In the main thread."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, raise_interrupt)


def raise_interrupt(_number: int, _frame: types.FrameType | None) -> None:
    """A handler that raises `KeyboardInterrupt`, and remembers it."""
    global _came  # noqa: PLW0603 - of the process, as the signal
    _came = True
    raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Whether a handler of this module has raised `KeyboardInterrupt`."""
    return _came


def _end(_number: int, _frame: types.FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _show_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """As Python does, but for an interrupt of code that cannot raise it, such as a callback of the import system."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)

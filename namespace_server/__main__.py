"""The `lance-namespace` command, also as `python -m namespace_server`.

Imports nothing that takes time: `main` first says what Ctrl-C does, then imports the commands.
"""

import os
import sys

from namespace_server.interruption import INTERRUPTED, end_at_interrupts, was_interrupted


def main() -> None:
    """Run the command line. After Ctrl-C it ends with 130, whatever the interrupted code made of it."""
    end_at_interrupts()
    try:
        from namespace_server.cli import cli

        cli()
    except SystemExit as end:
        if end.code != INTERRUPTED and not (end.code and was_interrupted()):
            raise
    except BaseException:
        if not was_interrupted():
            raise
    else:
        return
    _end()


def _end() -> None:
    """End the process. Threads of pylance may still call into Python, which aborts it when the interpreter ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()

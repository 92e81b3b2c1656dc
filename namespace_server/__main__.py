"""The `lance-namespace` command, also as `python -m namespace_server`."""

import os
import sys

from namespace_server.cli import cli
from namespace_server.cli.command import ExitStatus


def main() -> None:
    """Run the command line."""
    try:
        cli()
    except SystemExit as end:
        if end.code == ExitStatus.INTERRUPTED:
            # Threads of pylance may still call into Python, which aborts the process when the interpreter ends.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ExitStatus.INTERRUPTED)
        raise


if __name__ == "__main__":
    main()

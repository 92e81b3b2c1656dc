"""Runs scripts one after another in one process: each path on standard input is answered by a line.

The line is empty after a script that ended without an error, and holds its traceback as JSON otherwise. A script runs
in its directory, and may start a Spark session and stop it; what takes longest, imports and the JVM, stays for the
next one.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from pathlib import Path


def main() -> None:
    """Answer on what standard output was at the start: scripts print, and so does Spark."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        failure = ""
        try:
            script = Path(line.rstrip("\n"))
            os.chdir(script.parent)
            runpy.run_path(str(script), run_name="__main__")
        except Exception:  # noqa: BLE001 - whatever a page raises is told
            failure = json.dumps(traceback.format_exc())
        print(failure, file=answers, flush=True)


if __name__ == "__main__":
    main()

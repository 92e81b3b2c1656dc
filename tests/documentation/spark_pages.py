"""Runs scripts one after another in one process with one JVM: each path on standard input is answered by a line.

The line is empty after a script that ended without an error, and holds its traceback as JSON otherwise. A script
starts its own Spark session and stops it; what starts longest, the JVM, stays for the next one.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback


def main() -> None:
    """Answer on what standard output was at the start: scripts print, and so does Spark."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        failure = ""
        try:
            runpy.run_path(line.rstrip("\n"), run_name="__main__")
        except Exception:  # noqa: BLE001 - whatever a page raises is told
            failure = json.dumps(traceback.format_exc())
        print(failure, file=answers, flush=True)


if __name__ == "__main__":
    main()

"""The Python process beside a Spark driver: requests as lines of JSON on standard input, responses on standard output.

The first line holds the settings. Every other line is a request with `id`, `operation` and `arguments`. It is answered
by a line with the same `id`, either `result` or `error`, and `in_transaction`: whether a transaction of several
statements is open in the session. Java sends this back with the next request, so that a statement that belongs to a
transaction is never run outside of it after the process was replaced. The process ends with its standard input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

_WORKERS = 8


def serve(requests: IO[str], responses: IO[str]) -> None:
    """Answer requests until there are no more."""
    from spark_catalog.sql.service import SqlService

    settings = json.loads(requests.readline())
    service = SqlService(
        settings["uri"],
        token=settings.get("token"),
        isolation=settings["isolation"],
        storage_options=settings["storage_options"],
    )
    lock = threading.Lock()

    def answer(request: Any) -> None:
        arguments = request["arguments"]
        response: dict[str, Any] = {"id": request["id"]}
        try:
            response["result"] = service.call(request["operation"], arguments)
        except Exception as error:  # noqa: BLE001 - the driver gets every error
            notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
            response["error"] = {"kind": type(error).__name__, "message": f"{error}{notes}" or type(error).__name__}
        response["in_transaction"] = service.in_transaction(arguments["session"])
        text = json.dumps(response)
        with lock:
            responses.write(text + "\n")
            responses.flush()

    with ThreadPoolExecutor(_WORKERS) as workers:
        for line in requests:
            workers.submit(answer, json.loads(line))
    service.close()


def main() -> None:
    """Run with the pipes of the driver. What libraries print goes to standard error."""
    responses = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin, responses)


if __name__ == "__main__":
    main()

"""An attempt as a line of JSON: bounded, in ASCII, and without anything that is secret.

A line begins with its format and time, so that a reader finds the time without parsing it. Whatever a client sends, the
line is one line, and shows as it is on a terminal: all but ASCII is written as escapes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from namespace_server.attempts import AttemptRecord, Authorization, RefusedOperation

FORMAT: Final = 1
ATTEMPT: Final = "refused_attempt"
FOLDED: Final = "refused_attempts_folded"
DROPPED: Final = "refused_attempts_dropped"

_PREFIX: Final = f'{{"format":{FORMAT},"time":"'
_TIME: Final = slice(len(_PREFIX), len(_PREFIX) + len("2026-01-31T12:00:00.000Z"))
_TEXT: Final = 300
"""Characters of a text."""
_PARTS: Final = 32
"""Names of a path."""
_ITEMS: Final = (50, 5, 0)
"""Objects, checks and failures of one attempt: as many of each as fit into a line. Numbers tell how many there are."""
_LINE: Final = 32 << 10
"""Bytes of a line."""


def moment(seconds: float) -> str:
    """A time in seconds since the epoch as lines have it. Texts of times have the order of the times."""
    whole, milliseconds = divmod(int(seconds * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{milliseconds:03d}Z"


def attempt_line(attempt: AttemptRecord, seconds: float, server: str) -> bytes:
    """The line of an attempt. `server` names the process."""
    for most in _ITEMS:
        line = _attempt_line(attempt, seconds, server, most)
        if len(line) <= _LINE:
            break
    return line


def count_line(event: str, count: int, now: float, server: str, **fields: object) -> bytes:
    """A line that stands for `count` attempts which have none of their own."""
    return _line({"time": moment(now), "event": event, "count": count, **fields, "server": server})


def time_in(line: bytes) -> str | None:
    """The time of a line; None if it does not begin as lines do."""
    if not line.startswith(_PREFIX.encode()):
        return None
    return line[_TIME].decode("ascii", "replace")


def parse_line(line: bytes) -> Mapping[str, Any] | None:
    """The content of a line; None if it is not whole."""
    try:
        found = orjson.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _attempt_line(attempt: AttemptRecord, seconds: float, server: str, most: int) -> bytes:
    origin = attempt.origin
    return _line(
        {
            "time": moment(seconds),
            "event": ATTEMPT,
            "action": attempt.action,
            "decision": attempt.decision,
            "status": attempt.status,
            "code": attempt.code,
            "principal": attempt.principal,
            "means": attempt.means,
            "objects": [{"kind": each.kind, "id": _path(each.id)} for each in attempt.objects[:most]],
            "num_objects": len(attempt.objects),
            "authorizations": [_authorization(each) for each in attempt.authorizations[:most]],
            "num_authorizations": len(attempt.authorizations),
            "failures": [_failure(each) for each in attempt.failures[:most]],
            "num_failures": len(attempt.failures),
            "transaction_id": attempt.transaction_id,
            "detail": attempt.detail,
            "client": origin.client,
            "user_agent": origin.user_agent,
            "request_id": origin.request_id,
            "key_sha256": attempt.key,
            "server": server,
        }
    )


def _line(fields: Mapping[str, object]) -> bytes:
    known = {"format": FORMAT} | {name: _bounded(value) for name, value in fields.items() if value is not None}
    line = orjson.dumps(known, option=orjson.OPT_APPEND_NEWLINE)
    if not line.isascii():  # which is rare, and takes ten times as long
        line = json.dumps(known, separators=(",", ":")).encode("ascii") + b"\n"
    return line.replace(b"\x7f", b"\\u007f")


def _bounded(value: object) -> object:
    """A text in at most so many characters, all of which UTF-8 has; other values as they are."""
    if not isinstance(value, str):
        return value
    text = value if len(value) <= _TEXT else f"{value[: _TEXT - 1]}…"
    return text.encode("utf-8", "replace").decode()


def _path(names: Sequence[str]) -> list[object]:
    return [_bounded(name) for name in names[:_PARTS]]


def _present(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: _bounded(value) for name, value in fields.items() if value is not None}


def _authorization(check: Authorization) -> dict[str, object]:
    return _present(
        {
            "privilege": check.privilege,
            "allowed": check.allowed,
            "kind": check.kind,
            "id": _path(check.object),
            "operation_index": check.operation_index,
            "reason": check.reason,
        }
    )


def _failure(failure: RefusedOperation) -> dict[str, object]:
    return _present(
        {
            "operation_index": failure.index,
            "operation": failure.operation,
            "id": _path(failure.id),
            "branch": failure.branch,
            "expected": failure.expected,
            "found": failure.found,
            "kind": failure.kind,
        }
    )

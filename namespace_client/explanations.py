"""Errors and refused attempts by their parts: the thing, what was expected of it, what was found, what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from namespace_client.error_codes import ErrorCode
from namespace_client.errors import (
    AccessRefused,
    CatalogUnavailable,
    CatalogUnreachable,
    ClientError,
    CommitRejected,
    CommitUnknown,
)

_PARTS: Final = re.compile(
    r"(?P<thing>.+?): expected (?P<expected>.+?)(?:[,;] (?:but )?found (?P<found>.+))?", re.DOTALL
)
_CODE: Final = re.compile(r" \(code \d+\)")

_AGAIN: Final = "Run the work again: it reads the newer versions, and can succeed."
_ADVICE: Final[Mapping[int, str]] = {
    ErrorCode.NAMESPACE_NOT_FOUND: "Look whether it has another name now, or was dropped.",
    ErrorCode.TABLE_NOT_FOUND: "Look whether it has another name now, or was dropped: a drop can be undone.",
    ErrorCode.TABLE_VERSION_NOT_FOUND: "Take a newer version, or keep old ones with a pin before they are collected.",
    ErrorCode.INVALID_INPUT: "Correct the request as the text says, and send it again.",
    ErrorCode.CONCURRENT_MODIFICATION: _AGAIN,
    ErrorCode.PERMISSION_DENIED: "Ask an owner of the object for a grant that gives the privilege.",
    ErrorCode.UNAUTHENTICATED: "Sign in with a key or a token that this server knows.",
    ErrorCode.SERVICE_UNAVAILABLE: "Nothing was done. Try it again soon; the log of the server says why.",
    ErrorCode.THROTTLING: "Nothing was done. Try it again soon, with less under way at once.",
    ErrorCode.INTERNAL: "The log of the server has the whole error under its instance.",
}
_OF_DECISION: Final[Mapping[str, str]] = {
    "unknown": "Send the same batch again under the same key: it is applied at most once. Do not run it anew before.",
    "failed": "Nothing was done. Send it again; the log of the server says why it failed.",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """An error for a reader. What its text does not tell is empty.

    Attributes:
        text: The whole text.
        thing: What it is about.
        expected: What was expected of it.
        found: What was found.
        advice: What to do.
    """

    text: str
    thing: str = ""
    expected: str = ""
    found: str = ""
    advice: str = ""


def explain(text: str, code: int | None = None, decision: str | None = None) -> Explanation:
    """A text of an error by its parts, with what to do for its code, or for the decision on an attempt."""
    plain = _CODE.sub("", text).strip()
    advice = _OF_DECISION.get(decision or "") or _ADVICE.get(-1 if code is None else code, "")
    found = _PARTS.fullmatch(plain)
    if found is None:
        return Explanation(plain, advice=advice)
    parts = {name: (part or "").strip() for name, part in found.groupdict().items()}
    return Explanation(plain, **parts, advice=advice)


def explain_error(error: ClientError) -> Explanation:
    """An error of the client by its parts."""
    match error:
        case CommitUnknown():
            told = explain(str(error), decision="unknown")
        case AccessRefused() | CommitRejected():
            told = explain(str(error), error.code)
        case CatalogUnreachable():
            told = explain(str(error), ErrorCode.SERVICE_UNAVAILABLE)
        case _:
            told = explain(str(error), ErrorCode.INVALID_INPUT)
    return told


def status_of_error(error: ClientError) -> int:
    """The HTTP status that tells an error of the client to who asked through another program."""
    match error:
        case AccessRefused():
            return 401 if error.code == ErrorCode.UNAUTHENTICATED else 403
        case CatalogUnavailable():
            return 503 if error.status is None else error.status
        case CommitRejected():
            return error.status if error.status is not None else 404
        case CommitUnknown() | CatalogUnreachable():
            return 502
    return 400

"""Errors of the catalog as results of tools: what was named, expected and found, and what became of the call."""

from __future__ import annotations

from typing import Any, Final, Literal

from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from namespace_client.errors import (
    AccessRefused,
    CatalogUnavailable,
    CatalogUnreachable,
    ClientError,
    CommitConflict,
    CommitRejected,
    CommitUnknown,
    IncompatibleConflict,
)

Outcome = Literal["nothing_done", "unknown"]
NOTHING_DONE: Final = "nothing_done"
UNKNOWN: Final = "unknown"


def failure(
    text: str, outcome: Outcome, *, advice: str | None = None, code: int | None = None, **further: Any
) -> CallToolResult:
    """The result of a call that failed.

    Args:
        text: What was named, what was expected, what was found.
        outcome: What became of the call. A read changes nothing, whatever becomes of it.
        advice: What to do.
        code: Error code of the namespace specification.
        **further: Further fields of the structured content.
    """
    said = f"{text}\noutcome: {outcome}" + ("" if advice is None else f"\n{advice}")
    structured = {"error": text, "outcome": outcome, "advice": advice, "code": code, **further}
    content = {name: value for name, value in structured.items() if value is not None}
    return CallToolResult(content=[TextContent(text=said)], structured_content=content, is_error=True)


def refused_arguments(tool: str, error: ValidationError) -> CallToolResult:
    """The result of a call whose arguments are not those of the tool."""
    problems = []
    for each in error.errors(include_url=False, include_context=False):
        place = ".".join(str(part) for part in each["loc"]) or "arguments"
        found = "" if each["type"] in {"missing", "extra_forbidden"} else f", found {each['input']!r:.80}"
        problems.append(f"{place}: {each['msg']}{found}")
    return failure(f"{tool}: {'; '.join(problems)}", NOTHING_DONE)


def busy(waiting: int) -> CallToolResult:
    """The result of a call that is not begun, since too many wait already."""
    return failure(
        f"calls of tools: expected at most {waiting:,} that wait, found more",
        NOTHING_DONE,
        advice="Make the same call again, later.",
    )


def failed(error: ClientError) -> CallToolResult:
    """The result for an exception of the client."""
    code = getattr(error, "code", None)
    number = None if code is None else int(code)
    match error:
        case CommitUnknown():
            return failure(
                str(error),
                UNKNOWN,
                advice="The change may be made, or may be made later. Make the same call again with the same "
                "idempotency_key: it is applied at most once.",
                idempotency_key=error.idempotency_key,
            )
        case CommitConflict():
            again = (
                "Look at the table before you decide whether to make the change again: it was replaced, restored or "
                "dropped, or lost a column."
                if isinstance(error, IncompatibleConflict)
                else "Read what you based the change on again, and make the call again with a new idempotency_key."
            )
            conflicts = [str(conflict) for conflict in error.conflicts]
            return failure(str(error), NOTHING_DONE, advice=again, code=number, conflicts=conflicts)
        case CatalogUnavailable():
            return failure(str(error), NOTHING_DONE, advice="Make the same call again, later.", code=number)
        case AccessRefused() | CommitRejected():
            return failure(str(error), NOTHING_DONE, code=number)
        case CatalogUnreachable():
            return failure(str(error), NOTHING_DONE, advice="The catalog did not answer. Make the call again, later.")
    return failure(str(error), NOTHING_DONE)

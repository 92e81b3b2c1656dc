"""The refused attempts of a catalog, as the command `log` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import typer

from namespace_server.attempts import AttemptQuery, Decision
from namespace_server.cli.command import refusal
from namespace_server.cli.connection import connected, is_of_server, opened_store
from namespace_server.cli.options import audit_directory
from namespace_server.cli.output import print_json, print_table, shown_moment

if TYPE_CHECKING:
    from namespace_client import RefusedAttempt

_PAGE = 1_000


def show_refused(
    context: typer.Context,
    *,
    limit: int,
    principal: str | None,
    name: str | None,
    decision: str | None,
    directory: Path | None,
) -> None:
    """Print attempts of a server, or of a directory: the one that is given, or that of a root in a directory."""
    if decision is not None and decision not in get_args(Decision):
        raise refusal(f"--decision {decision}: expected one of {', '.join(get_args(Decision))}")
    if directory is None and is_of_server(context):
        with connected(context) as catalog:
            found = list(catalog.refused_attempts(limit, principal=principal, name=name, decision=decision))
    else:
        place = _of_root(context) if directory is None else directory
        expected = place.parent if directory is None else place  # a server makes it when there is one
        if not expected.is_dir():
            raise refusal(f"{expected}: expected a directory, found none")
        found = list(islice(_recorded(place, principal, name, decision), limit))
    if context.obj.as_json:
        print_json([attempt.row for attempt in found])
        return
    headings = ("time", "by", "from", "action", "objects", "decision", "why")
    print_table(headings, [_row(attempt) for attempt in found])


def _of_root(context: typer.Context) -> Path:
    with opened_store(context) as store:
        found = audit_directory(store.uri)
    if found is None:
        raise refusal("--refused: expected a root in a directory, a server, or --audit-log with a directory")
    return found


def _recorded(
    directory: Path, principal: str | None, name: str | None, decision: str | None
) -> Iterator[RefusedAttempt]:
    from namespace_client import RefusedAttempt
    from namespace_client.names import absolute
    from namespace_server.observability.audit.reading import DirectoryReader

    chosen: Decision | None = next((each for each in get_args(Decision) if each == decision), None)
    about = None if name is None else absolute(name)
    token: str | None = None
    while True:
        page = DirectoryReader(directory).page(AttemptQuery(principal, about, chosen, _PAGE, token))
        yield from map(RefusedAttempt.of, map(dict, page.attempts))
        token = page.token
        if token is None:
            return


def _row(attempt: RefusedAttempt) -> tuple[str, ...]:
    from namespace_client.audit import shown_objects

    action = attempt.action or "any operation"
    return (
        shown_moment(attempt.time),
        attempt.principal or "",
        attempt.client or "",
        action if attempt.count == 1 else f"{attempt.count:,} times {action}",
        shown_objects(attempt),
        attempt.decision or "",
        "; ".join(attempt.reasons[:2]),
    )

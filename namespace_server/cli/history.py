"""Commands on the versions of a catalog."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lance_core.amounts import counted
from namespace_server.cli.command import ExitStatus, refusal
from namespace_server.cli.connection import connected
from namespace_server.cli.options import parse_point
from namespace_server.cli.output import print_json, print_shown, print_table, shown_moment
from namespace_server.cli.progress import ProgressLine
from namespace_server.cli.row_output import json_rows

if TYPE_CHECKING:
    from namespace_client import (
        Catalog,
        CatalogBatch,
        CatalogChange,
        CatalogDiff,
        CatalogVersion,
        Name,
        RowDiff,
        TableDifference,
    )

Deltas = dict[int, int]
_READERS: Final = 8
_COMPARED: Final = 1_000_000
"""Rows of a table whose values `diff` compares at most, on either side."""
_SHOWN: Final = 3
"""Changes of a batch that are shown in a line."""


def log(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Only what changed this table or namespace, or was in it."),
    ] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="So many catalog versions at most.")] = 20,
    stat: Annotated[
        bool, typer.Option("--stat", help="Also rows: how many more or fewer each change made of a table.")
    ] = False,
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="P", help="Only what this principal did.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option("--table", metavar="T", help="Only what changed this table, also under its earlier names."),
    ] = None,
    origin: Annotated[
        bool, typer.Option("--origin", help="Also where each batch came from; of a server, for auditors alone.")
    ] = False,
    refused: Annotated[
        bool,
        typer.Option("--refused", help="What was refused, in place of what was done; of a server, for auditors alone."),
    ] = False,
    decision: Annotated[
        str | None, typer.Option("--decision", help="With --refused: denied, rejected, failed or unknown alone.")
    ] = None,
    audit_log: Annotated[
        Path | None,
        typer.Option("--audit-log", metavar="DIR", help="With --refused: the directory to read.", file_okay=False),
    ] = None,
) -> None:
    """Show the history of a catalog, newest first: when, who, why, and which tables were changed how.

    Versions that a garbage collection has removed are not shown. Refused attempts are kept in a log of their own.
    """
    if name is not None and table is not None:
        raise refusal("log: expected NAME or --table, found both")
    if refused:
        if stat or origin:
            raise refusal("log --refused: expected no --stat and no --origin")
        from namespace_server.cli.refused import show_refused

        about = table if name is None else name
        show_refused(context, limit=limit, principal=principal, name=about, decision=decision, directory=audit_log)
        return
    if decision is not None or audit_log is not None:
        raise refusal("log: --decision, --audit-log: expected --refused with them")
    with connected(context) as catalog, ProgressLine() as progress:
        history = partial(catalog.history, principal=principal, table=table, audited=origin)
        found = list(_touching(history, name, limit))
        deltas = _deltas(catalog, found, progress) if stat else {}
    if context.obj.as_json:
        print_json([_json(version, deltas) for version in found])
        return
    rows = []
    for version in found:
        origins = [_origin(batch) for batch in version.batches] + [""]
        for place, (who, why, changes) in enumerate(_batches(version)):
            first = place == 0
            every = list(_descriptions(changes, deltas))
            shown = every[:_SHOWN] + ([f"and {len(every) - _SHOWN:,} more"] if len(every) > _SHOWN else [])
            moment = shown_moment(version.committed_at) if first else ""
            where = (origins[min(place, len(version.batches))],) if origin else ()
            rows.append((version.version if first else None, moment, who, *where, why, ", ".join(shown)))
    headings = ("version", "committed", "by", *(("from",) if origin else ()), "message", "changes")
    print_table(headings, rows, numbers=("version",))


def _origin(batch: CatalogBatch) -> str:
    return " ".join(batch.origin[name] for name in ("client", "request_id") if name in batch.origin)


def _touching(
    history: Callable[..., Iterable[CatalogVersion]], name: str | None, limit: int
) -> Iterator[CatalogVersion]:
    if name is None:
        yield from history(limit)
        return
    from namespace_client.names import absolute

    path, below, left = absolute(name), None, limit
    while left and (page := list(history(_PAGE, below=below))):
        for version in page:
            if left and any(_is_about(change, path) for change in _changes(version)):
                yield version
                left -= 1
        below = page[-1].version


_PAGE: Final = 200


def _is_about(change: CatalogChange, path: Sequence[str]) -> bool:
    return any(each is not None and tuple(each[: len(path)]) == tuple(path) for each in (change.name, change.new_name))


def _changes(version: CatalogVersion) -> Iterator[CatalogChange]:
    for batch in version.batches:
        yield from batch.changes
    yield from version.adopted


def _batches(version: CatalogVersion) -> Iterator[tuple[str, str, Sequence[CatalogChange]]]:
    """Principal, message and operations of each batch of a version."""
    for batch in version.batches:
        yield batch.principal or "", batch.message or "", batch.changes
    if version.adopted:
        yield "", "(written by path, and adopted)", version.adopted
    if not version.batches and not version.adopted:
        yield "", "(by a stock client)" if version.unmanaged else "(the server's own work)", ()


def _descriptions(changes: Sequence[CatalogChange], deltas: Deltas) -> Iterator[str]:
    """The changes of a batch in words. A table that it declares, and its first version, are one change."""
    new = {change.name for change in changes if change.operation == "declare_table"}
    firsts = [each for each in changes if each.operation == "commit_transaction" and each.name in new]
    rows = {each.name: deltas[id(each)] for each in firsts if id(each) in deltas}
    for change in changes:
        if not any(change is first for first in firsts):
            first = rows.get(change.name) if change.operation == "declare_table" else None
            yield _description(change, deltas.get(id(change), first))


def _description(change: CatalogChange, delta: int | None) -> str:
    """A change in words: the operation, its object, and the number of added rows."""
    if change.operation == "declare_table":
        verb = "create"
    elif change.operation == "commit_transaction" and change.change:
        verb = _INNER_CAPITAL.sub(" ", change.change).lower()
    else:
        verb = change.operation.replace("_table", "").replace("_", " ")
    about = [str(each) for each in (change.name, change.tag, change.pin, change.cursor) if each is not None]
    if change.branch is not None:
        about.append(change.branch if "branch" in verb else f"(branch {change.branch})")
    about += [] if change.new_name in {None, change.name} else [f"to {change.new_name}"]
    rows = "" if delta is None else f" ({'-' if delta < 0 else '+'}{counted(abs(delta), 'row')})"
    return " ".join([verb, *about]) + rows


_INNER_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _deltas(catalog: Catalog, versions: Iterable[CatalogVersion], progress: ProgressLine) -> Deltas:
    """By how many rows each change made a table larger, where both versions are kept: two manifests for each.

    The keys are the identities of the changes: equal ones may be in several catalog versions.
    """
    from namespace_client import ClientError

    changes = [
        (version.version, change)
        for version in versions
        for change in _changes(version)
        if change.change is not None and change.version and change.branch is None
    ]

    def delta(item: tuple[int, CatalogChange]) -> int | None:
        version, change = item
        if change.rows is not None:
            return change.rows
        assert change.name is not None
        assert change.version is not None
        try:
            view = catalog.at(version)  # the table has the name of that time there
            after = view.describe(change.name, version=change.version).rows
            before = view.describe(change.name, version=change.version - 1).rows if change.version > 1 else 0
        except ClientError:  # one of the versions is not kept
            return None
        return None if after is None or before is None else after - before

    found: Deltas = {}
    with ThreadPoolExecutor(_READERS) as pool:
        for number, ((_, change), count) in enumerate(zip(changes, pool.map(delta, changes), strict=True)):
            progress("count", number, len(changes), "changes")
            if count is not None:
                found[id(change)] = count
    return found


def event_rows(version: CatalogVersion) -> Iterator[tuple[str, str, str]]:
    """Principal, message and changes of each batch of a version in words, with the rows that the history tells."""
    for who, why, changes in _batches(version):
        known = {id(change): change.rows for change in changes if change.rows is not None}
        yield who, why, ", ".join(_descriptions(changes, known))


def _json(version: CatalogVersion, deltas: Deltas) -> dict[str, Any]:
    def change(each: CatalogChange) -> dict[str, Any]:
        fields = {key: value for key, value in asdict(each).items() if value is not None}
        names = {key: str(getattr(each, key)) for key in ("name", "new_name") if key in fields}
        return fields | names | ({"rows_delta": deltas[id(each)]} if id(each) in deltas else {})

    return {
        "version": version.version,
        "committed_at": version.committed_at,
        "batches": [
            {
                "transaction_id": batch.transaction_id,
                "message": batch.message,
                "principal": batch.principal,
                **({"origin": batch.origin} if batch.origin else {}),
                **({"granted": batch.granted} if batch.granted else {}),
                "num_changes": batch.num_changes,
                "changes": [change(each) for each in batch.changes],
            }
            for batch in version.batches
        ],
        "adopted": [change(each) for each in version.adopted],
        "unmanaged": version.unmanaged,
    }


def diff(
    context: typer.Context,
    before: Annotated[str, typer.Argument(metavar="A", help="Catalog version, time (ISO 8601) or pin.")],
    after: Annotated[str | None, typer.Argument(metavar="[B]", help="The same; now.")] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, metavar="N", help="Also compare rows, and show N of each table.")
    ] = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit status 1 if there are differences.")] = False,
) -> None:
    """Compare two versions of a catalog: tables that came, went, were renamed or changed, their columns and rows.

    What is read follows from what changed between them. With --rows also the rows of the files that only one of both
    versions has, by the catalog: where values have to be compared, a million of a table at most.
    """
    with connected(context) as catalog, ProgressLine() as progress:
        first = catalog.at(parse_point(before)).version
        last = catalog.access.state().version if after is None else catalog.at(parse_point(after)).version
        found = catalog.diff(first, last)
        compared = _row_diffs(catalog, found, rows, progress) if rows else {}
    if context.obj.as_json:
        print_json({"before": first, "after": last, "tables": [_table_json(each, compared) for each in found.tables]})
    else:
        print_shown(found, numbers=("rows",))
        for each in compared.values():
            typer.echo()
            print_shown(each)
        if not found.tables:
            typer.echo("no differences")
    if exit_code and found.tables:
        raise typer.Exit(ExitStatus.FOUND)


def _row_diffs(catalog: Catalog, found: CatalogDiff, limit: int, progress: ProgressLine) -> dict[Name, RowDiff]:
    """The differences in rows of the tables that have other versions, by their names in the later one."""
    changed = [each for each in found.tables if each.before and each.after and each.before != each.after]
    compared = {}
    for place, each in enumerate(changed):
        progress("compare", place, len(changed))
        compared[each.name] = catalog.row_diff(
            each.name, found.before, found.after, old_name=each.old_name, limit=limit, compared=_COMPARED
        )
    return compared


def _table_json(table: TableDifference, compared: Mapping[Name, RowDiff]) -> dict[str, Any]:
    names = {"name": str(table.name), "old_name": None if table.old_name is None else str(table.old_name)}
    rows = compared.get(table.name) if table.before and table.after else None
    return asdict(table) | names | ({} if rows is None else {"row_changes": _row_json(rows)})


def _row_json(rows: RowDiff) -> dict[str, Any]:
    return {
        "added": rows.num_added,
        "removed": rows.num_removed,
        "sample_added": json_rows(rows.added_rows),
        "sample_removed": json_rows(rows.removed_rows),
        "note": rows.not_compared,
    }

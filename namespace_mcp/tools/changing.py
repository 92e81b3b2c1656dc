"""The tool that changes the catalog: a list of changes as one batch with a message, all of them or none."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import BaseModel, Field

from namespace_client import Catalog
from namespace_client.access import Changed
from namespace_client.display import visible
from namespace_client.errors import InvalidCall
from namespace_mcp.tools.batches import AnyChange, DeleteRows, PreparedChange, RequestedChange, UpdateRows, UpsertRows
from namespace_mcp.tools.tool import Arguments, Tool, ToolAnswer
from table_data.batch_operations import Json

_MOST: Final = 100


class Change(Arguments):
    """Changes, and the message that is kept with them."""

    message: Annotated[
        str, Field(min_length=1, max_length=1000, description="What is changed, and why: kept in the history.")
    ]
    changes: Annotated[
        list[AnyChange],
        Field(
            min_length=1,
            max_length=_MOST,
            description="What to do, in this order, all of it or nothing. What `goes alone` has to be the only change.",
        ),
    ]
    idempotency_key: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=255,
            pattern=r"^[\x20-\x7e]+$",
            description="Under one key changes are made at most once. Give a new one with each new call, and the same "
            "one if you make a call again whose outcome is `unknown`. Where that is refused because the key `was used "
            "for another request`, the first call was committed. Made up, and told in the answer, if absent.",
        ),
    ] = None


class ChangedObject(BaseModel):
    """What became of one change."""

    do: str
    about: str | None = Field(description="The table or namespace; null for pins.")
    version: int | None = Field(default=None, description="The version of the table that holds it, if it made one.")
    rows: int | None = Field(default=None, description="Rows that it wrote, changed or deleted, where that is known.")


class ChangesMade(ToolAnswer):
    """Changes that are committed: readers see all of them from this catalog version on."""

    catalog_version: int | None = Field(  # type: ignore[assignment]
        description="The catalog version that holds the changes; null if the catalog did not say it."
    )
    transaction_id: str | None = Field(default=None, description="Id of the batch.")
    idempotency_key: str
    changes: list[ChangedObject]

    def text(self) -> str:
        """See `ToolAnswer`."""
        done = any(each.rows != 0 for each in self.changes)
        lines = [f"{'committed' if done else 'no row matches'}, catalog version {self.catalog_version}"]
        for each in self.changes:
            parts = [each.do, visible(each.about or "")]
            parts += [] if each.version is None else [f"version {each.version}"]
            parts += [] if each.rows is None else [f"{each.rows:,} rows"]
            lines.append("  " + " ".join(filter(None, parts)))
        return "\n".join([*lines, f"idempotency_key: {self.idempotency_key}"])


def change(catalog: Catalog, arguments: Change) -> ChangesMade:
    """Make changes as one batch."""
    key = arguments.idempotency_key or f"mcp-{uuid.uuid4()}"
    requested = arguments.changes
    _check_list([*requested])
    prepared = [each.prepare(catalog) for each in requested]
    if (alone := prepared[0].alone) is not None:
        operation, request = alone
        made = catalog.access.make(operation, request, idempotency_key=key, message=arguments.message)
        results = [ChangedObject(do=requested[0].do, about=requested[0].about)]
    else:
        batch = {"operations": [operation for each in prepared for operation in each.operations]}
        if not batch["operations"]:  # no row matches
            made = Changed({}, catalog.access.state().version)
            results = [ChangedObject(do=each.do, about=each.about, rows=0) for each in requested]
            return _answer(made, key, results)
        made = catalog.access.make("batch_commit_tables", batch, idempotency_key=key, message=arguments.message)
        results = _of_batch(arguments, prepared, made)
    return _answer(made, key, results)


def _answer(made: Changed, key: str, results: list[ChangedObject]) -> ChangesMade:
    batch = made.body.get("transaction_id")
    if isinstance(batch, list):  # of a namespace, one for each object that was dropped
        batch = batch[0] if batch else None
    return ChangesMade(
        catalog_version=made.catalog_version,
        transaction_id=batch,
        idempotency_key=key,
        changes=results,
    )


def _check_list(requested: list[RequestedChange]) -> None:
    """Raise `InvalidCall` for changes that no batch holds together."""
    if len(requested) > 1 and (single := [each.do for each in requested if each.do in GOES_ALONE]):
        raise InvalidCall(f"changes: {single[0]}: expected to be the only change of a call, found {len(requested)}")
    seen = set()
    for each in requested:
        if isinstance(each, UpdateRows | DeleteRows | UpsertRows):
            if (place := (each.path, each.branch)) in seen:
                raise InvalidCall(
                    f"changes: {each.about}: expected one update, deletion or upsert of a table, found two"
                )
            seen.add(place)


GOES_ALONE: Final = frozenset(
    {
        "create_namespace",
        "drop_namespace",
        "create_tag",
        "move_tag",
        "delete_tag",
        "create_branch",
    }
)
"""Changes that no batch holds together with others."""


def _of_batch(arguments: Change, prepared: list[PreparedChange], made: Changed) -> list[ChangedObject]:
    results: Iterator[Json] = iter(made.body.get("results") or ())
    found = []
    for requested, each in zip(arguments.changes, prepared, strict=True):
        version = None
        for _ in each.operations:
            committed = next(results).get("commit_transaction") or {}
            version = (committed.get("version") or {}).get("version", version)
        found.append(ChangedObject(do=requested.do, about=requested.about, version=version, rows=each.rows))
    return found


CHANGE_TOOLS: Final = (
    Tool(
        "change",
        "Change the catalog",
        "Make changes as one batch with a message, all of them or none: create, rename, drop and bring back tables, "
        "insert, upsert, update and delete rows, set properties, pin a catalog version. Others go alone: namespaces, "
        "tags, branches. Readers see either nothing or all of it. The history keeps every change.",
        change,
        changes=True,
        destructive=True,
    ),
)

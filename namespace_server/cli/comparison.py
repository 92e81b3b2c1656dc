"""The differences between two versions of a catalog."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lance_core.amounts import counted
from namespace_server.cli.row_output import json_rows

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

    from namespace_client import CatalogView, Name, TableDescription
    from namespace_server.cli.progress import ProgressLine
    from table_data.batch_operations import TableState

MOST_ROWS: Final = 1_000_000
"""Rows of a table that are compared at most, on either side."""


@dataclass(frozen=True, slots=True)
class RowSample:
    """Rows that only one version of a table has: their numbers and some of them as JSON; or why they are not given."""

    num_added: int = 0
    num_removed: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class TableComparison:
    """A table that differs.

    Attributes:
        kind: `added`, `dropped`, `renamed` or `changed`. A renamed table may be changed, too.
        name: Its name, in the later version if it is there.
        old_name: Its name in the earlier version, if it is another one.
        versions: Its versions, before and after.
        rows: Its numbers of rows, before and after.
        columns: Columns that differ: the name, and the types before and after.
        sample: Rows that differ, if they were compared.
    """

    kind: str
    name: Name
    old_name: Name | None = None
    versions: tuple[int | None, int | None] = (None, None)
    rows: tuple[int | None, int | None] = (None, None)
    columns: tuple[tuple[str, str | None, str | None], ...] = ()
    sample: RowSample | None = None

    def described(self) -> str:
        """It in a line."""
        was, now = self.versions
        before, after = self.rows
        if self.kind == "added":
            return f"{self.name}" + ("" if after is None else f": {counted(after, 'row')}")
        if self.kind == "dropped":
            return f"{self.name}" + ("" if before is None else f": {counted(before, 'row')}")
        name = f"{self.old_name} is {self.name}" if self.old_name else f"{self.name}"
        if was == now:
            return name
        counts = ""
        if before is not None and after is not None:
            counts = f", {counted(before, 'row')}, now {after:,} ({after - before:+,})"
        return f"{name}: version {was or 'none'}, now {now}{counts}"

    def as_json(self) -> dict[str, object]:
        """It as values of JSON."""
        found: dict[str, Any] = {
            "kind": self.kind,
            "name": str(self.name),
            "old_name": None if self.old_name is None else str(self.old_name),
            "versions": list(self.versions),
            "rows": list(self.rows),
            "columns": [{"name": name, "before": was, "after": now} for name, was, now in self.columns],
        }
        if self.sample is not None:
            found["row_changes"] = {
                "added": self.sample.num_added,
                "removed": self.sample.num_removed,
                "sample_added": [json.loads(text) for text in self.sample.added],
                "sample_removed": [json.loads(text) for text in self.sample.removed],
                "note": self.sample.note,
            }
        return found


@dataclass(frozen=True, slots=True)
class CatalogComparison:
    """Two catalog versions, and the tables that differ."""

    before: int
    after: int
    tables: tuple[TableComparison, ...]

    def as_json(self) -> dict[str, object]:
        """It as values of JSON."""
        return {"before": self.before, "after": self.after, "tables": [table.as_json() for table in self.tables]}


def compare_catalogs(
    before: CatalogView, after: CatalogView, samples: int, progress: ProgressLine
) -> CatalogComparison:
    """Compare two versions of a catalog. A table is the same one if its location is.

    Args:
        before: The earlier version.
        after: The later version.
        samples: How many rows of each table to show; 0 compares no rows.
        progress: Called with the number of tables.
    """
    was = {state.uri: state for state in before.access.pins(before.version).tables.values()}
    now = {state.uri: state for state in after.access.pins(after.version).tables.values()}
    differing = []
    for uri in was | now:
        old, new = was.get(uri), now.get(uri)
        if old is None or new is None or _told_apart(old) != _told_apart(new):
            differing.append((old, new))
    found = []
    for number, (old, new) in enumerate(differing):
        progress("compare", number, len(differing))
        first = None if old is None else before.describe(old.id)
        last = None if new is None else after.describe(new.id)
        compared = _compare(first, last)
        if samples and first and last and first.version and last.version and first.version != last.version:
            sample = compare_rows(before.dataset(first.name), after.dataset(last.name), samples)
            compared = replace(compared, sample=sample)
        found.append(compared)
    return CatalogComparison(before.version, after.version, tuple(sorted(found, key=lambda table: table.name)))


def _told_apart(state: TableState) -> tuple[object, ...]:
    return state.id, state.version, state.identity


def _compare(old: TableDescription | None, new: TableDescription | None) -> TableComparison:
    if old is None or new is None:
        only = old or new
        assert only is not None
        return TableComparison(
            "dropped" if new is None else "added",
            only.name,
            versions=(old.version if old else None, new.version if new else None),
            rows=(old.rows if old else None, new.rows if new else None),
        )
    is_renamed = old.name != new.name
    return TableComparison(
        "renamed" if is_renamed else "changed",
        new.name,
        old.name if is_renamed else None,
        (old.version, new.version),
        (old.rows, new.rows),
        tuple(_columns(old.schema, new.schema)),
    )


def _columns(old: pa.Schema | None, new: pa.Schema | None) -> Iterator[tuple[str, str | None, str | None]]:
    was = {} if old is None else {field.name: _type(field) for field in old}
    now = {} if new is None else {field.name: _type(field) for field in new}
    for name in was | now:
        if was.get(name) != now.get(name):
            yield name, was.get(name), now.get(name)


def _type(field: pa.Field) -> str:
    return f"{field.type}" + ("" if field.nullable else " not null")


def compare_rows(old: lance.LanceDataset, new: lance.LanceDataset, samples: int) -> RowSample:
    """Compare the rows of the fragments that only one of two versions has as it is.

    A changed row is one that is removed and one that is added.
    """
    was, now = _fragments(old), _fragments(new)
    gone = [fragment for key, fragment in was.items() if key not in now]
    come = [fragment for key, fragment in now.items() if key not in was]
    if old.schema != new.schema:  # the rows of all fragments look different
        gone, come = list(was.values()), list(now.values())
    count = max(sum(fragment.count_rows() for fragment in side) for side in (gone, come))
    if count > MOST_ROWS:
        return RowSample(note=f"rows are not compared: {count:,} are in changed files, of at most {MOST_ROWS:,}")
    before, after = _counted(gone), _counted(come)
    added, removed = after - before, before - after
    return RowSample(added.total(), removed.total(), tuple(_first(added, samples)), tuple(_first(removed, samples)))


def _fragments(dataset: lance.LanceDataset) -> dict[tuple[Any, ...], Any]:
    """The fragments by what makes up their rows: data files and the deletion file."""
    return {
        (tuple(file.path for file in each.data_files()), str(each.deletion_file())): each
        for each in dataset.get_fragments()
    }


def _counted(fragments: Iterable[Any]) -> Counter[str]:
    from table_data.arrow.batch_sizes import in_fewer_rows

    return Counter(
        json.dumps(row, ensure_ascii=False)
        for fragment in fragments
        for batch in in_fewer_rows(_batches(fragment), partial(_batches, fragment))
        for row in json_rows(batch)
    )


def _batches(fragment: Any, most: int | None = None) -> Iterator[pa.RecordBatch]:
    yield from fragment.to_batches(batch_size=most)


def _first(rows: Counter[str], count: int) -> list[str]:
    return [text for text, _ in zip(rows.elements(), range(count), strict=False)]

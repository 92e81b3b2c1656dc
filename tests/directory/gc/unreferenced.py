"""The files that stock pylance needs, as it tells them itself, and the removal of those that are listed as orphans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance

from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from lance_core.tables.dataset import Dataset
from namespace_server.directory.gc.mark import MarkPhase
from namespace_server.directory.gc.report import MarkResult
from namespace_server.directory.manifest_table.table import ManifestTable

OLD = timedelta(days=7)
LATER = timedelta(days=30)
"""Looked at so much later, no file is too young."""
Rows = dict[tuple[str, int], list[str]]

_JUDGED = re.compile(r"(?:data|_deletions|_indices|_transactions)/.+")
_UNFINISHED = re.compile(r"(?:^|/)\.tmp\w+$")
"""Temporary files of pylance: a process that is killed while it writes leaves one."""
_CLONE = re.compile(r"_staging/[^/]+/[^/]+/.+")
"""Files of a compaction that was interrupted."""
_STAGED = re.compile(r"_versions/.+\.manifest-.+")


def find_orphans(
    store: ObjectStore, *, now: datetime, older_than: timedelta = OLD, tables: Sequence[Sequence[str]] = ()
) -> MarkResult:
    """What the mark phase finds on the newest version of the catalog, of which all versions of tables are kept."""
    table = ManifestTable(store)
    mark = MarkPhase(store, table, table.refresh_by_listing(), now - older_than, [tuple(each) for each in tables])
    mark.look()
    return mark.report()


def list_orphans(root: Path, *tables: Sequence[str], later: timedelta = LATER) -> MarkResult:
    """The report on a root in a directory, or on some tables of it, `later` than now.

    Checks that the look wrote nothing, if no table is named: then no server runs.
    """
    before = {} if tables else {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    report = find_orphans(LocalStore(root, "none"), now=datetime.now(UTC) + later, tables=tables)
    assert tables or {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    return report


def check_exact(root: Path, *tables: Sequence[str]) -> MarkResult:
    """The orphans of a quiet root, or of quiet tables, are what is on storage less what pylance needs. The report."""
    report = list_orphans(root, *tables)
    assert not report.not_judged
    assert not report.young
    listed = {orphan.path for orphan in report.orphans if orphan.table is not None or not tables}
    wanted = expected(root, *tables)
    assert listed == wanted, f"listed, but needed: {listed - wanted}; not listed: {wanted - listed}"
    return report


def remove(root: Path, report: MarkResult, *tables: Sequence[str]) -> Rows:
    """Remove exactly the listed files; all versions are valid and have the rows they had. The rows of each version."""
    before = contents(root, *tables)
    for orphan in report.orphans:
        if orphan.table is not None or not tables:
            (root / orphan.path).unlink()
    assert contents(root, *tables) == before
    again = list_orphans(root, *tables)
    assert [orphan for orphan in again.orphans if orphan.table is not None or not tables] == []
    assert again.not_judged == {}
    return before


def check_and_remove(root: Path, *tables: Sequence[str]) -> MarkResult:
    """`check_exact`, then `remove`. The report."""
    report = check_exact(root, *tables)
    remove(root, report, *tables)
    return report


def expected(root: Path, *tables: Sequence[str]) -> set[str]:
    """The files of the catalog's tables that no version needs, by pylance and the names of the format."""
    needed: set[str] = set()
    for location in locations(root, *tables):
        for dataset in versions(root / location):
            needed |= set(needs(dataset))
    staging = root / "_staging"
    found = set() if tables else {str(path.relative_to(root)) for path in staging.glob("*-*") if path.is_file()}
    for location in locations(root, *tables):
        for path in (root / location).rglob("*"):
            if not path.is_file():
                continue
            key = str(path.relative_to(root / location))
            within = _JUDGED.search(key)
            is_left = any(pattern.search(key) for pattern in (_STAGED, _UNFINISHED, _CLONE))
            if is_left or (within is not None and name_of(within[0]) not in needed):
                found.add(str(path.relative_to(root)))
    return found


def name_of(within: str) -> str:
    """The name of a file as `needs` has it: files of one index segment share the name of its directory."""
    return "/".join(within.split("/")[:2])


def needs(dataset: lance.LanceDataset) -> Iterator[str]:
    """The names of the files that a version needs, wherever they lie."""
    for fragment in dataset.get_fragments():
        yield from (f"data/{file.path}" for file in fragment.data_files())
        deletion = fragment.deletion_file()
        if deletion is not None:
            yield f"_deletions/{Path(deletion).name}"
    for index in dataset.describe_indices():
        yield from (f"_indices/{segment.uuid}" for segment in index.segments)
    transaction = _transaction(dataset)
    if transaction is not None:
        yield f"_transactions/{transaction.read_version}-{transaction.uuid}.txn"


def _transaction(dataset: lance.LanceDataset) -> Any:
    try:
        return dataset.read_transaction(dataset.version)
    except TypeError:  # pylance 14.0.2 cannot show a compaction that moved index segments
        return Dataset.open(dataset.uri, dataset.version).transaction


def locations(root: Path, *tables: Sequence[str]) -> list[str]:
    """The locations of these tables, or of all, in the newest version of the catalog."""
    snapshot = ManifestTable(LocalStore(root, "none")).refresh()
    wanted = [tuple(table) for table in tables] or snapshot.all_tables()
    return [table.location for table in map(snapshot.table, wanted) if table is not None]


def versions(table: Path) -> Iterator[lance.LanceDataset]:
    """Every version of every branch of a table, opened by its URI."""
    for directory in sorted(table.rglob("_versions")):
        if _CLONE.match(f"{directory.relative_to(table)}/"):
            continue
        for file in directory.glob("*.manifest"):
            is_detached = file.stem.startswith("d")
            version = int(file.stem[1:]) if is_detached else 2**64 - 1 - int(file.stem)
            yield lance.dataset(str(directory.parent), version=version)


def contents(root: Path, *tables: Sequence[str]) -> Rows:
    """The rows of every version of these tables, or of all, each validated by pylance."""
    found: Rows = {}
    for location in locations(root, *tables):
        for dataset in versions(root / location):
            dataset.validate()
            rows = dataset.to_table().to_pylist()
            found[dataset.uri, dataset.version] = sorted(map(str, rows))
    return found

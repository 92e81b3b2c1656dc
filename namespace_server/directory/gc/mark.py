"""The mark phase: finds the unreferenced files of a catalog's tables. Reads only.

The order of the looks makes the result safe against commits that run meanwhile (rule G5 of a collector: list files,
then read manifests). A manifest moves from `_staging/` to its canonical name, and an unmanaged one from there to
`_staging/foreign/`, so `_staging/` is read before and after the directories of versions:

    rows        which tables there are, and which staged manifests are committed
    files       of each table that is judged
    manifests   those below `_staging/` of the root, of every table, and below `_staging/` again
    rows        whose staged manifests, and whose heads, must be among what was read

Rows of earlier catalog versions need no look of their own: their manifests are promoted, or belong to an open record
(rule A2: a record expires only when its promotions are verified).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property

from lance_core.cleanup.kinds import FileKind
from lance_core.cleanup.survey import ExpiredVersions, FileSurvey, KnownFiles, UnnamedFile, UnreadableManifest
from lance_core.errors import CorruptFile
from lance_core.storage.port import ObjectMeta, ObjectStore
from namespace_server.directory.gc.directories import (
    Places,
    find_places,
    former_base,
    is_owned,
    role_at_root,
    row_of_manifest,
)
from namespace_server.directory.gc.lost_versions import Lost, LostVersions
from namespace_server.directory.gc.report import (
    EXPIRED,
    INTERRUPTED,
    NAMED_BY_UNPUBLISHED,
    OF_REMOVED,
    UNNAMED,
    UNPUBLISHED,
    MarkResult,
    Orphan,
)
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.deleted_branches import is_deleted_branch
from namespace_server.directory.manifests.staged_bundles import StagedPaths, bundles_of
from namespace_server.directory.model.entries import VersionEntry, place_of
from namespace_server.directory.model.intents import held_horizons
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.observability.observation import Progress, no_progress


class MarkPhase:
    """One mark phase, whose first look at the rows is `snapshot`.

    Files that were written at or after `cutoff` are too young to be judged, and at a location that an intent names
    those from its effective horizon on (G4). `wanted` are the tables to judge, also those whose locations the catalog
    does not own; empty for all that it owns. `expired` says which versions are not to be
    kept (see `FileSurvey`); by default all are. `deleted` gives rows that earlier kept versions of the catalog have, as
    far as they are known. `purging` are the locations of tables that are gone as a whole. At the
    locations `left_out`, where no manifest may name files of other tables, only versions are looked at that are
    committed meanwhile. Of the locations in `known` only what is new is looked at as long as nothing goes there
    (`FileSurvey`). `progress` is called with the locations that are listed, and then those whose manifests are
    read.
    """

    def __init__(
        self,
        store: ObjectStore,
        manifest_table: ManifestTable,
        snapshot: CatalogSnapshot,
        cutoff: datetime,
        wanted: Collection[ObjectId] = (),
        *,
        expired: ExpiredVersions = lambda _location, _meta: False,
        deleted: Callable[[], Iterable[VersionEntry]] = tuple,
        purging: Collection[str] = (),
        left_out: Collection[str] = (),
        known: Mapping[str, KnownFiles] | None = None,
        progress: Progress = no_progress,
    ) -> None:
        self._store = store
        self._manifest_table = manifest_table
        self._snapshot = snapshot
        self._newest = snapshot
        self._cutoff = cutoff
        self._places = find_places(store, snapshot, wanted)
        self.removed: Mapping[str, str] = dict(self._places.removed)
        """The directories of dropped and deregistered tables, with the state of their tombstones."""
        self._places.leave_out(left_out)
        self._left_out = left_out
        self._known = known or {}
        self._progress = progress
        self._purging = [location for location in self._places.removed if location in purging]
        cutoffs = {
            location: min(cutoff, datetime.fromtimestamp(horizon, UTC))
            for location, horizon in held_horizons(snapshot).items()
        }
        self._bundles = StagedPaths(store)
        self._survey = FileSurvey(store, cutoff, _published(snapshot).keys(), expired, cutoffs, self._expected)
        self._deleted_branches: list[VersionEntry] = []
        self._deleted = deleted

    @property
    def listings(self) -> Mapping[str, KnownFiles]:
        """The files of each table that was judged, by its location (see `FileSurvey`)."""
        return self._survey.listings

    @property
    def naming_others(self) -> Collection[str]:
        """The locations of manifests that may name files of other tables, as far as they were read."""
        places, survey, snapshot = self._places, self._survey, self._snapshot
        tables = {**places.judged, **places.skipped}
        looked = [location for location, table_id in tables.items() if snapshot.head(table_id, None) is not None]
        unknown = {*looked, *places.others, *places.removed} - survey.understood
        return survey.naming_others | unknown

    @property
    def deleted_branches(self) -> Sequence[VersionEntry]:
        """The newest versions of branches that clients deleted by path, as the report met them (M8)."""
        return self._deleted_branches

    def look(self) -> None:
        """List the files, then read the manifests.

        Raises `CatalogDamaged` and `CatalogTooNew` where the rows of the catalog cannot be read, and `StorageError`.
        """
        judged = list(self._places.judged)
        for number, location in enumerate(judged):
            self._progress("list", number, len(judged))
            self._survey.survey_table(location, self._known.get(location))
        for location in self._purging:
            self._survey.survey_removed(location)
        self.look_again()

    def look_again(self) -> None:
        """Read the manifests that were written since; files that they name are no orphans. Raises as `look`."""
        places, survey = self._places, self._survey
        survey.read_staging("", role_at_root)
        self._read_published(self._snapshot)
        removed = [location for location in places.removed if location not in self._purging]
        others: Sequence[str] = (*places.others, *places.skipped, *removed, *places.unexplained)
        total = len(places.judged) + len(others)
        for number, location in enumerate((*places.judged, *others)):
            self._progress("mark", number, total)
            survey.read_again(location, everything=location not in places.judged)
        self._newest = self._manifest_table.refresh_by_listing()
        self._read_published(self._newest)
        survey.read_staging("", role_at_root)
        survey.keep_bundles(bundles_of(_published(self._newest)))

    def _read_published(self, snapshot: CatalogSnapshot) -> None:
        """Read the committed manifests that may have no canonical name, if they were not read as such."""
        known = _published(self._snapshot)
        for path, location in _published(snapshot).items():
            if path not in known or not self._survey.has_read(path):
                self._add_published(path, location)

    def _add_published(self, path: str, location: str) -> bool:
        """Read the manifest of a committed version at a name of its own, or in a bundle. Whether it is there."""
        data = self._bundles.find_bundled(path)
        if data is None:
            return self._survey.add_published(path, location)
        self._survey.take_published(ObjectMeta(path, len(data), None, datetime.now(UTC)), data, location)
        return True

    def remove_empty_directories(self) -> None:
        """Remove directories that hold nothing since the cutoff, and all those of tables that are gone as a whole."""
        for location in self._places.judged:
            self._store.remove_empty_directories(location, self._survey.cutoff_at(location))
        for location in self._purging:
            self._store.remove_empty_directories(location, datetime.max.replace(tzinfo=UTC))

    def report(self) -> MarkResult:
        """The findings. Reads the manifests of heads, and of versions committed meanwhile, that were not read yet.

        If something was found, the manifests of all other versions are asked for that no listing had (rule G29).
        """
        lost = self._read_rows()
        found = self._judge(lost)
        if not found.orphans:
            return found
        tables = {orphan.table for orphan in found.orphans}
        going = [place for place, table_id in self._places.judged.items() if join(table_id) in tables]
        gone = {(row.location, row.branch) for row in self._deleted_branches}
        return self._judge({**self._lost_versions.find(going, self._left_out, gone, self._deleted()), **lost})

    @cached_property
    def _lost_versions(self) -> LostVersions:
        return LostVersions(self._store, self._survey, self._snapshot, self._add_published, self._manifest_table.kept)

    def _judge(self, lost: Mapping[str, Lost]) -> MarkResult:
        """The findings, given that versions at the locations `lost` have no manifest."""
        newest, places, cutoff, survey = self._newest, self._places, self._cutoff, self._survey
        ids = {location: newest.table_at(location) for location in places.judged}
        unexpected = (
            each
            for each in survey.unexpected.values()
            if not self._is_staged(each) and not self._is_of_another_branch(each)
        )
        problems = [self._with_others(problem) for problem in (*survey.problems, *unexpected)]
        not_judged = _unreadable(
            problems, survey.unknown, places, _published(self._snapshot) | _published(newest), cutoff
        )
        not_judged |= {place: lost[place].text for place in lost.keys() & ids.keys()}
        others = [lost[place].text for place in sorted(lost) if lost[place].may_name_others]
        not_judged |= {place: problem for problem in others[:1] for place in ids if place not in not_judged}
        all_understood = not others and not any(problem.may_name_others for problem in problems)
        files = [file for file in survey.files() if _is_judged(file, not_judged, ids, all_understood)]
        old = {file.meta.path for file in files if self._is_old(file)}
        found = sorted(
            (_orphan(file, ids.get(file.location)) for file in files),
            key=lambda orphan: (orphan.table or "", orphan.path),
        )
        return MarkResult(
            newest.version,
            tuple(sorted(join(table_id) for place, table_id in ids.items() if table_id and place not in not_judged)),
            tuple(orphan for orphan in found if orphan.path in old),
            tuple(orphan for orphan in found if orphan.path not in old),
            tuple(sorted(survey.unknown)),
            not_judged,
            {location: join(table_id) for location, table_id in places.skipped.items()},
            places.removed,
            tuple(directory for directory in places.unexplained if newest.table_at(directory) is None),
        )

    def _expected(self, location: str, path: str) -> str | None:
        """The SHA-256 of the manifest of a row, by the key of its table and its own."""
        row = row_of_manifest(self._snapshot, location, path)
        return None if row is None else row.sha256 or None

    def _is_staged(self, problem: UnreadableManifest) -> bool:
        """Whether another file has the name of a committed manifest, which was read under its staged name."""
        row = self._lost_versions.row_at(problem.location, problem.meta.path)
        staged = None if row is None else row.staged_path or self._snapshot.open_path(place_of(row))
        return staged is not None and self._survey.has_read(staged)

    def _is_of_another_branch(self, problem: UnreadableManifest) -> bool:
        """Whether it is a manifest of a branch that a client deleted, and made again, by path (M8)."""
        row = self._lost_versions.row_at(problem.location, problem.meta.path)
        head = None if row is None or row.branch is None else self._newest.head(row.table_id, row.branch)
        return head is not None and is_deleted_branch(self._store, self._newest, head)

    def _with_others(self, problem: UnreadableManifest) -> UnreadableManifest:
        """A manifest that cannot be read, of a version that has a row, may have named files of other tables."""
        if problem.may_name_others or problem.kind is not FileKind.MANIFEST:
            return problem
        row = self._lost_versions.row_at(problem.location, problem.meta.path)
        may_name_others = row is not None and self._lost_versions.may_name_others(problem.location, row)
        return replace(problem, may_name_others=may_name_others)

    def _read_rows(self) -> dict[str, Lost]:
        """Read the manifests of heads, and of versions committed since the first look, that were not read yet.

        At the locations that are left out heads are not read. Returns the locations whose needs are not known, because
        the manifest of a head is missing, with the reason.
        """
        before, newest = self._snapshot, self._newest
        lost: dict[str, Lost] = {}
        self._deleted_branches.clear()
        for table_id in newest.all_tables():
            for branch in newest.chains(table_id):
                head, known = newest.head(table_id, branch), before.head(table_id, branch)
                first = 1 if known is None else known.version + (known.location in self._left_out)
                for row in newest.versions(table_id, branch, start=first):
                    staged = row.staged_path or newest.open_path(place_of(row))
                    paths = [path for path in (row.canonical_path, staged, row.canonical_path) if path]
                    if any(self._survey.has_read(path) or self._add_published(path, row.location) for path in paths):
                        continue
                    # The manifest of another version is gone (M5).
                    if row == head and is_deleted_branch(self._store, newest, row):
                        self._deleted_branches.append(row)
                    elif row == head:
                        lost[row.location] = Lost(
                            f"version {row.version} of {join(table_id)}: expected its manifest at "
                            f"{row.canonical_path}, found none",
                            self._lost_versions.may_name_others(row.location, row),
                        )
        return lost

    def _is_old(self, file: UnnamedFile) -> bool:
        return file.removed or file.judged_by < self._survey.cutoff_at(file.location)


def _published(snapshot: CatalogSnapshot) -> dict[str, str]:
    """The staged manifests of committed versions that may not be promoted, with the locations of their tables."""
    return {
        party.staged_path: party.location
        for record in snapshot.open_records()
        for party in record.participants
        if party.staged_path
    }


def _unreadable(
    problems: Iterable[UnreadableManifest],
    unknown: dict[str, ObjectMeta],
    places: Places,
    published: Mapping[str, str],
    cutoff: datetime,
) -> dict[str, str]:
    """The locations that cannot be judged because of a manifest, with the reason.

    One that may have base paths may need files of any table.
    A staged manifest at the root belongs to a table that is not known, unless it is published. It matters only while it
    may be committed: not if it is damaged, nor once it is old; then it is among the `unknown` files.
    """
    found: dict[str, str] = {}
    for problem in problems:
        path, error = problem.meta.path, problem.problem
        base = former_base(path) or published.get(path) or problem.location
        is_over = isinstance(error, CorruptFile) or problem.meta.last_modified < cutoff
        if not base and problem.kind is FileKind.STAGED and is_over:
            unknown[path] = problem.meta
            continue
        everywhere = not base or problem.may_name_others
        owners = [place for place in places.judged if everywhere or f"{base}/".startswith(f"{place}/")]
        found |= {location: str(error) for location in owners or [base]}
    return found


def _is_judged(
    file: UnnamedFile, not_judged: Mapping[str, str], ids: Mapping[str, ObjectId | None], all_understood: bool
) -> bool:
    """Whether the table of a file is judged and still there. A staged manifest at the root is, if all tables are.

    Files of a table that is gone as a whole are, unless a manifest that is not understood may name them.
    """
    if file.removed:
        return all_understood or not file.name
    if file.location:
        return file.location not in not_judged and ids.get(file.location) is not None
    return not not_judged


def _orphan(file: UnnamedFile, table_id: ObjectId | None) -> Orphan:
    meta = file.meta
    if file.removed:
        reason = OF_REMOVED
    elif file.kind is FileKind.MANIFEST:
        reason = EXPIRED
    elif file.kind is FileKind.SCRATCH:
        reason = INTERRUPTED
    elif file.kind in {FileKind.STAGED, FileKind.BUNDLE}:
        reason = UNPUBLISHED
    else:
        reason = UNNAMED if file.staged_in is None else NAMED_BY_UNPUBLISHED
    table = None if table_id is None else join(table_id)
    owned = file.removed or not file.location or is_owned(file.location)
    return Orphan(meta.path, meta.size, meta.last_modified, file.kind.value, table, reason, file.judged_by, owned)

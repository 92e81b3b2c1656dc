"""Finds the files of tables that no manifest names. Reads only.

A commit may happen between two looks, so files are always listed before manifests:

    survey_table     reads the manifests of a table, lists its files, and keeps those that no manifest named
    survey_removed   lists the files of a table that is gone as a whole, and keeps those that others may name
    read_again       reads the manifests that were written meanwhile, and drops what they name

One listing has all of a table with few files. Of one that has many, manifests are listed for themselves: the
first time to save memory, since what they name need not be kept.

Of a table whose files were listed before, and were all named (`KnownFiles`), only the manifests are read that were
written since, as long as nothing goes: before a file is found that may go, all manifests are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b, sha256
from typing import Final, NamedTuple

from lance_core.cleanup.kinds import FileKind, FileRole, is_write_ahead, role_of
from lance_core.cleanup.reachability import read_needs
from lance_core.commit.staged import STAGING_DIRECTORY
from lance_core.errors import CorruptFile, LanceCoreError, NotFound, OversizedFile, UnsupportedFeature
from lance_core.format.manifest import MAGIC, parse_manifest_file
from lance_core.format.naming import BRANCHES_DIRECTORY, join_key, versions_directory
from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.storage.sizes import check_size
from lance_core.versions import find_contents

_MANIFESTS: Final = frozenset({FileKind.MANIFEST, FileKind.STAGED, FileKind.NESTED})
_MANIFEST: Final = FileRole(FileKind.MANIFEST)
_MANY: Final = 1_000
"""Files of a table that are not listed only to find its manifests. A service lists as many in one answer."""
_READ_AT_ONCE: Final = 64
_READINGS: Final = 3
"""Readings of a directory in which manifests vanish between listing and reading."""

Roles = Callable[[str], FileRole | None]
ExpectedManifest = Callable[[str, str], str | None]
"""The SHA-256 that a canonical manifest of a table, at a location, has to have; None if it is not known."""
ExpiredVersions = Callable[[str, ObjectMeta], bool]
"""Whether the canonical manifest of a table, at a location, is of a version that is not to be kept."""
TakeNames = Callable[[frozenset[str]], object]


@dataclass(frozen=True, slots=True)
class UnnamedFile:
    """A file that no manifest names, or the manifest of an expired version.

    Attributes:
        meta: Key, size and date.
        kind: Its kind.
        location: The key of the root of its table.
        name: The name by which a manifest would need it; empty for manifests, compaction clones and references.
        staged_in: The key of an old staged manifest that names it, if there is one.
        removed: Whether it belongs to a table that is gone as a whole.
        with_others: The date of the youngest of the files that are needed together, if there are others: those of one
            name, such as blobs and their data file, or those of a compaction clone.
    """

    meta: ObjectMeta
    kind: FileKind
    location: str
    name: str = ""
    staged_in: str | None = None
    removed: bool = False
    with_others: datetime | None = None

    @property
    def judged_by(self) -> datetime:
        """The date by which it is old or young: a writer may commit it together with the youngest."""
        return self.with_others or self.meta.last_modified


class KnownFiles(NamedTuple):
    """The files of a table, as a listing found them, without references and hints, which name no file of rows.

    Attributes:
        digest: 16 bytes that differ for files that differ in a key, a size, a date or an e_tag.
        youngest: The date of the youngest in microseconds since the epoch; 0 if there was none.
    """

    digest: bytes
    youngest: int


class _Listing:
    """The digest of the files of a listing that are not younger than `until`, in microseconds since the epoch."""

    def __init__(self, until: int | None = None) -> None:
        self._until = until
        self._digest = blake2b(digest_size=16)
        self._youngest = 0
        self.count = 0

    def add(self, meta: ObjectMeta, role: FileRole | None) -> bool:
        """Add a file; whether it is not younger. Commits replace hints, so these are left out."""
        self.count += 1
        written = round(meta.last_modified.timestamp() * 1_000_000)
        if self._until is not None and written > self._until:
            return False
        if role is not None and role.kind is FileKind.BOOKKEEPING:
            return True
        self._youngest = max(self._youngest, written)
        self._digest.update(f"{meta.path}\n{meta.size} {written} {meta.e_tag}\n".encode())
        return True

    def known(self) -> KnownFiles:
        """The files that were added."""
        return KnownFiles(self._digest.digest(), self._youngest)


class _ToRead(NamedTuple):
    """What listings of a table found to read: manifests, and the files of compaction clones by directory."""

    manifests: list[ObjectMeta]
    clones: dict[str, list[ObjectMeta]]


@dataclass(frozen=True, slots=True)
class UnreadableManifest:
    """A manifest whose needs cannot be determined, and why. The table at `location` cannot be judged.

    `may_name_others`: it may have base paths, and so need files of other tables.
    """

    meta: ObjectMeta
    location: str
    kind: FileKind
    problem: LanceCoreError
    may_name_others: bool = False


class FileSurvey:
    """The files of the tables in `store` that no manifest names, collected table by table.

    A staged manifest names files while it may still be committed: while it is not older than `cutoff`, or than what
    `cutoffs` has for its table, or if it is in `published`, the keys of staged manifests that are committed. Names of a
    manifest with base paths are needed in all tables. A canonical manifest that `expired` says is not to be kept names
    nothing, and is itself a file that no manifest names; without it all are kept.

    Attributes:
        listings: For each table whose files were listed, by its location, what `list_known` answers for them.
        naming_others: The locations of manifests that may name files of other tables.
        understood: The locations of tables of which a manifest was read whose needs are known.
        with_bases: By their keys, the SHA-256 of the manifests that have base paths.
        unexpected: By their keys, the manifests that are others than expected. What they name is needed all the same.
        problems: The manifests whose needs cannot be determined.
        unknown: Files whose names have no known form, by key.
    """

    def __init__(
        self,
        store: ObjectStore,
        cutoff: datetime,
        published: Collection[str] = (),
        expired: ExpiredVersions = lambda _location, _meta: False,
        cutoffs: Mapping[str, datetime] | None = None,
        expected: ExpectedManifest = lambda _location, _path: None,
    ) -> None:
        self.listings: dict[str, KnownFiles] = {}
        self.naming_others: set[str] = set()
        self.understood: set[str] = set()
        self.with_bases: dict[str, str] = {}
        self.unexpected: dict[str, UnreadableManifest] = {}
        self.problems: list[UnreadableManifest] = []
        self.unknown: dict[str, ObjectMeta] = {}
        self._store = store
        self._cutoff = cutoff
        self._cutoffs = cutoffs or {}
        self._published = published
        self._is_expired = expired
        self._expected = expected
        self._expired: dict[str, UnnamedFile] = {}
        self._removed: list[UnnamedFile] = []
        self._read: dict[str, tuple[int, datetime]] = {}
        self._small: set[str] = set()
        self._unnamed: dict[str, list[UnnamedFile]] = {}
        self._unpublished: dict[str, UnnamedFile] = {}
        self._scratch: dict[str, dict[str, UnnamedFile]] = {}
        self._needed_anywhere: set[str] = set()
        self._staged_names: dict[str, str] = {}

    def cutoff_at(self, location: str) -> datetime:
        """The date before which files of the table at this location must be written to be judged."""
        return self._cutoffs.get(location, self._cutoff)

    def has_read(self, path: str) -> bool:
        """Whether the manifest at this key was read."""
        return path in self._read

    def files(self) -> Iterator[UnnamedFile]:
        """The files that no manifest names: of all tables, then manifests, then those of tables that are gone."""
        for name, found in self._unnamed.items():
            if name not in self._needed_anywhere:
                staged_in = self._staged_names.get(name)
                files = found if staged_in is None else [replace(file, staged_in=staged_in) for file in found]
                yield from _together(files)
        yield from self._unpublished.values()
        yield from self._expired.values()
        yield from self._removed
        for clone in self._scratch.values():
            yield from _together(list(clone.values()))

    def survey_table(self, location: str, known: KnownFiles | None = None) -> None:
        """List the files of the table at the key `location`. Raises `StorageError`.

        Args:
            location: The key.
            known: The files of an earlier listing, each of which was named then, by manifests without base paths.
        """
        needed: set[str] = set()
        if known is not None and self._survey_new(location, known, needed):
            return
        found = _ToRead([], {})
        kept: dict[str, list[UnnamedFile]] = {}
        listing, is_small = _Listing(), True
        for meta, role in self._files(location):
            listing.add(meta, role)
            if role is None or self._note_manifest(location, meta, role, found) or not role.name:
                continue
            if is_small and listing.count >= _MANY:
                is_small = False
                self._take(location, self._listed(location, versions_directory(location)), needed.update)
                kept = {name: files for name, files in kept.items() if name not in needed}
            if role.name not in needed:
                kept.setdefault(role.name, []).append(UnnamedFile(meta, role.kind, location, role.name))
        self._note_listing(location, listing)
        self._take(location, found, needed.update)
        for name, files in kept.items():
            if name not in needed:
                self._unnamed.setdefault(name, []).extend(files)

    def _survey_new(self, location: str, known: KnownFiles, needed: set[str]) -> bool:
        """Judge what was written since `known` was listed; whether that is enough, because nothing may go.

        It is not if a file of then is gone or is another one, if a version is expired, or if a file is old that nothing
        written since names. What the manifests name that were read is in `needed` in any case.
        """
        before, listing = _Listing(known.youngest), _Listing()
        old: list[ObjectMeta] = []
        new = _ToRead([], {})
        files: list[UnnamedFile] = []
        for meta, role in self._files(location):
            listing.add(meta, role)
            is_old = before.add(meta, role)
            if role is None:
                continue
            if role.kind is FileKind.MANIFEST and self._is_expired(location, meta):
                return False
            if is_old and role.kind in _MANIFESTS:
                old.append(meta)
            elif not self._note_manifest(location, meta, role, new) and role.name and not is_old:
                files.append(UnnamedFile(meta, role.kind, location, role.name))
        if before.known() != known:
            return False
        self._take(location, new, needed.update)
        unnamed = [file for file in files if file.name not in needed]
        if any(file.meta.last_modified < self.cutoff_at(location) for file in unnamed):
            return False
        self._note_listing(location, listing)
        self._read.update((meta.path, (meta.size, meta.last_modified)) for meta in old)
        if old:
            self.understood.add(location)
        for file in unnamed:
            self._unnamed.setdefault(file.name, []).append(file)
        return True

    def _files(self, location: str) -> Iterator[tuple[ObjectMeta, FileRole | None]]:
        """The files of a table with their roles; those of no known form are noted."""
        for meta in _all_files(self._store, location):
            role = role_of(meta.path.removeprefix(f"{location}/"))
            if role is None:
                self.unknown[meta.path] = meta
            yield meta, role

    def _note_listing(self, location: str, listing: _Listing) -> None:
        self.listings[location] = listing.known()
        if listing.count < _MANY:
            self._small.add(location)

    def survey_removed(self, location: str) -> None:
        """List the files at `location`, of a table that is gone as a whole. Raises `StorageError`.

        Its manifests protect nothing. Files that others may name by base paths are kept as far as they are named. A
        dataset inside its directory stays, but one inside its write-ahead log.
        """
        nested = _ToRead([], {})
        for meta, role in self._files(location):
            if role is None:
                continue
            if role.name:
                file = UnnamedFile(meta, role.kind, location, role.name, removed=True)
                self._unnamed.setdefault(role.name, []).append(file)
            elif role.kind is FileKind.NESTED and not is_write_ahead(meta.path.removeprefix(f"{location}/")):
                nested.manifests.append(meta)
            else:
                self._removed.append(UnnamedFile(meta, role.kind, location, removed=True))
        self._take(location, nested, self._drop)

    def read_again(self, location: str, *, everything: bool = False) -> None:
        """Read the manifests of a table that were not read yet; files that they name are unreferenced no longer.

        With `everything` manifests are looked for in all directories below `location`. Raises `StorageError`.
        """
        if everything or location in self._small:
            if not self._take(location, self._listed(location, location), self._drop):
                return
        else:
            self.read_staging(location)
        # A staged manifest that vanished has been promoted, so what may name its files is listed after it.
        directories = (versions_directory(location), join_key(location, BRANCHES_DIRECTORY))
        for directory in (location,) if everything else directories:
            for _ in range(_READINGS):
                vanished = self._take(location, self._listed(location, directory), self._drop)
                if not vanished:
                    break
            else:
                problem = NotFound(f"{self._store.object_uri(vanished[0].path)}: removed before it was read")
                self.problems.append(UnreadableManifest(vanished[0], location, FileKind.MANIFEST, problem))

    def read_staging(self, location: str, roles: Roles = role_of) -> None:
        """Read the staged manifests and compaction clones of a table, or with '' those of the root of the store.

        What they name is no longer unnamed. `roles` gives the role of a file by its key relative to `location`. Raises
        `StorageError`.
        """
        found = self._listed(location, join_key(location, STAGING_DIRECTORY), roles)
        self._take(location, found, self._drop, roles)

    def add_published(self, path: str, location: str) -> bool:
        """Read the staged manifest of a committed version, wherever it lies. Whether it is there."""
        try:
            data, meta = self._store.get_with_meta(path)
        except NotFound:
            return False
        self.take_published(meta, data, location)
        return True

    def take_published(self, meta: ObjectMeta, data: bytes, location: str) -> None:
        """Take the manifest of a committed version, which has this staged path. What it names is needed at any age."""
        self._unpublished.pop(meta.path, None)
        self._note(location, FileKind.MANIFEST, meta, data, self._drop)

    def keep_bundles(self, keys: Collection[str]) -> None:
        """Bundles that have manifests of committed versions are named by these."""
        self._drop(frozenset(keys))

    def _listed(self, location: str, directory: str, roles: Roles = role_of) -> _ToRead:
        """What is to be read in a directory of a table, or of the root of the store."""
        found = _ToRead([], {})
        prefix = f"{location}/" if location else ""
        for meta in _all_files(self._store, directory):
            role = roles(meta.path.removeprefix(prefix))
            if (role is not None and self._note_manifest(location, meta, role, found)) or location:
                continue
            if role is None:
                self.unknown[meta.path] = meta
            elif role.kind in {FileKind.UNFINISHED, FileKind.BUNDLE}:
                self._unnamed[meta.path] = [UnnamedFile(meta, role.kind, location, meta.path)]
        return found

    def _note_manifest(self, location: str, meta: ObjectMeta, role: FileRole, found: _ToRead) -> bool:
        """Whether a file is a manifest or of a compaction clone: to be read then, or of a version that is expired."""
        if role.kind is FileKind.SCRATCH:
            found.clones.setdefault(join_key(location, role.directory), []).append(meta)
        elif role.kind is FileKind.MANIFEST and self._is_expired(location, meta):
            self._expired[meta.path] = UnnamedFile(meta, FileKind.MANIFEST, location)
        elif role.kind in _MANIFESTS:
            found.manifests.append(meta)
        else:
            return False
        return True

    def _take(self, location: str, found: _ToRead, take_names: TakeNames, roles: Roles = role_of) -> list[ObjectMeta]:
        """Read manifests that were not read yet, and pass on what they name. Returns those that vanished."""
        manifests = found.manifests
        for directory, metas in found.clones.items():
            self._scratch[directory] = {meta.path: UnnamedFile(meta, FileKind.SCRATCH, location) for meta in metas}
            if _youngest(metas) >= self.cutoff_at(location):  # else its compaction was interrupted
                manifests += (meta for meta in metas if role_of(meta.path.removeprefix(f"{directory}/")) == _MANIFEST)
        prefix = f"{location}/" if location else ""
        unread = [meta for meta in manifests if self._read.get(meta.path) != (meta.size, meta.last_modified)]
        vanished: list[ObjectMeta] = []
        for first in range(0, len(unread), _READ_AT_ONCE):
            part = unread[first : first + _READ_AT_ONCE]
            for meta, data in zip(
                part, self._store.map(lambda meta: find_contents(self._store, meta.path), part), strict=True
            ):
                role = roles(meta.path.removeprefix(prefix))
                if data is None:
                    vanished.append(meta)
                elif role is not None:
                    self._note(location, role.kind, meta, data, take_names)
        return vanished

    def _is_framed(self, meta: ObjectMeta) -> bool:
        """Whether a file that is too large to be read ends as manifests do, so that others may read what it names."""
        return self._store.tail(meta.path, len(MAGIC))[0] == MAGIC

    def _is_expected(self, location: str, meta: ObjectMeta, data: bytes) -> bool:
        expected = self._expected(location, meta.path)
        found = None if expected is None else sha256(data).hexdigest()
        if found == expected:
            return True
        error = CorruptFile(f"{self._store.object_uri(meta.path)}: expected SHA-256 {expected}, found {found}")
        self.unexpected[meta.path] = UnreadableManifest(meta, location, FileKind.MANIFEST, error)
        return False

    def _drop(self, names: frozenset[str]) -> None:
        for name in self._unnamed.keys() & names:
            del self._unnamed[name]

    def _note(self, location: str, kind: FileKind, meta: ObjectMeta, data: bytes, take_names: TakeNames) -> None:
        self._read[meta.path] = (meta.size, meta.last_modified)
        is_unpublished = kind is FileKind.STAGED and meta.path not in self._published
        if is_unpublished:
            self._unpublished[meta.path] = UnnamedFile(meta, kind, location)
        try:
            check_size(self._store.uri, meta.path, meta.size)
            file, names = read_needs(self._store, meta, data)
        except (CorruptFile, UnsupportedFeature) as error:
            self._unpublished.pop(meta.path, None)
            may_have_bases = _may_have_bases(data) or (isinstance(error, OversizedFile) and self._is_framed(meta))
            self.problems.append(UnreadableManifest(meta, location, kind, error, may_have_bases))
            if may_have_bases:
                self.naming_others.add(location)
            return
        if is_unpublished and meta.last_modified < self.cutoff_at(location):
            self._staged_names.update(dict.fromkeys(names, meta.path))
            return
        take_names(names)
        if kind is FileKind.MANIFEST and self._is_expected(location, meta, data):
            self.understood.add(location)
        if file.manifest.base_paths:
            self._needed_anywhere.update(names)
            self.naming_others.add(location)
            self.with_bases[meta.path] = sha256(data).hexdigest()


def _all_files(store: ObjectStore, directory: str) -> Iterator[ObjectMeta]:
    yield from store.list(directory)
    yield from store.unfinished(directory)


def list_known(store: ObjectStore, location: str) -> KnownFiles:
    """The files of a table as a listing finds them. Raises `StorageError`."""
    listing = _Listing()
    for meta in _all_files(store, location):
        listing.add(meta, role_of(meta.path.removeprefix(f"{location}/")))
    return listing.known()


def _may_have_bases(data: bytes) -> bool:
    """Whether a manifest whose needs are not known may have base paths. Nothing can be read by a damaged one."""
    try:
        return bool(parse_manifest_file(data).manifest.base_paths)
    except CorruptFile:
        return False


def _together(files: Sequence[UnnamedFile]) -> Iterable[UnnamedFile]:
    """Files that are needed together, with the date of the youngest."""
    if len(files) == 1:
        return files
    date = _youngest(file.meta for file in files)
    return (replace(file, with_others=date) for file in files)


def _youngest(metas: Iterable[ObjectMeta]) -> datetime:
    return max(meta.last_modified for meta in metas)

"""The catalog's own keys below its root: nothing else of the catalog names a file there.

__manifest/                                       the dataset of the catalog
_staging/<batch uuid>.<attempt uuid>.<number>     manifests that this server builds, before they are promoted (N5)
_staging/<attempt uuid>.manifests                 in a bucket, those of one attempt in one object (`staged_bundles`)
_staging/foreign/<uuid>.<number>/<former key>     unmanaged files in quarantine (M6, P12; `quarantine`)
_staging/removing/<uuid>/<e_tag>/<former key>     files that are being removed if they have this e_tag (`removals`)
_staging/high-water/<number>                      high-water marks of the catalog version (`newest_version`)
_staging/turns/<uuid>                             a server that loses slots asks for a turn (`turns`)
_staging/gc/<run uuid>/{clock,plan-<n>,done-<n>}  the time of a run, what it deletes, and what is done
_staging/gc/<run uuid>/expiring/<uuid>/<former key>   manifests that a run removes if no reference names them (G17)
_staging/gc/periods/<number>                      a server collects in this period
_staging/gc/locations                             what runs saw at each location (scan state)
_staging/gc/kept/<number>.manifest                catalog versions that are needed, although they are not kept (G6)
_staging/uploads/<uuid>/{upload,end,part-<id>}  rows that are uploaded in parts (`multipart_uploads`)
_staging/newest.json                              the newest catalog version that was seen (F7)
_staging/backup.json                              when the root was last backed up (`backup_note`)
_staging/<uuid>/probe                             written and removed at once, to see whether the root can be written
_staging/<uuid>/<uuid>/<name>                     written and removed by a root check; formed as those of a compaction
_staging/restore.json                             a backup is being restored here: no server makes a catalog
_staging/maintenance/<seconds>                    the period of maintenance that began then has a server that does it
_audit/refused-<time>-<process>-<number>.jsonl    refused attempts, of servers of a local root; mode 600 (`audit_log`)
"""

from __future__ import annotations

import re
from typing import Final

from lance_core.cleanup.kinds import UUID_PATTERN
from lance_core.commit.staged import STAGING_DIRECTORY

MANIFEST_TABLE: Final = "__manifest"
STAGING: Final = STAGING_DIRECTORY
QUARANTINE: Final = f"{STAGING}/foreign"
REMOVALS: Final = f"{STAGING}/removing"
HIGH_WATER_MARKS: Final = f"{STAGING}/high-water"
TURN_REQUESTS: Final = f"{STAGING}/turns"
UPLOADS: Final = f"{STAGING}/uploads"
GC_RUNS: Final = f"{STAGING}/gc"
GC_PERIODS: Final = f"{GC_RUNS}/periods"
SCAN_STATE: Final = f"{GC_RUNS}/locations"
KEPT_VERSIONS: Final = f"{GC_RUNS}/kept"
EXPIRING: Final = "expiring"
"""The directory, below a run's own key, of copies of manifests that it is deleting."""
NEWEST_VERSION_NOTE: Final = f"{STAGING}/newest.json"
BACKUP_NOTE: Final = f"{STAGING}/backup.json"
RESTORE_CLAIM: Final = f"{STAGING}/restore.json"
MAINTENANCE_CLAIMS: Final = f"{STAGING}/maintenance"
AUDIT: Final = "_audit"
RESERVED: Final = frozenset({MANIFEST_TABLE, STAGING, AUDIT, "lost+found"})
"""First components of keys that no table may have as its location.

The root of a catalog may be that of a file system, whose directory `lost+found` only its administrator lists.
"""

_BUILT: Final = re.compile(rf"{STAGING}/{UUID_PATTERN}\.({UUID_PATTERN})\.[0-9]+-[0-9]+", re.ASCII)
_BUNDLE: Final = re.compile(rf"{STAGING}/{UUID_PATTERN}\.manifests", re.ASCII)


def staged_manifest_key(batch_uuid: str, attempt: str, operation_index: int, version: int) -> str:
    """The key under which one attempt at a batch stages the manifest of an operation; never used twice (N5).

    No directory of its own: to make and remove one takes a local file system longer than to write the manifest.
    """
    return f"{STAGING}/{batch_uuid}.{attempt}.{operation_index}-{version}"


def is_built_manifest(key: str) -> bool:
    """Whether a key is of the form of `staged_manifest_key`."""
    return _BUILT.fullmatch(key) is not None


def bundle_key(staged: str) -> str | None:
    """The key of the object that has the manifest with this staged path and others of its attempt, if one has it.

    None for a path that is not of the form of `staged_manifest_key`: clients stage each manifest alone.
    """
    found = _BUILT.fullmatch(staged)
    return None if found is None else f"{STAGING}/{found[1]}.manifests"


def is_bundle(key: str) -> bool:
    """Whether a key is of the form that `bundle_key` gives."""
    return _BUNDLE.fullmatch(key) is not None


def upload_key(upload_id: str, name: str) -> str:
    """The key of the object `name` of the upload with this uuid."""
    return f"{UPLOADS}/{upload_id}/{name}"


def gc_run_key(run: str, name: str) -> str:
    """The key of the object `name` of the garbage collection run with the uuid `run`."""
    return f"{GC_RUNS}/{run}/{name}"


def kept_version_key(version: int) -> str:
    """The key of the copy of a catalog version that is needed although it is not kept."""
    return f"{KEPT_VERSIONS}/{version}.manifest"


def probe_key(name: str) -> str:
    """The key of the object whose writing shows that the root can be written; `name` is a uuid."""
    return f"{STAGING}/{name}/probe"


def scratch_directory(first: str, second: str) -> str:
    """A directory for objects that are removed at once, or as garbage if their writer died; two new uuids."""
    return f"{STAGING}/{first}/{second}"


def is_in_staging(key: str) -> bool:
    """Whether a key lies below `_staging/` at the root."""
    return key.startswith(f"{STAGING}/")

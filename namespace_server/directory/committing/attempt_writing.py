"""Writes the files that an attempt makes reachable, and looks meanwhile for changes of others on storage."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from lance_core.errors import StorageError
from lance_core.storage.port import Deferred, ObjectStore
from lance_core.versions import find_contents
from namespace_server.directory.committing.group_planner import FoundAbove, GroupAttempt
from namespace_server.directory.committing.write_fairness import WriteFairness
from namespace_server.directory.manifest_table.flip import Flip
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.conditional_removal import remove_if
from namespace_server.directory.manifests.deleted_branches import DeletedBranches
from namespace_server.directory.manifests.staged_bundles import objects_to_stage
from namespace_server.directory.manifests.stored_versions import versions_above
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.verifying.verifier import Verifier

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Observed:
    """The look at storage while the files of an attempt were written.

    Attributes:
        newest: The newest snapshot of the catalog.
        above: Versions of other writers above the heads of its chains (P5, P9).
        changed: Findings on which a batch was planned do not hold any more; see `Verifier.recheck`.
        deleted: Branches of its chains that a client deleted (M8).
    """

    newest: CatalogSnapshot
    above: FoundAbove = field(default_factory=dict)
    changed: bool = False
    deleted: frozenset[ChainKey] = frozenset()


class AttemptWriter:
    """Writes attempts. `sole_writer`: nothing is looked for above heads, as no other writer can commit there (P5)."""

    def __init__(
        self,
        store: ObjectStore,
        table: ManifestTable,
        verifier: Verifier,
        deleted_branches: DeletedBranches,
        fairness: WriteFairness,
        *,
        sole_writer: bool,
    ) -> None:
        self._store = store
        self._table = table
        self._verifier = verifier
        self._deleted_branches = deleted_branches
        self._fairness = fairness
        self._sole_writer = sole_writer

    def write(self, attempt: GroupAttempt, flip: Flip | None) -> Observed:
        """Write the files that the flip makes reachable, durably, and look at storage, in one parallel step (S1, P5).

        Raises `StorageError`, `CatalogDamaged`, `CatalogTooNew`, and as `ManifestTable.stage` does; some of the files
        may be written then.
        """
        rechecked = [(planned.pending.batch, planned.pending.findings) for planned in attempt.batches]
        newest = Deferred(self._table.refresh_for_flip)
        above = Deferred(
            partial(versions_above, self._store, attempt.snapshot, () if self._sole_writer else attempt.chains)
        )
        changed = Deferred(partial(self._verifier.recheck, rechecked, attempt.snapshot))
        deleted = Deferred(partial(self._deleted_branches.among, attempt.snapshot, attempt.chains))
        staged = [item for plan in attempt.plans for item in plan.staged]
        objects = objects_to_stage(self._store, attempt.snapshot, staged)
        calls: list[Callable[[], object]] = [newest, above, changed, deleted, *self._fairness.requests()]
        calls += [partial(self._store.put, *item, durable=False) for item in objects]
        calls += [partial(self._remove_late, *item) for item in attempt.removed_files]
        if flip is not None:
            calls.append(partial(self._table.stage, flip))
        self._store.gather(calls)
        self._store.sync([key for key, _ in objects])
        return Observed(newest.result, above.result, changed.result, frozenset(deleted.result))

    def _remove_late(self, path: str, sha256: str) -> None:
        """Remove the file of a version that went with its branch, and that was written late, unless it is another one.

        No row can name it again. What cannot be removed now is met again.
        """
        try:
            e_tag = self._store.head(path).e_tag
            if e_tag is None or hashlib.sha256(find_contents(self._store, path) or b"").hexdigest() != sha256:
                return
            remove_if(self._store, path, e_tag)
        except StorageError as error:
            logger.warning("%s is left of a branch that was deleted: %s", path, error)
        else:
            logger.error("%s was written after its branch was deleted, and is removed", path)

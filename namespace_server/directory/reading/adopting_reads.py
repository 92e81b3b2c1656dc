"""Adopts what other writers committed above the head of a chain, when that is asked for (rule P5).

A batch that names a chain adopts it as well. Clients that only read send no batch, and stock writers that cannot rebase
over such a version send none either. Where the servers are the
sole writers of manifests nothing is looked for.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from lance_namespace.errors import LanceNamespaceError, TableVersionNotFoundError

from lance_core.errors import LanceCoreError
from lance_core.storage.port import Deferred
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.manifests.stored_versions import versions_above
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.errors import BatchUnknown, CatalogBusy
from namespace_server.directory.model.object_ids import ChainKey, join
from namespace_server.directory.model.operations import AdoptTableVersions, Batch
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.planning_context import PlanningContext
from namespace_server.directory.planning.unmanaged_versions import never_adopted

logger = logging.getLogger(__name__)

T = TypeVar("T")


def newest_snapshot(catalog: StoredCatalog, chain: ChainKey) -> CatalogSnapshot:
    """The newest snapshot, after adopting the unmanaged versions above the head of a chain (P5).

    A writer opens the head that the answer names and looks at storage for later versions. Where it cannot rebase
    over those it gives up and sends nothing that could adopt them: an append after an overwrite, for ever
    (invariant 12). One round trip where there is nothing to adopt. What is never adopted, because it was not built
    on the head or its files are gone or may go, is moved to quarantine (M6). It is not part of the answer, nor is
    what cannot be adopted now because nothing can be written.

    Raises ServiceUnavailableError (17) if it is not known whether the versions are adopted.
    """
    if catalog.options.sole_writer:
        return catalog.snapshot()
    known = catalog.table.current
    newest, found = Deferred(catalog.snapshot), Deferred(partial(versions_above, catalog.store, known, [chain]))
    deleted = Deferred(partial(catalog.deleted_branches.among, known, [chain]))
    catalog.store.gather([newest, found, deleted])
    snapshot, above = newest.result, found.result
    if chain in deleted.result and catalog.forget_if_deleted(snapshot, *chain):
        snapshot = catalog.table.current
        above = versions_above(catalog.store, snapshot, [chain])
    elif snapshot is not known and _end_of(snapshot, chain) != _end_of(known, chain):
        above = versions_above(catalog.store, snapshot, [chain])
    if not above or not snapshot.managed:
        return snapshot
    top = above[chain][-1][1].version
    name = str(uuid.uuid4())
    [adoption] = catalog.commit_batches([Batch(name, (AdoptTableVersions(*chain),), request_hash=name)])
    if isinstance(adoption.verdict, BatchUnknown | CatalogBusy):
        raise adoption.verdict
    adopted = catalog.table.current.top(*chain)
    if adopted is None or adopted[0] < top:
        _quarantine_above(catalog, chain)
    return catalog.table.current


def answer_unless_missing(
    catalog: StoredCatalog, snapshot: CatalogSnapshot, request: Request, answer: Callable[[CatalogSnapshot], T]
) -> T:
    """The answer in the newest snapshot. If a version is not there, it may be one that is not adopted yet (P5).

    Then the answer is given again after that. Raises what `answer` raises.
    """
    try:
        return answer(snapshot)
    except TableVersionNotFoundError:
        chain = (request_fields.table_id(request), request_fields.branch(request))
        newest = newest_snapshot(catalog, chain)
        if newest.top(*chain) == snapshot.top(*chain):
            raise
        return answer(newest)


def answer_as_of(
    catalog: StoredCatalog, earlier: CatalogSnapshot, chain: ChainKey, answer: Callable[[], T]
) -> tuple[T, CatalogSnapshot | None]:
    """An answer about a chain as of a catalog version, and the newer snapshot that adopts versions above its head.

    A job reads all of its tables as of one catalog version. Where that is still the newest for this chain, versions
    of other writers that stand above the head are adopted (P5), or nothing would ever adopt them: each job begins
    at the catalog version before. The answer does not have them. Storage is looked at beside the answer. Raises as
    `answer` does; a failed adoption is logged.

    Returns:
        The answer, and a snapshot in which the version directly above the one answered is an adopted one; None if
        there is no such snapshot.
    """
    newest = catalog.table.current
    answered = Deferred(answer)
    if catalog.options.sole_writer or not earlier.managed or not _has_same_head(earlier, newest, chain):
        answered()
        return answered.result, _with_adopted(earlier, newest, chain)
    above = Deferred(partial(_is_any_above, catalog, newest, chain))
    catalog.store.gather([answered, above])
    if above.result:
        try:
            newest = newest_snapshot(catalog, chain)
        except (LanceCoreError, LanceNamespaceError) as error:
            logger.warning("versions above the head of %s are not adopted yet: %s", join(chain[0]), error)
    return answered.result, _with_adopted(earlier, newest, chain)


def _is_any_above(catalog: StoredCatalog, snapshot: CatalogSnapshot, chain: ChainKey) -> bool:
    """Whether a file stands above the head of a chain; False where storage cannot be read."""
    try:
        return bool(versions_above(catalog.store, snapshot, [chain]))
    except LanceCoreError as error:
        logger.warning("versions above the head of %s cannot be listed: %s", join(chain[0]), error)
        return False


def _quarantine_above(catalog: StoredCatalog, chain: ChainKey) -> None:
    """Quarantine the files above the promoted head of a chain that can never be adopted."""
    try:
        above = versions_above(catalog.store, catalog.table.current, [chain]).get(chain, [])
        snapshot = catalog.table.refresh()
        table, head = snapshot.table(chain[0]), snapshot.head(*chain)
        context = PlanningContext(catalog.store, catalog.manifests, catalog.transactions, catalog.promoter, snapshot)
        if table is not None and head is not None and context.is_promoted(head):
            sha256 = never_adopted(snapshot, table, chain[1], above, context)
            if sha256 is not None:
                catalog.unmanaged_manifests.quarantine_above(head, sha256)
    except LanceCoreError as error:
        logger.warning("unmanaged versions above the head of %s were left in place: %s", join(chain[0]), error)


def _end_of(snapshot: CatalogSnapshot, chain: ChainKey) -> tuple[object, object]:
    """The table and the head that the next version of a chain follows."""
    return snapshot.table(chain[0]), snapshot.head(*chain)


def _has_same_head(earlier: CatalogSnapshot, newest: CatalogSnapshot, chain: ChainKey) -> bool:
    """Whether a chain is of the same table, and has the same head, in an earlier snapshot and in the newest one."""
    if not _is_same_table(earlier, newest, chain):
        return False
    head, now = earlier.head(*chain), newest.head(*chain)
    return head is now or (
        head is not None and now is not None and (head.version, head.identity) == (now.version, now.identity)
    )


def _with_adopted(earlier: CatalogSnapshot, newest: CatalogSnapshot, chain: ChainKey) -> CatalogSnapshot | None:
    """The newest snapshot, if the version that follows the head of a chain in the earlier one was adopted since."""
    if not _is_same_table(earlier, newest, chain):
        return None
    head = earlier.head(*chain)
    first = next(newest.versions(*chain, start=None if head is None else head.version + 1), None)
    return newest if first is not None and first.was_adopted else None


def _is_same_table(earlier: CatalogSnapshot, newest: CatalogSnapshot, chain: ChainKey) -> bool:
    before, after = earlier.table(chain[0]), newest.table(chain[0])
    return before is not None and after is not None and before.location == after.location

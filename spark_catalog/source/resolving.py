"""From the options of a read to one version of a table. Runs on the driver, once for each DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance

from lance_core.errors import LanceCoreError
from lance_core.format.naming import branch_base
from spark_catalog.options import Place, ReadOptions
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.version_names import NamedVersions
from table_data.errors import InvalidCall
from table_data.pylance_errors import plain_text

if TYPE_CHECKING:
    from lance_core.tables.references import Reference
    from namespace_client.http import CatalogServer


def connect(place: Place) -> CatalogServer:
    """Connections to the server of a place. Close them."""
    from spark_catalog import connections

    if place.server is None:
        raise InvalidCall(f"{place.name}: expected option server")
    return connections.connect(place.server, place.token)


def resolve(options: ReadOptions) -> PinnedTable:
    """The version that the options name.

    Raises:
        InvalidCall: There is no such table, branch, tag or version. In a catalog also if it is newer than the catalog
            version.
        CommitRejected: The server refused the request.
        CatalogUnreachable: The server does not respond.
    """
    if options.place.server is not None:
        return _in_catalog(options)
    assert options.place.uri is not None
    return _at_uri(options, options.place.uri)


def _at_uri(options: ReadOptions, uri: str) -> PinnedTable:
    storage = options.place.storage_options
    if options.version is not None and options.branch is None:
        return PinnedTable(uri, options.version, storage)
    reference = _reference(options)
    if reference is None:
        try:
            return PinnedTable.of_dataset(uri, lance.dataset(uri, storage_options=dict(storage) or None), storage)
        except (ValueError, OSError) as error:
            raise InvalidCall(f"{uri}: expected a table: {plain_text(error)}") from None
    return _referred(uri, reference, options)


def _in_catalog(options: ReadOptions) -> PinnedTable:
    place = options.place
    assert place.table is not None
    with connect(place) as access:
        state = options.find(NamedVersions(access, place.table, options.catalog_version or None))
    return PinnedTable.of(state, place.storage_options or state.storage_options)


def _reference(options: ReadOptions) -> Reference:
    if options.tag is not None:
        return options.tag
    position = options.version if options.version is not None else options.timestamp
    return position if options.branch is None else (options.branch, position)


def _referred(uri: str, reference: Reference, options: ReadOptions) -> PinnedTable:
    from lance_core.tables.dataset import Dataset

    storage = options.place.storage_options
    try:
        found = Dataset.open(uri, reference, storage_options=storage)
    except LanceCoreError as error:
        raise InvalidCall(f"{options.place.name}: {error}") from error
    return PinnedTable.published(branch_base(uri, found.branch), found.file, storage)

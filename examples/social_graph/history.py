"""Rows of every table in every catalog version, from manifests alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import lance

from social_graph.generator import TABLES
from social_graph.pipelines import NAMESPACE
from spark_catalog import CatalogServer


def rows_by_version(server: CatalogServer, versions: Sequence[int]) -> Mapping[str, list[int]]:
    """Number of rows of every table in each of the catalog versions."""
    found: dict[str, list[int]] = {table: [] for table in TABLES}
    for version in versions:
        tables = server.pins(version).tables
        for name, rows in found.items():
            state = tables.get((*NAMESPACE, name))
            rows.append(0 if state is None or state.version is None else _count(state.uri, state.version))
    return found


@cache
def _count(uri: str, version: int) -> int:
    return int(lance.dataset(uri, version=version).count_rows())

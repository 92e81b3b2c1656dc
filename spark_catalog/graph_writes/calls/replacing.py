"""Overwrites of the rows that match a predicate."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession

from lance_core.format.manifest import ManifestFile
from spark_catalog.errors import GraphCheckFailed
from spark_catalog.graph_writes.calls.deletes import StagedDeletes, stage_deletes
from spark_catalog.graph_writes.checks import DRIVER_CHECK_BYTES, SAMPLES
from spark_catalog.graph_writes.version_rows import added_rows
from spark_catalog.tasks.staging import StagedFragments, StageTarget, discard_files, stage

_RULE: Final = "rows that do not match the predicate of their overwrite"


def stage_replacement(
    spark: SparkSession,
    df: DataFrame,
    target: StageTarget,
    head: ManifestFile | None,
    where: str,
    *,
    driver_bytes: int,
) -> tuple[StagedDeletes | StagedFragments, ...]:
    """Delete the rows that match a filter expression of Lance, and stage new rows, all of which must match it.

    Raises:
        InvalidWrite: The expression does not fit the table, or a value does not.
        GraphCheckFailed: New rows do not match.
    """
    staged: list[StagedDeletes | StagedFragments] = []
    try:
        if head is not None:
            staged.append(stage_deletes(spark, target, where))
        rows = stage(df, target, driver_bytes=driver_bytes)
        staged.append(rows)
        _check_rows_match(spark, target, head, rows, where)
    except BaseException:
        files = tuple(file for part in staged for file in part.files)
        discard_files(target.uri, files, target.storage_options, never_published=False)
        raise
    return tuple(staged)


def _check_rows_match(
    spark: SparkSession, target: StageTarget, head: ManifestFile | None, staged: StagedFragments, where: str
) -> None:
    rows = added_rows(target, staged.fragments, head)
    names = rows.schema.names
    others = f"({where}\n) IS NOT TRUE"
    if rows.bytes(names) <= DRIVER_CHECK_BYTES:
        wrong = rows.read(names, others)
        count, samples = wrong.num_rows, [tuple(row.values()) for row in wrong.slice(0, SAMPLES).to_pylist()]
    else:
        frame = rows.frame(spark, names, others)
        samples = [tuple(row) for row in frame.limit(SAMPLES).collect()]
        count = len(samples) if len(samples) < SAMPLES else frame.count()
    if count:
        raise GraphCheckFailed(target.name, f"{_RULE} ({where})", count, samples)

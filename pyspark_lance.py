"""The data source `lance`, where Spark looks for data sources: it imports the modules `pyspark_*` on the path."""

from __future__ import annotations

from spark_catalog.source.data_source import LanceDataSource as DefaultSource

__all__ = ["DefaultSource"]

"""Names of Spark's interface for streaming sources that PySpark 4.1 does not have."""

from __future__ import annotations

import pyspark

from table_data.errors import NotSupported

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError as error:
    raise NotSupported(f"pyspark {pyspark.__version__}: expected 4.2 or newer to read streams of changes") from error

__all__ = ["ReadAllAvailable", "ReadLimit", "ReadMaxFiles", "SupportsTriggerAvailableNow"]

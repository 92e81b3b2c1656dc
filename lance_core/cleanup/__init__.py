"""Removing old versions and files that no version needs: nothing goes unless it is proved that nothing needs it."""

from lance_core.cleanup.collector import CleanupReport, cleanup, cleanup_table
from lance_core.cleanup.plan import Garbage
from lance_core.cleanup.retention import Retention

__all__ = ["CleanupReport", "Garbage", "Retention", "cleanup", "cleanup_table"]

"""Garbage collection: removes old versions, and files that provably no version needs.

collector       `cleanup`: census, plan, second census, remove versions, third census, remove files
plan            the garbage-collection plan of one branch
retention       which versions are kept by age, count or references; pure
reachability    which files a version needs; pure
kinds           what the files of a table are, by their names; pure
survey          finds the files of tables that no manifest names
census          lists all files of a table, its versions, references and staged manifests
guard           finds the catalog that manages the versions of a table, and refuses such tables
"""

from lance_core.cleanup.collector import CleanupReport, cleanup, cleanup_table
from lance_core.cleanup.plan import Garbage
from lance_core.cleanup.retention import Retention

__all__ = ["CleanupReport", "Garbage", "Retention", "cleanup", "cleanup_table"]

"""Backup: one version of a catalog, copied to another store, verified, and restored under another root.

run                makes a backup: pins the version, backs up one table after another, writes the record last
tables             backs up one table: its references, manifests and files
restore            makes a catalog of a backup; `__manifest` comes last
verification       compares a backup with its records, and opens its tables
ownership          which catalog a destination belongs to
relocated_catalog  the rows and manifests of a catalog that is restored under another root; pure
external_blobs     values of blob columns that are files elsewhere
logs               write-ahead logs of tables, whose rows no version has yet
required_files     which versions are backed up, and which files they need; pure
copies             copies of files between two stores, each read back and compared
records            the parts of a backup, and their keys in the destination
"""

from namespace_server.directory.backup.restore import Restoration
from namespace_server.directory.backup.run import BackupRun
from namespace_server.directory.backup.verification import verify

__all__ = ["BackupRun", "Restoration", "verify"]

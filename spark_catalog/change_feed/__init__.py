"""Changed rows: which rows the versions of a table inserted, updated and deleted.

change_frames    `read_changes`: changes of one table as a DataFrame
change_rows      the changed rows, divided among tasks and read there
changes          which rows those are, from transactions and manifests
changes_by_id    the same with deleted rows and rows before an update, from stable row ids
version_changes  `VersionChanges`: the changed rows of one version, by fragment
row_differences  difference of two versions by the ids of their rows
policy           how a reader treats versions that update, delete or replace rows
"""

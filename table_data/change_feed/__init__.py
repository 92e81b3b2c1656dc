"""Changed rows of a table: which rows its versions inserted, updated and deleted, and these rows as they were and are.

feed             `changed_rows`: the rows between two catalog versions, as a stream of Arrow
ranges           `ChangeRange`: which versions a feed reads
selected_rows    changed rows among those of a fragment, and the columns that tell their change
changes          which rows those are, from transactions and manifests
changes_by_id    the same with deleted rows and rows before an update, from stable row ids
columns          the columns of a feed, at versions that have others
versions         `PublishedVersion`: the manifest of a version, and what it names
version_changes  `VersionChanges`: the changed rows of one version, by fragment
row_differences  difference of two versions by the ids of their rows
policy           how a reader treats versions that update, delete or replace rows
"""

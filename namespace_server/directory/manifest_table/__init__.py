"""`__manifest` as a Lance dataset.

table                  `ManifestTable`: snapshots in, flips out; compare-and-set on the next version
newest_version         proves which version is the newest
flip                   builds the next version: new fragments, deletions, merged old fragments
fragments              where rows lie, and which fragments a flip merges
incremental_refresh    leads a snapshot to a later version, reading as little as possible
bulk_load, columns     builds a snapshot from all rows
schema                 column names, manifest encoding, table properties
"""

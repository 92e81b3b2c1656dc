"""`__manifest` as a Lance dataset.

table                  `ManifestTable`: snapshots in, flips out; compare-and-set on the next version
history                what made each version, newest first, or as those that follow it read it
snapshots              the newest snapshot, brought up to date step by step, and earlier ones
peers                  which servers committed lately; `peer_secret`: proofs of the secret that they share
store_clock            how far this machine's clock is from the store's
unlisted_tables        tables below a root that the catalog has no row of
newest_version         proves which version is the newest
flip                   builds the next version: new fragments, deletions, merged old fragments; its outcomes
fragment_merge         which old fragments a flip merges
fragments              where rows lie
incremental_refresh    brings a snapshot to a later version, reading as little as possible
bulk_load              builds a snapshot from all rows
column_parsing         rows by the hundred thousand, as typed columns
row_codec              entries to rows and back; access_codec: those that grant
schema                 column names, manifest encoding, table properties
"""

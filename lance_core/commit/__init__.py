"""Committing a transaction to one table or branch.

uri                   the entry point for a table that is given by its URI
loop                  the commit loop: prepare, claim the slot, retry
staged                two-phase commit: stage a version, then publish or discard it
prepare               judges, rebases and applies a transaction; writes nothing
chain                 the head of a table or branch, and the versions committed since a read version
restating             states a transaction in terms of the head, where its writer read another version (P12)
concurrent_commits    reads concurrently committed versions as far as judging needs
slot                  claims the canonical name of a version by put-if-absent
durability            makes files durable before a manifest refers to them
copying               copies the files of a version, for deep clones
handlers/             commit handlers: how a store claims a name exclusively
"""

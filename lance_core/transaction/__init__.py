"""Transactions: operations, conflict rules, rebase, and building the next manifest. Pure: no module does I/O.

operations         decodes and encodes operations
operation_types    the operations as dataclasses
conflicts/         whether a transaction may follow a committed one
rebase             moves an operation onto a newer version
apply              builds the next manifest from the head and a transaction
cloning            Clone: the first version of a branch or clone
schemas            Project and Merge: a new schema for existing fragments
compaction         Rewrite: other fragments for the same rows
fragments          the fragment list of a manifest being built
indices            the index list of a manifest being built
fields             schema fields as a manifest lists them
features           feature flags of manifests being built
checks             fields of a transaction that contradict each other or the head
columns            what data files may, and must, have of a schema
schema_checks      schemas and metadata of fields that readers must be able to decode
heads              checks of a manifest before another is built on it
stamps             row ids and row versions for the fragments of one commit
row_ids            encodes and decodes row ids and row versions
reachable          the files that a transaction adds
base_files         those that lie below base paths
lineage            whether a manifest descends from a given head
net_change         what a line of versions changed since the version that it began at
readings           the meaning of a transaction, by the version that its writer read (P12)
dirty_reads        what it has of a version that was never committed (P16)
"""

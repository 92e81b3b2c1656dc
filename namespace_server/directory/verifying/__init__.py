"""Verify what a batch refers to on storage, before it is planned and beside writing. Nothing here writes.

verifier            starts the verifications of a batch, and answers for them
staged_manifests    manifests that clients staged
added_files         the files that transactions add
table_references    references, where branches or versions are made or deleted
chosen_locations    locations that clients choose: vacant ones, and datasets to be registered
allowed_locations   where the files of a table may lie
dropped_tables      dropped tables that are to come back
"""

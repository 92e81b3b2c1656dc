"""Commit batches.

committer               verifies batches, commits them in groups, answers each
commit_loop             the commit loop: plan, write, flip, after a conflict again; promote
flip_queue              batches that wait, and the thread that flips them
unproved_flip           a flip on which the next group is planned while it is proved
turns                   lets servers that share a root flip by turns
leftovers               removal of the files of attempts that are in no history
group_planner           plans each batch of a group on the overlay of those before it; the planning context
verifier                reads what a batch refers to on storage, before it is planned and beside writing
staged_manifests        verification of manifests that clients staged
added_files             verification of the files that transactions add
table_references        verification of references, where branches or versions are made or deleted
locations               verification of locations that clients choose
stored_versions         versions on storage: above a head, all of a dataset, removed by a cleanup
allowed_locations       where the files of a table may lie
promoter                gives committed manifests their canonical names
staged_bundles          staged manifests of one attempt in one object of a bucket
manifest_reader         reads the manifest of a row, wherever it lies
manifest_cache          manifests of table heads, by identity
committed_transactions  transactions of versions, which others are judged against
sized_cache             a cache bounded by the memory that its values take
removals                removes a file only while it is the expected one
record_maintenance      closes records, removes rows that are gone or expired; carried by flips
"""

"""The manifests of the versions that the catalog holds: where they lie, how they are read, and their canonical names.

promoter                gives committed manifests their canonical names
manifest_reader         reads the manifest of a row, wherever it lies
manifest_cache          manifests of table heads, by identity
committed_transactions  transactions of versions, against which others are judged
stored_versions         versions on storage: above a head, all of a dataset, removed by a cleanup
staged_bundles          staged manifests of one attempt in one object of a bucket
deleted_branches        branches that a client deleted by path, and perhaps made again
quarantine              files of other writers that were moved away from canonical names
conditional_removal     removes a file only while it is the expected one
sized_cache             a cache bounded by the memory that its values take
"""

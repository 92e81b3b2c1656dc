"""Commit batches.

committer             group commit: verify, plan, stage, flip, retry a lost flip, promote
verifier              reads what a batch refers to on storage, before it is planned
promoter              gives committed manifests their canonical names
manifest_cache        manifests of table heads, by identity
record_maintenance    closing and expiring of batch records, carried by flips
"""

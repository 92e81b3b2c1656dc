"""Decide what a batch changes, judged against one snapshot. No I/O of its own.

planner               plans a batch, operation by operation; checks idempotency keys against committed batches
plan_builder          the plan under construction
planning_context      the port through which planning reads manifests
namespaces_and_tables operations on namespaces and tables
table_versions        operations on table versions: create, delete, assert
transactions          the commit of a transaction onto the head
references            operations on branches and tags
unmanaged_versions    rows for versions that other writers committed
chains                names, heads and conflicts of chains, for the modules above
"""

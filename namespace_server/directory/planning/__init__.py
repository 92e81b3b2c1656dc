"""Decide what a batch changes, judged against one snapshot. It reads manifests through its context, and writes nothing.

planner               plans a batch, operation by operation; checks idempotency keys against committed batches
plan_builder          the plan under construction
planning_context      what planning reads: manifests, and storage about versions of other writers
promoted_rows         rows that need their canonical names before a batch can be planned
namespaces_and_tables operations on namespaces and tables
table_versions        operations on table versions: create, delete, assert
transactions          the commit of a transaction onto the head
references            operations on branches and tags
cloning               shallow clones: new tables that refer to files of others
undrop                the return of dropped tables and namespaces; dropped_grants: who had grants on them
grants                changes of grants
judgement             whether the subject of a batch may do each operation; early_judgement: before it is planned
reached_bases         base paths below which an operation brings its table files
needs                 pins, jobs that may commit late, and how far consumers of events have come
freshness             refuses files that garbage collection may remove
unmanaged_versions    rows for versions that other writers committed
chains                names, heads and conflicts of chains, for the modules above
"""

"""Decide what a batch changes, judged against one snapshot. No I/O of its own.

planner           plans a batch, operation by operation
plan_builder      the plan under construction, and what it may ask of storage
objects           operations on namespaces and tables
table_versions    operations on table versions: create, commit, delete, assert
"""

"""Graph writes: many tables, staged by Spark jobs and committed in one batch.

graph_write     `GraphWrite`: the calls of a write
lifecycle       begin, staging jobs side by side, checks, commit, resend, removal of files
graph_tables    the tables of a write, in its transaction of `namespace_client`
table_calls     the calls on one table, and the operations that they become
calls           what each kind of call does to its table
checks          rules of the graph
integer_keys    keys of integers, as sets of numbers
version_rows    rows of published and of staged versions
results         results and progress of a write
"""

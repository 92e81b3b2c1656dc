"""Work on the rows of one table: changes and queries, computed by pylance and committed by others.

jobs              operations as values, and the state of a process that does one after another
row_writers       rows that tasks in other processes write for one change
operations        what the routes do with a table: JSON in, JSON or rows out
table_changes     several operations on one table, each applied to the version that the one before it left
change_feed       changed rows: which rows versions inserted, updated and deleted, and those rows
staging           what one operation does to a version, its files written: rows, merges, columns, indices
queries           reads of rows: scans, searches, plans
pinned_datasets   datasets at a version that the catalog named, for readers outside of the project
open_datasets     datasets that stay open after their use
composition       operations on one table as the transactions of a batch, and those of parts of rows as one
batch_operations  operations of a batch about one table, and their JSON
descriptions      operations of the engine from uncommitted results of pylance
requests          parts of requests: expressions, paths of fields, types, the clauses of a merge
values            values of rows as JSON and as texts, both ways
arrow             rows as bytes and in memory
sql               checks of SQL expressions before pylance parses them
pylance_errors    errors of pylance as errors of the call
errors            exceptions
"""

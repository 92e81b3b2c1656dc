"""One call of a graph write on one table: from rows, keys or a predicate to the operation that is staged.

merges     upserts and deletions by key
replacing  overwrites of the rows that match a predicate
keys       addresses of the stored rows that have the keys of other rows
deletes    deletions by predicate or by address: deletion files per fragment, written by tasks
columns    the schema of a table with the columns of new rows
"""

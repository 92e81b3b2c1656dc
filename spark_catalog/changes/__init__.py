"""One call of a graph write on one table: from rows, keys or a predicate to the operation that is staged.

deletes    rows that go, by predicate or by address: deletion files per fragment, written by tasks
keys       which stored rows have the keys of other rows
merges     upserts and deletions by key
columns    the schema of a table with the columns of new rows
"""

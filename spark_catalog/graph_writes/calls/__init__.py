"""One call of a graph write on one table: from rows, keys or a predicate to the operation that is staged.

merges     upserts and deletions by key
deletes    deletions by predicate, address or key: deletion files per fragment, written by tasks; and their overwrites
columns    the schema of a table with the columns of new rows
"""
